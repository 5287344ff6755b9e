/* The leaderboard as a chart of quality against cost. */
"use strict";

/** @param {RankedView} view */
pages.leaderboardChart = (view) => {
  const { h, visible } = pages;
  const { points } = formats;
  const { COSTS, KINDS } = pages.rows;

  const placed = (axis, rows) => rows.filter((row) => axis.value(row) !== null).length;

  /* Return the axes to choose from: those that a row has a value for. */
  const offered = (rows) => COSTS.filter((axis) => placed(axis, rows));

  /* Return the first axis: seconds if half of the rows have them, otherwise the cost that most rows have. */
  function fullest(rows) {
    const axes = offered(rows);
    const seconds = axes.find(({ kind }) => kind === "seconds");
    return seconds && 2 * placed(seconds, rows) >= rows.length
      ? seconds
      : [...axes, COSTS[0]].reduce((best, axis) => (placed(axis, rows) > placed(best, rows) ? axis : best));
  }

  function chart() {
    const chosen = Math.max(
      0,
      view.columns.findIndex((column) => column.id === view.order().by && column.kind === "score"),
    );
    const axis =
      COSTS.find(({ id }) => id === view.params.get("x")) ??
      fullest(view.rows.filter((row) => row.cells[chosen].value !== null));
    const { title: xLabel, value: x } = axis;
    const { tick } = KINDS[axis.kind];
    const column = view.columns[chosen];
    const items = view.rows
      .filter((row) => row.cells[chosen].value !== null && x(row) !== null)
      .map((row) => {
        const cell = row.cells[chosen];
        return {
          x: x(row),
          y: 100 * (cell.value ?? 0),
          low: cell.low === null ? null : 100 * cell.low,
          high: cell.high === null ? null : 100 * cell.high,
          name: visible(row.name),
          shape: 1 + view.site.system_kinds.indexOf(row.kind),
          kind: row.kind,
          solid: row.ours,
          costed: !row.unverified && (!row.ours || row.cost?.seconds !== null),
          href: row.ours ? pages.link("system", { name: row.system ?? row.name, set: view.set.name }) : null,
          text: `${visible(row.name)}: ${points(cell.value)}, ${tick(x(row))}`,
        };
      });
    const switcher = parts.segmented(
      "Against",
      offered(view.rows).map(({ id, title }) => ({ value: id, label: title })),
      axis.id,
      (value) => view.change({ x: value }),
    );
    const unplaced = view.rows.length - items.length;
    const kinds = view.site.system_kinds
      .map((name, i) => ({ name, shape: i + 1 }))
      .filter(({ name }) => items.some((item) => item.kind === name));
    const width = Math.max(340, Math.min(1240, view.body.clientWidth || 1240));
    return h(
      "section",
      { class: "section scatter" },
      h("div", { class: "row spread" }, h("h2", null, `${column.title} against ${xLabel}`), switcher),
      items.length
        ? [
            pages.chart.legend(kinds, view.chartNotes ? "" : undefined),
            pages.chart.scatter(items, {
              width,
              xLabel,
              yLabel: `${view.measure} × 100`,
              tick,
              lines: view.chartLines?.(axis.id),
            }),
            pointList(items),
          ]
        : h("p", { class: "empty" }, "This cost is not known for any of these systems."),
      unplaced
        ? h(
            "p",
            { class: "muted" },
            `${unplaced} of these systems ${unplaced === 1 ? "is" : "are"} not drawn: ${view.chartNotes?.unplaced ?? (axis.id === "size" ? "the size of one of their models is not known" : "published rows do not state their cost, and the cost of recorded texts is not known, nor that of run files")}.`,
          )
        : null,
      h(
        "p",
        { class: "muted" },
        view.chartNotes?.line ??
          "The line joins the systems that no other system beats at the same or lower cost. Systems whose cost is not known are not on it, such as those with recorded texts.",
      ),
    );
  }

  /* Return a list of all points by name, best first. The chart itself has room for only a few names. */
  const pointList = (items) =>
    h(
      "details",
      { class: "points" },
      h("summary", null, `The ${items.length} systems of this chart`),
      h(
        "ol",
        null,
        [...items]
          .sort((a, b) => b.y - a.y)
          .map((item) => h("li", null, item.href ? h("a", { href: item.href }, item.text) : item.text)),
      ),
    );

  return { chart };
};

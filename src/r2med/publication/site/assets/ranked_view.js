/* What the leaderboard and the page Answers share: ranked rows that are searched, filtered and sorted, and drawn as a
   table or as a chart of quality against cost. The address holds the choices. */
"use strict";

/**
 * Return a view of ranked rows.
 * @param {string} page the name of the page
 * @param {RankedContent} content
 * @param {RankedDrawing} drawing what differs between the pages
 * @returns {RankedView}
 */
pages.rankedView = (page, content, drawing) => {
  const { h } = pages;
  const { params } = content;
  const FILTERED = ["q", ...pages.rows.FILTERS.map(({ name }) => name)];

  /** @type {RankedView} */
  const view = {
    ...content,
    selected: -1,
    lines: new Map(),
    rows: content.all,
    body: h("div"),
    order: () => ({ by: params.get("sort") || firstColumn().id, upwards: params.get("up") === "1" }),
    change: (changes) => {
      pages.change(params, changes);
      draw();
    },
    // The direction that a column is first sorted in depends on its kind.
    sort: (id, upwards = pages.rows.startsUpwards(view.columns, id)) =>
      view.change({ sort: id, up: upwards ? "1" : "" }),
    restart: (changes) => pages.go(page, { ...Object.fromEntries(params), ...changes }),
    open: (position) =>
      parts.toggleDetails(view.body, position, view.columns.length + 2, () => drawing.details(view.rows[position])),
    draw,
  };
  const { table } = pages.leaderboardTable(view);
  const { chart } = pages.leaderboardChart(view);

  /* Return the first column in which a row has a value: the average, if there is one. */
  const firstColumn = () =>
    view.columns.find((_, i) => view.all.some((row) => row.cells[i].value !== null)) ?? view.columns[0];

  /* Return the number of shown rows in words, and a button that removes the filters. */
  function shownCount() {
    const filtered = FILTERED.filter((name) => params.get(name));
    const reset = () => view.restart(Object.fromEntries(filtered.map((name) => [name, ""])));
    return h(
      "p",
      { class: "muted", role: "status" },
      `${view.rows.length} of ${view.all.length} ${drawing.nouns}`,
      filtered.length ? h("button", { type: "button", class: "plain", onclick: reset }, "Show all") : null,
    );
  }

  function draw() {
    const { by, upwards } = view.order();
    view.rows = pages.rows.sorted(pages.rows.passing(view.all, params), view.columns, by, upwards);
    view.selected = -1;
    const { measure, columns, rows } = view;
    const results = h(
      "div",
      { id: "results", class: drawing.kind },
      h("h2", { class: "visually-hidden" }, drawing.title),
      h(
        "div",
        { class: "row spread results-head" },
        shownCount(),
        pages.exports.buttons(() => ({ measure, labels: drawing.labels, columns, rows })),
      ),
      params.get("view") === "chart" ? chart() : table(),
      h("p", { class: "note" }, drawing.notes()),
    );
    pages.supplant(view.body, results)();
    view.body = results;
  }

  return view;
};

/* The leaderboard's table, with a row for every system. */
"use strict";

/** @param {RankedView} view */
pages.leaderboardTable = (view) => {
  const { h, named, visible } = pages;
  const { points, counted } = formats;
  const { KINDS, ONE_RUN } = pages.rows;
  const WIDE = 12; // columns besides the main one that fit on a screen, as many as the benchmark has

  const WORD = 7; // letters of a heading that a column of scores certainly has space for

  /* Return how many usual columns a column takes: more than one if its heading has a long word. */
  function breadth({ label }) {
    const longest = Math.max(...label.split(/(?<=-)|\s/).map((word) => word.length));
    return longest > WORD + 1 ? Math.min(longest / WORD, 3) : 1;
  }

  /* Draw what says how wide a column is. */
  function columnWidth(column) {
    const drawn = h("col", { class: column.main ? "main" : "extra" });
    if (!column.main && breadth(column) > 1) drawn.style.width = `${3.75 * breadth(column)}rem`;
    return drawn;
  }

  /* Return the shared headings of neighbouring columns of a group: [{name, size}]. */
  function columnGroups() {
    /** @type {{ name: string, size: number }[]} */
    const groups = [];
    for (const { group } of view.columns) {
      const last = groups.at(-1);
      if (last?.name === group) last.size += 1;
      else groups.push({ name: group, size: 1 });
    }
    return groups;
  }

  /* Return the heading of a column. A click on it sorts by the column. */
  function heading(id, label, title, classes) {
    const { by, upwards } = view.order();
    return h(
      "th",
      { scope: "col", class: classes, "aria-sort": by === id ? (upwards ? "ascending" : "descending") : null },
      h(
        "button",
        { type: "button", title, onclick: () => sortBy(id) },
        visible(label),
        by === id ? (upwards ? " ↑" : " ↓") : "",
      ),
    );
  }

  function headings(groups, starts, sorted) {
    return h(
      "thead",
      null,
      h(
        "tr",
        { class: "groups" },
        h("td", { colspan: 2 }),
        groups.map((group, i) =>
          h(
            "th",
            { scope: "colgroup", colspan: group.size, class: i ? "starts" : "", title: visible(group.name) },
            visible(group.name),
          ),
        ),
      ),
      h(
        "tr",
        null,
        h("th", { scope: "col", class: "rank" }, "Rank"),
        heading("name", "System", "Sort by name", "system"),
        view.columns.map((column, i) =>
          heading(
            column.id,
            column.label,
            `${column.about ? `${column.about} ` : ""}Sort by ${column.title}`,
            `${cellClass(column, i, starts)}${i === sorted ? " sorted" : ""}`,
          ),
        ),
      ),
    );
  }

  function table() {
    if (!view.rows.length) return h("p", { class: "empty" }, "No system matches these filters.");
    const tracks = view.columns.map((column, i) => {
      const cells = view.all.map((row) => row.cells[i]).filter((cell) => cell.value !== null);
      const whole = view.all.filter((row) => !row.last && !row.unverified).map((row) => row.cells[i].value);
      const best = KINDS[column.kind].best?.(...whole.filter((value) => value !== null));
      return { span: pages.chart.span(cells), best };
    });
    const groups = columnGroups();
    const starts = new Set();
    groups.reduce((at, group) => {
      starts.add(at);
      return at + group.size;
    }, 0);
    const sorted = view.columns.findIndex((column) => column.id === view.order().by);
    const made = (row, position) => {
      if (!view.lines.has(row)) view.lines.set(row, line(row, tracks, starts)); // each row is made once and then only moved
      return placed(view.lines.get(row), position, sorted);
    };
    const table = h(
      "table",
      { class: "leaderboard" },
      h("colgroup", null, h("col", { class: "rank" }), h("col"), view.columns.map(columnWidth)),
      headings(groups, starts, sorted),
    );
    const extra = view.columns.filter((column) => !column.main).reduce((sum, column) => sum + breadth(column), 0);
    table.style.setProperty("--extra-columns", String(extra));
    const kind = extra > WIDE ? "long wide" : "long"; // more columns than a screen: they scroll inside the table
    return parts.region("Systems and their scores", pages.fillTable(table, view.rows, made), kind);
  }

  const cellClass = (column, i, starts) =>
    [KINDS[column.kind].isText ? "" : "num", starts.has(i) && i ? "starts" : "", column.main ? "main" : "extra"].join(
      " ",
    );

  function sortBy(id) {
    const { by, upwards } = view.order();
    view.sort(id, by === id ? !upwards : undefined);
    /** @type {HTMLElement} */ (view.body.querySelector("[aria-sort] button"))?.focus();
  }

  function placed(line, position, sorted) {
    line.dataset.position = position;
    line.removeAttribute("aria-selected");
    line.querySelector(".toggle").setAttribute("aria-expanded", "false");
    line.querySelector(".sorted")?.classList.remove("sorted");
    line.children[sorted + 2]?.classList.add("sorted");
    return line;
  }

  function line(row, tracks, starts) {
    const cells = view.columns.map((column, i) => {
      const cell = row.cells[i];
      if (cell.value === null) {
        const why = column.main ? pages.sets.noAverage(view.set) || null : null;
        return h("td", { class: `${cellClass(column, i, starts)} muted`, title: why }, "–");
      }
      const range =
        cell.low === null ? null : `${column.title}: 95 % interval ${points(cell.low)} to ${points(cell.high)}`;
      const made = h(
        "td",
        {
          class: `${cellClass(column, i, starts)}${cell.value === tracks[i].best && !row.unverified ? " best" : ""}`,
          title: [range, column.note?.(row)].filter(Boolean).join("; ") || null,
        },
        KINDS[column.kind].text(cell.value),
      );
      if (column.kind !== "score") return made;
      if (column.main) made.append(pages.chart.interval(cell, tracks[i].span));
      return column.main ? made : pages.chart.bar(made, cell.value, tracks[i].best);
    });
    const toggle = parts.toggle(row.name, () => view.open(Number(made.dataset.position)));
    const made = h(
      "tr",
      { class: row.ours ? "ours" : "published" },
      h(
        "td",
        { class: "rank" },
        h("span", { class: "rank-number" }, row.rank ?? "–"),
        h("small", { class: "muted" }, row.mark?.letters || (row.ours ? "" : "by value")),
      ),
      h(
        "th",
        { scope: "row", class: "system" },
        h("div", { class: "system-name" }, toggle, nameOf(row)),
        h("small", { class: "muted" }, about(row)),
      ),
      cells,
    );
    return made;
  }

  const nameOf = (row) =>
    row.ours
      ? h("a", { href: pages.link("system", { name: row.system ?? row.name, set: view.set.name }) }, named(row.name))
      : named(row.name);

  /* Return the notes beside a name: where the system comes from, how often it was run, its counts, failures, a lock. */
  function about(row) {
    const from = row.entry ? `entry ${visible(row.entry)}` : row.from;
    const origin = row.ours
      ? [parts.chip({ text: from, kind: "solid" }), " ", row.kind]
      : `${row.kind} · ${visible(row.reported_by)}`;
    const runs = row.runs && row.runs !== ONE_RUN ? ` · ${row.runs}` : "";
    const counts = row.mark && !row.mark.letters ? ` · ${pages.rows.counts(row.mark)}` : "";
    return [origin, runs, counts, chips(row).map((chip) => [" · ", parts.chip(chip)])];
  }

  /** @type {(row: Row) => Chip[]} */
  function chips(row) {
    const judged = row.judged_by_kin?.map(visible).join(", ");
    const unverified = row.unverified && { kind: "bad", title: `Not verified: ${visible(row.unverified)}` };
    /** @type {any[]} */
    const all = [
      unverified && { text: "ranked last", ...unverified },
      view.set.overlays.length && { text: pages.sets.kind(view.set) },
      row.average_only && { text: "average only as published" },
      row.reason && { text: "cannot be run", title: visible(row.reason) },
      row.runs === ONE_RUN && {
        text: ONE_RUN,
        title: "Another run can give other scores. The interval is of the queries only: run it with --repeats.",
      },
      row.failures && { text: counted(row.failures, "failure"), kind: "bad" },
      row.lock && { text: "locked", title: `Decided beforehand in a lock: ${visible(row.lock)}` },
      judged && {
        text: "judge’s own family",
        kind: "bad",
        title: `An LLM of the same family judged the documents of ${judged}`,
      },
      ...(row.chips ?? []),
    ];
    return all.filter(Boolean);
  }

  return { table };
};

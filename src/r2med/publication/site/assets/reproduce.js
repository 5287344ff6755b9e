/* The reproduction page: expected scores, the commands that compute them, and the scores observed here. */
"use strict";

(() => {
  const { h, named, visible } = pages;
  const NOT_RUN = "not run";
  const SIGNS = { OK: "✓ OK", near: "≈ near", off: "✗ off" };
  let view = null;

  const chip = (verdict) =>
    parts.chip({ text: SIGNS[verdict] ?? verdict, kind: `verdict-${verdict.replace(" ", "-")}` });
  const figure = (value) => (value === null ? "–" : value.toFixed(2));

  /* Return the score to show in the table: the average, or the first. */
  const main = (row) => row.figures.find(({ dataset }) => dataset === "average") || row.figures[0];

  /** @type {TableColumn<any>[]} */
  const COLUMNS = [
    {
      title: "System",
      isHead: true,
      kind: "system",
      cell: (row, position) => [
        h(
          "div",
          { class: "system-name" },
          parts.toggle(row.name, () => toggle(position), isOpen(row)),
          named(row.name),
        ),
        h("small", { class: "muted" }, visible(row.seen_with || row.source)),
      ],
    },
    {
      title: "Expected",
      num: true,
      cell: (row) => {
        const { measure, dataset, expected } = main(row);
        return h("td", { class: "num", title: `${measure}, ${visible(dataset)}` }, figure(expected));
      },
    },
    { title: "Observed", num: true, cell: (row) => figure(main(row).observed) },
    { title: "Verdict", cell: (row) => chip(row.verdict) },
    { title: "Data", cell: (row) => visible(row.data) },
  ];

  /** @type {Page["show"]} */
  async function show(into, params) {
    const { rows: all, verdicts, by_us: byUs } = await pages.load("reproduce");
    const rows = all
      .map((row, number) => ({ ...row, number, figures: pages.fromColumns(row.figures) }))
      .sort((a, b) => verdicts.indexOf(a.verdict) - verdicts.indexOf(b.verdict) || a.number - b.number);
    const body = h("div");
    view = { rows, params, body, selected: -1 };
    const made = rows.filter((row) => row.verdict !== NOT_RUN);
    const counts = verdicts
      .map((verdict) => ({ verdict, times: made.filter((row) => row.verdict === verdict).length }))
      .filter(({ times }) => times);
    into.append(
      parts.lede(
        `${rows.length} expectations, ${new Set(rows.map((row) => row.source)).size} sources`,
        "Two clicks to the paper’s number",
        h(
          "p",
          null,
          "Open a line and copy its command. ",
          made.length
            ? `Of ${made.length} that were run here: ${counts.map(({ verdict, times }) => `${times} ${verdict}`).join(", ")}.`
            : "No system was run here yet.",
          " The tolerances of OK and near are in points, and each line states its own.",
        ),
        h("p", { class: "muted" }, `Published scores: ${visible(byUs)}.`),
      ),
      h(
        "div",
        { class: "controls" },
        h(
          "div",
          { class: "row filters-row" },
          parts.field(
            "Search",
            parts.search("Search expectations", "Search systems and sources", params.get("q") || "", (q) =>
              change({ q }),
            ),
            "grow",
          ),
          parts.select(
            "Verdict",
            [{ value: "", label: "all" }, ...parts.asOptions(verdicts)],
            params.get("verdict") || "",
            (verdict) => change({ verdict }),
          ),
        ),
      ),
      body,
    );
    draw();
  }

  function change(changes) {
    pages.change(view.params, changes);
    draw();
  }

  const isOpen = (row) => String(row.number) === view.params.get("open");

  function draw() {
    const words = (view.params.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = view.params.get("verdict");
    view.shown = view.rows.filter(
      (row) =>
        (!verdict || row.verdict === verdict) &&
        words.every((word) => `${row.name} ${row.source} ${row.seen_with} ${row.data}`.toLowerCase().includes(word)),
    );
    view.selected = -1;
    const table = h("table", { class: "reproductions" }, parts.tableHead(COLUMNS));
    const lines = (row, position) => [
      parts.tableRow(COLUMNS, row, position, { "data-position": position }),
      isOpen(row) ? parts.detailsRow(COLUMNS.length, details(row)) : null,
    ];
    const body = h(
      "div",
      null,
      view.shown.length
        ? parts.region("Expected and observed scores", pages.fillTable(table, view.shown, lines), "long")
        : h("p", { class: "empty" }, "Nothing matches."),
    );
    pages.supplant(view.body, body)();
    view.body = body;
  }

  async function toggle(position) {
    const row = view.shown[position];
    const open = await parts.toggleDetails(view.body, position, COLUMNS.length, () => details(row));
    pages.change(view.params, { open: open ? String(row.number) : "" });
  }

  const details = (row) => [
    h("div", { class: "details-wide" }, parts.command(row.command)),
    h(
      "div",
      null,
      h("h3", null, "Scores"),
      parts.table(
        "Figures",
        [
          { title: "Dataset", isHead: true, cell: ({ dataset }) => named(dataset) },
          { title: "Measure", cell: ({ measure }) => visible(measure) },
          { title: "Expected", num: true, cell: ({ expected }) => figure(expected) },
          { title: "Observed", num: true, cell: ({ observed }) => figure(observed) },
          { title: "", cell: ({ verdict }) => (verdict === NOT_RUN ? "" : chip(verdict)) },
        ],
        row.figures,
      ),
    ),
    h(
      "div",
      null,
      h("h3", null, "Conditions"),
      parts.facts(
        [
          { name: "Source", value: row.source },
          { name: "Seen with", value: row.seen_with },
          ...row.conditions.map((text) => ({ name: "Condition", value: text })),
          { name: "OK", value: `within ${row.ok} points` },
          { name: "Near", value: `within ${row.near} points` },
          { name: "Run with", value: row.run_with },
          { name: "Run by us", value: row.by_us },
        ].filter(({ value }) => value),
      ),
    ),
  ];

  pages.page("reproduce", {
    title: "Reproduce",
    label: "Reproduce",
    keys: pages.lineKeys("line", () => view, toggle),
    show,
  });
})();

/* The reproduction page: expected scores, the commands that compute them, and the scores observed here. */
"use strict";

(() => {
  const { h, named, visible } = pages;
  const VERDICTS = [
    ["", "all"],
    ["OK", "OK"],
    ["near", "near"],
    ["off", "off"],
    ["not run", "not run"],
  ];
  const RANK = new Map([
    ["OK", 0],
    ["near", 1],
    ["off", 2],
    ["not run", 3],
  ]);
  let view = null;

  const chip = (verdict) =>
    h(
      "span",
      { class: `chip verdict-${verdict.replace(" ", "-")}` },
      { OK: "✓ OK", near: "≈ near", off: "✗ off", "not run": "not run" }[verdict],
    );
  const figure = (value) => (value === null ? "–" : value.toFixed(2));

  /* Return the score to show in the table: the average, or the first. */
  const main = (row) => row.figures.find(([dataset]) => dataset === "average") || row.figures[0];

  async function show(into, params) {
    const rows = (await pages.load("reproduce"))
      .map((row, number) => ({ ...row, number }))
      .sort((a, b) => (RANK.get(a.verdict) ?? 0) - (RANK.get(b.verdict) ?? 0) || a.number - b.number);
    const body = h("div");
    view = { rows, params, body, selected: -1 };
    const made = rows.filter((row) => row.verdict !== "not run");
    const counts = VERDICTS.slice(1, 4)
      .map(([verdict]) => [verdict, made.filter((row) => row.verdict === verdict).length])
      .filter(([, times]) => times);
    into.append(
      h(
        "div",
        { class: "lede" },
        h(
          "p",
          { class: "eyebrow" },
          `${rows.length} expectations, ${new Set(rows.map((row) => row.source)).size} sources`,
        ),
        h("h1", null, "Two clicks to the paper’s number"),
        h(
          "p",
          null,
          "Open a line and copy its command. ",
          made.length
            ? `Of ${made.length} that were run here: ${counts.map(([verdict, times]) => `${times} ${verdict}`).join(", ")}.`
            : "No system was run here yet.",
          " The tolerances of OK and near are in points, and each line states its own.",
        ),
      ),
      h(
        "div",
        { class: "controls" },
        h(
          "div",
          { class: "row filters-row" },
          h(
            "label",
            { class: "field grow" },
            h("span", null, "Search"),
            h("input", {
              type: "search",
              "aria-label": "Search expectations",
              placeholder: "Search systems and sources",
              value: params.get("q") || "",
              oninput: (event) => change({ q: event.target.value }),
            }),
          ),
          pages.select("Verdict", VERDICTS, params.get("verdict") || "", (verdict) => change({ verdict })),
        ),
      ),
      body,
    );
    draw();
  }

  function change(changes) {
    pages.set(changes);
    for (const [name, value] of Object.entries(changes)) view.params.set(name, value);
    draw();
  }

  function draw() {
    const words = (view.params.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = view.params.get("verdict");
    view.shown = view.rows.filter(
      (row) =>
        (!verdict || row.verdict === verdict) &&
        words.every((word) => `${row.name} ${row.source} ${row.seen_with} ${row.data}`.toLowerCase().includes(word)),
    );
    view.selected = -1;
    const table = h(
      "table",
      { class: "reproductions" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["System", "Data", "Expected", "Observed", "Verdict"].map((text, i) =>
            h("th", { scope: "col", class: ["", "aside", "num", "num", ""][i] }, text),
          ),
        ),
      ),
    );
    const opened = (row) => String(row.number) === view.params.get("open");
    const lines = (row, position) => [line(row, position, opened(row)), opened(row) ? details(row) : null];
    const body = h(
      "div",
      null,
      view.shown.length
        ? pages.region("Expected and observed scores", pages.fillTable(table, view.shown, lines), "long")
        : h("p", { class: "empty" }, "Nothing matches."),
    );
    pages.supplant(view.body, body)();
    view.body = body;
  }

  function line(row, position, open) {
    const [dataset, measure, expected, observed] = main(row);
    return h(
      "tr",
      { "data-position": position },
      h(
        "th",
        { scope: "row", class: "system" },
        h(
          "div",
          { class: "system-name" },
          h(
            "button",
            {
              type: "button",
              class: "plain toggle",
              "aria-expanded": String(open),
              "aria-label": `Details of ${visible(row.name)}`,
              onclick: () => toggle(position),
            },
            "▸",
          ),
          named(row.name),
        ),
        h("small", { class: "muted" }, visible(row.seen_with || row.source)),
      ),
      h("td", { class: "aside" }, visible(row.data)),
      h("td", { class: "num", title: `${measure}, ${visible(dataset)}` }, figure(expected)),
      h("td", { class: "num" }, figure(observed)),
      h("td", null, chip(row.verdict)),
    );
  }

  function toggle(position) {
    const row = view.shown[position];
    const at = view.body.querySelector(`tr[data-position="${position}"]`);
    const open = at.nextElementSibling?.classList.contains("details");
    pages.set({ open: open ? "" : String(row.number) });
    at.querySelector(".toggle").setAttribute("aria-expanded", String(!open));
    if (open) at.nextElementSibling.remove();
    else at.after(details(row));
  }

  const details = (row) =>
    h(
      "tr",
      { class: "details" },
      h(
        "td",
        { colspan: 5 },
        h(
          "div",
          { class: "details-inner" },
          h("div", { class: "details-wide" }, pages.command(row.command)),
          h(
            "div",
            null,
            h("h3", null, "Scores"),
            pages.region(
              "Figures",
              h(
                "table",
                null,
                h(
                  "thead",
                  null,
                  h(
                    "tr",
                    null,
                    ["Dataset", "Measure", "Expected", "Observed", ""].map((text, i) =>
                      h("th", { scope: "col", class: i > 1 ? "num" : "" }, text),
                    ),
                  ),
                ),
                h(
                  "tbody",
                  null,
                  row.figures.map(([dataset, measure, expected, observed, verdict]) =>
                    h(
                      "tr",
                      null,
                      h("th", { scope: "row" }, named(dataset)),
                      h("td", null, visible(measure)),
                      h("td", { class: "num" }, figure(expected)),
                      h("td", { class: "num" }, figure(observed)),
                      h("td", null, verdict === "not run" ? "" : chip(verdict)),
                    ),
                  ),
                ),
              ),
            ),
          ),
          h(
            "div",
            null,
            h("h3", null, "Conditions"),
            h(
              "dl",
              { class: "facts" },
              [
                ["Source", row.source],
                ["Seen with", row.seen_with],
                ...row.conditions.map((text) => ["Condition", text]),
                ["OK", `within ${row.ok} points`],
                ["Near", `within ${row.near} points`],
                ["Run with", row.run_with],
              ]
                .filter(([, value]) => value)
                .map(([name, value]) => [h("dt", null, name), h("dd", null, named(value))]),
            ),
          ),
        ),
      ),
    );

  const select = (by) => {
    view.selected = pages.step(view.body, view.selected, by);
  };

  pages.page("reproduce", {
    title: "Reproduce",
    label: "Reproduce",
    keys: [
      ["j", "next line", () => select(1)],
      ["k", "previous line", () => select(-1)],
      [
        "o",
        "open or close the line",
        () => {
          if (view.selected >= 0) toggle(view.selected);
        },
      ],
    ],
    show,
  });
})();

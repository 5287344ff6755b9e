/* The view as it stands, as a file: CSV, JSON, Markdown, LaTeX. */
"use strict";

board.exports = (() => {
  const figure = (cell) => (cell.value === null ? "" : (100 * cell.value).toFixed(2));
  const heads = (view) => [
    "rank",
    "class",
    "system",
    "from",
    "kind",
    "llm",
    ...view.columns.map((column) => column.title),
  ];
  const line = (row) => [
    row.rank ?? "",
    row.level ?? "",
    row.name,
    row.reported_by || row.entry || row.from,
    row.kind,
    row.llm,
    ...row.cells.map(figure),
  ];

  /** @param {ExportedView} view */
  function csv(view) {
    // A cell that begins like a formula would be run by a spreadsheet.
    const cell = (value) => {
      const text = /^[=+\-@\t\r]/.test(String(value)) ? `'${value}` : String(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [heads(view), ...view.rows.map(line)].map((cells) => cells.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  const json = (view) =>
    `${JSON.stringify(
      {
        measure: view.measure,
        address: location.hash,
        rows: view.rows.map((row) => ({
          rank: row.rank ?? null,
          class: row.level,
          system: row.name,
          from: row.reported_by || row.entry || row.from,
          kind: row.kind,
          llm: row.llm,
          values: view.columns.map((column, i) => ({
            column: column.title,
            value: row.cells[i].value,
            low: row.cells[i].low,
            high: row.cells[i].high,
          })),
        })),
      },
      null,
      1,
    )}\n`;

  /** @param {ExportedView} view */
  function markdown(view) {
    const cell = (value) =>
      String(value)
        .replace(/[\\|`*_<>[\]]/g, "\\$&")
        .replace(/\s+/g, " ");
    const lines = [
      heads(view).map(cell),
      heads(view).map((_, i) => (i > 5 || i < 2 ? "---:" : "---")),
      ...view.rows.map((row) => line(row).map(cell)),
    ];
    return lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  }

  /** @param {ExportedView} view */
  function latex(view) {
    const cell = (value) => [...String(value).replace(/\s+/g, " ")].map((sign) => view.latex[sign] ?? sign).join("");
    const best = view.columns.map((_, i) => Math.max(...view.rows.map((row) => row.cells[i].value ?? -1)));
    const body = view.rows.map((row) => [
      cell(row.name),
      ...row.cells.map((each, i) =>
        each.value !== null && each.value === best[i] ? `\\textbf{${figure(each)}}` : figure(each),
      ),
    ]);
    return [
      `% ${view.measure} x 100; needs booktabs`,
      `\\begin{tabular}{l${"r".repeat(view.columns.length)}}`,
      "\\toprule",
      `${["System", ...view.columns.map((column) => cell(column.title))].join(" & ")} \\\\`,
      "\\midrule",
      ...body.map((cells) => `${cells.join(" & ")} \\\\`),
      "\\bottomrule",
      "\\end{tabular}",
      "",
    ].join("\n");
  }

  /** @type {[label: string, ending: string, type: string, make: (view: ExportedView) => string][]} */
  const FORMATS = [
    ["CSV", "csv", "text/csv", csv],
    ["JSON", "json", "application/json", json],
    ["Markdown", "md", "text/markdown", markdown],
    ["LaTeX", "tex", "application/x-tex", latex],
  ];

  /* Buttons that save the view that `current` returns: {measure, columns, rows, latex}. */
  const buttons = (current) =>
    board.h(
      "div",
      { class: "row" },
      board.h("span", { class: "muted" }, "This view as"),
      FORMATS.map(([label, ending, type, make]) =>
        board.h(
          "button",
          {
            type: "button",
            class: "plain",
            onclick: () => board.download(`leaderboard.${ending}`, make(current()), type),
          },
          label,
        ),
      ),
    );

  return { buttons, csv, json, markdown, latex };
})();

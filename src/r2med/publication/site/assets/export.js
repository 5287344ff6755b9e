/* Save the current view as a file: CSV, JSON, Markdown. */
"use strict";

pages.exports = (() => {
  const { KINDS } = pages.rows;
  const figure = (column, value) => (value === null ? "" : KINDS[column.kind].file(value));
  const heads = (view) => ["rank", "mark", "system", "from", "kind", "llm", ...view.columns.map(({ title }) => title)];
  const line = (view, row) => [
    row.rank ?? "",
    pages.rows.markOf(row.mark),
    row.name,
    row.reported_by || row.entry || row.from,
    row.kind,
    row.llm,
    ...row.cells.map(({ value }, i) => figure(view.columns[i], value)),
  ];

  /** @param {ExportedView} view */
  function csv(view) {
    // A spreadsheet would run a cell that begins like a formula.
    const cell = (value) => {
      const text = /^[=+\-@\t\r]/.test(String(value)) ? `'${value}` : String(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return (
      [heads(view), ...view.rows.map((row) => line(view, row))].map((cells) => cells.map(cell).join(",")).join("\r\n") +
      "\r\n"
    );
  }

  const json = (view) =>
    `${JSON.stringify(
      {
        measure: view.measure,
        labels: view.labels,
        address: location.hash,
        rows: view.rows.map((row) => ({
          rank: row.rank ?? null,
          mark: row.mark ?? null,
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
      [
        "---:",
        "---",
        "---",
        "---",
        "---",
        "---",
        ...view.columns.map(({ kind }) => (KINDS[kind].isText ? "---" : "---:")),
      ],
      ...view.rows.map((row) => line(view, row).map(cell)),
    ];
    return lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  }

  /** @type {{ label: string, ending: string, type: string, make: (view: ExportedView) => string }[]} */
  const FORMATS = [
    { label: "CSV", ending: "csv", type: "text/csv", make: csv },
    { label: "JSON", ending: "json", type: "application/json", make: json },
    { label: "Markdown", ending: "md", type: "text/markdown", make: markdown },
  ];

  /* Return buttons that save the view from `current`: {measure, columns, rows}. */
  const buttons = (current) =>
    pages.h(
      "div",
      { class: "row" },
      pages.h("span", { class: "muted" }, "Save this view as"),
      FORMATS.map(({ label, ending, type, make }) => {
        const save = () => pages.download(`leaderboard.${ending}`, make(current()), type);
        return pages.h("button", { type: "button", class: "plain", onclick: save }, label);
      }),
    );

  return { buttons, csv, json, markdown };
})();

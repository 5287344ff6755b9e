/* The details below an open row of the leaderboard: all scores, settings, the command. */
"use strict";

/** @param {RankedView} view */
pages.leaderboardDetails = (view) => {
  const { h, visible } = pages;
  const { points, count } = formats;
  const { KINDS } = pages.rows;

  /** @param {Row} row */
  const content = async (row) => [
    row.ours ? null : running(row),
    scores(row),
    row.ours ? await oursFacts(row) : publishedFacts(row),
  ];

  const scores = (row) => {
    const shown = view.columns
      .map((column, i) => ({ column, cell: row.cells[i] }))
      .filter(({ cell }) => !row.average_only || cell.value !== null);
    return h(
      "div",
      null,
      h("h3", null, "Scores"),
      parts.facts([
        ...shown.map(({ column, cell }) => ({ name: column.title, value: score(row, column, cell) })),
        ...(row.average_only ? [{ name: "Single datasets", value: "not published" }] : []),
      ]),
    );
  };

  const score = (row, column, cell) => [
    cell.value === null ? "–" : KINDS[column.kind].text(cell.value),
    cell.low === null ? "" : h("span", { class: "muted" }, ` ${points(cell.low)} to ${points(cell.high)}`),
    column.about && cell.value !== null
      ? h("small", { class: "muted" }, ` ${column.about} ${column.note?.(row) ?? ""}.`)
      : null,
  ];

  async function oursFacts(row) {
    const system = await pages.load(`system/${row.number}`);
    const facts = [
      ...(row.unverified ? [{ name: "Not verified", value: visible(row.unverified) }] : []),
      { name: "Kind", value: row.kind },
      { name: "LLM", value: row.llm || "none" },
      ...(row.runs ? [{ name: "Runs", value: row.runs }] : []),
      { name: "Failures", value: pages.failures.inWords(system) },
      ...parts.asFacts(system.settings),
    ];
    const explored = { a: row.name, data: pages.sets.explored(view.site, view.set) };
    return [
      h("div", null, h("h3", null, "Settings"), parts.facts(facts)),
      h(
        "div",
        { class: "details-wide" },
        h("h3", null, "Run it again"),
        parts.command(system.command),
        h(
          "p",
          { class: "row" },
          h("a", { href: pages.link("system", { name: row.name, set: view.set.name }) }, "System page"),
          h("a", { href: pages.link("explorer", explored) }, "Its queries in the explorer"),
        ),
      ),
    ];
  }

  function publishedFacts(row) {
    const facts = [
      { name: "Reported by", value: row.reported_by },
      { name: "Source", value: row.source },
      { name: "Note", value: row.note },
      { name: "Runs", value: row.runs },
      { name: "Maximum length", value: row.max_length && `${count(row.max_length)} tokens` },
      { name: "Retriever", value: row.retriever },
      { name: "Expansion", value: row.expansion },
      { name: "LLM", value: row.llm },
      { name: "Reranker", value: row.reranker },
    ].filter(({ value }) => value);
    return h("div", null, h("h3", null, "As published"), parts.facts(facts));
  }

  /* Return the command of a published row with its known differences, or the reason why there is none. */
  const running = (row) =>
    h(
      "div",
      { class: "details-wide" },
      row.command
        ? [
            h("h3", null, "Run it here"),
            parts.command(row.command),
            h(
              "p",
              null,
              row.differs
                ? `Known to differ from the published run: ${visible(row.differs)}.`
                : "No difference from the published run is known.",
            ),
          ]
        : [h("h3", null, "Why it cannot be run here"), h("p", null, visible(row.reason))],
    );

  return { content };
};

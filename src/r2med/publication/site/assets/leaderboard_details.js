/* The details below an open row of the leaderboard: all scores, settings, the command. */
"use strict";

/** @param {LeaderboardView} view */
pages.leaderboardDetails = (view) => {
  const { h, named, visible } = pages;
  const { points, count } = formats;
  const { KINDS } = pages.rows;

  async function details(position) {
    const line = view.body.querySelector(`tr[data-position="${position}"]`);
    const toggle = line?.querySelector(".toggle");
    if (!line || !toggle) return; // the row is not drawn yet
    const open = () => toggle.getAttribute("aria-expanded") === "true";
    toggle.setAttribute("aria-expanded", String(!open()));
    if (line.nextElementSibling?.classList.contains("details")) line.nextElementSibling.remove();
    if (!open()) return;
    const row = view.rows[position];
    const facts = row.ours ? await oursFacts(row) : publishedFacts(row);
    if (!open()) return; // the row was closed or sorted meanwhile
    line.after(
      h(
        "tr",
        { class: "details" },
        h(
          "td",
          { colspan: view.columns.length + 2 },
          h("div", { class: "details-inner" }, row.ours ? null : running(row), scores(row), facts),
        ),
      ),
    );
  }

  const scores = (row) =>
    h(
      "div",
      null,
      h("h3", null, "Scores"),
      h(
        "dl",
        { class: "facts" },
        view.columns.map((column, i) =>
          row.average_only && row.cells[i].value === null ? null : score(row, column, i),
        ),
        row.average_only ? [h("dt", null, "Single datasets"), h("dd", null, "not published")] : null,
      ),
    );

  const score = (row, column, i) => [
    h("dt", null, visible(column.title)),
    h(
      "dd",
      null,
      row.cells[i].value === null ? "–" : KINDS[column.kind].text(row.cells[i].value),
      row.cells[i].low === null
        ? ""
        : h("span", { class: "muted" }, ` ${points(row.cells[i].low)} to ${points(row.cells[i].high)}`),
      column.about && row.cells[i].value !== null
        ? h("small", { class: "muted" }, ` ${column.about} ${column.note?.(row) ?? ""}.`)
        : null,
    ),
  ];

  async function oursFacts(row) {
    const system = await pages.load(`system/${row.number}`);
    const facts = [
      ...(row.unverified || row.unknown ? [["Not verified", visible(row.unverified || row.unknown)]] : []),
      ["Kind", row.kind],
      ["LLM", row.llm || "none"],
      ["Failures", pages.failures.inWords(system)],
      ...system.settings.map(([name, value]) => [name, value]),
    ];
    return [
      h("div", null, h("h3", null, "Settings"), pages.facts(facts)),
      h(
        "div",
        { class: "details-wide" },
        h("h3", null, "Run it again"),
        pages.command(system.command),
        h(
          "p",
          { class: "row" },
          h("a", { href: pages.link("system", { name: row.name, set: view.set.name }) }, "System page"),
          h(
            "a",
            { href: pages.link("explorer", { a: row.name, data: pages.sets.explored(view.site, view.set) }) },
            "Its queries in the explorer",
          ),
        ),
      ),
    ];
  }

  function publishedFacts(row) {
    const facts = [
      ["Reported by", row.reported_by],
      ["Source", row.source],
      ["Note", row.note],
      ["Maximum length", row.max_length && `${count(row.max_length)} tokens`],
      ["Retriever", row.retriever],
      ["Expansion", row.expansion],
      ["LLM", row.llm],
      ["Reranker", row.reranker],
    ].filter(([, value]) => value);
    return h("div", null, h("h3", null, "As published"), pages.facts(facts));
  }

  /* Return the command of a published row with its known differences, or the reason why there is none. */
  const running = (row) =>
    row.command
      ? h(
          "div",
          { class: "details-wide" },
          h("h3", null, "Run it here"),
          pages.command(row.command),
          h(
            "p",
            null,
            row.differs
              ? `Known to differ from the published run: ${visible(row.differs)}.`
              : "No difference from the published run is known.",
          ),
        )
      : h(
          "div",
          { class: "details-wide" },
          h("h3", null, "Why it cannot be run here"),
          h("p", null, visible(row.reason)),
        );

  return { details };
};

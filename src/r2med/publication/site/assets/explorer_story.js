/* The conversation of an agent as a story: its turns, folded results, marks on relevant documents, and how it ended. */
"use strict";

pages.explorerStory = (() => {
  const { h, named } = pages;
  const STEPS = /** @type {const} */ (["returned", "shown", "opened", "cited", "kept"]);

  const part = (label, text) => (text ? [h("dt", null, label), h("dd", { class: "text" }, marks.readable(text))] : []);

  /* A long result is folded; its first line says what it is. */
  const folded = (label, title, content) =>
    content
      ? [
          h("dt", null, label),
          h(
            "dd",
            null,
            h(
              "details",
              { class: "result" },
              h("summary", null, title),
              h("p", { class: "text" }, marks.readable(content)),
            ),
          ),
        ]
      : [];

  /** @param {AgentTrace} trace */
  function documents(trace, label, ids) {
    if (!ids) return [];
    const relevant = new Set(trace.relevant);
    const found = ids.filter((id) => relevant.has(id)).length;
    const marked = (id) =>
      relevant.has(id)
        ? h("span", { class: "chip gold", title: "A relevant document" }, "★ ", named(id))
        : h("span", { class: "chip" }, named(id));
    return [
      h("dt", null, label),
      h(
        "dd",
        { class: "story-documents" },
        ids.map((id) => [marked(id), " "]),
        `${found} of ${ids.length} relevant`,
      ),
    ];
  }

  /* How far each relevant document came. */
  function fate(trace) {
    const steps = trace.steps;
    if (!steps || !trace.relevant.length) return null;
    const known = STEPS.filter((step) => steps[step]);
    const sign = (id, step) => (steps[step]?.includes(id) ? "✓" : "·");
    return parts.table(
      "Relevant documents",
      [
        { title: "Relevant document", isHead: true, cell: (id) => named(id) },
        ...known.map((step) => ({ title: step, num: true, cell: (id) => sign(id, step) })),
      ],
      trace.relevant,
      { kind: "fate" },
    );
  }

  function end(trace) {
    const sure = typeof trace.confidence === "number" ? `${Math.round(100 * trace.confidence)} %` : "";
    return h(
      "dl",
      { class: "facts turn" },
      part("Answer", trace.steps ? trace.text : ""),
      part("Confidence", sure),
      part("Ended", trace.failure ? `${trace.failure.kind}: ${trace.failure.message}` : ""),
      documents(trace, "Chosen", trace.chosen ?? trace.steps?.kept),
    );
  }

  /** Draw the trace of an agent. @param {AgentTrace} trace */
  function draw(trace) {
    let number = 0;
    // An agent with tools may make several calls in one turn of the model.
    const label = (turn) => (turn.further ? `Turn ${number}, next call` : `Turn ${++number}`);
    const lines = (text) => `${text.length.toLocaleString("en")} characters`;
    return [
      fate(trace) ?? "",
      h("dl", { class: "facts turn" }, folded("Prompt", lines(trace.prompt), trace.prompt)),
      ...trace.turns.map((turn) =>
        h(
          "dl",
          { class: "facts turn", tabindex: -1 },
          part(label(turn), turn.text),
          part("Search", turn.query),
          part("Status", turn.status === "ok" ? "" : turn.status),
          part("Notice", turn.notice),
          documents(
            trace,
            "Retrieved",
            turn.documents?.map(({ id }) => id),
          ),
          documents(trace, "Opened", turn.opened),
          folded("Shown", lines(turn.information ?? ""), turn.information),
          part("Analysis", turn.analysis),
        ),
      ),
      end(trace),
    ];
  }

  /* Open the story on the screen, or move to its next or previous turn. */
  function step(by) {
    const story = /** @type {HTMLDetailsElement | null} */ (document.querySelector("details.story"));
    if (!story) return;
    story.open = true;
    const turns = /** @type {HTMLElement[]} */ ([...story.querySelectorAll("dl.turn[tabindex]")]);
    const at = turns.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = turns[at < 0 ? (by > 0 ? 0 : turns.length - 1) : Math.max(0, Math.min(turns.length - 1, at + by))];
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: "center" });
  }

  /* Open or close the results of the turn that has the focus, or of all turns. */
  function unfold() {
    const within = document.activeElement?.closest("dl.turn") ?? document.querySelector("details.story");
    const all = /** @type {HTMLDetailsElement[]} */ ([...(within?.querySelectorAll("details.result") ?? [])]);
    const open = all.some((each) => !each.open);
    for (const each of all) each.open = open;
  }

  return { draw, step, unfold };
})();

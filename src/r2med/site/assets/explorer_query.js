/* One query in the explorer: its text, and where every system ranks its relevant documents. */
"use strict";

/** @param {ExplorerView} view */
board.explorerQuery = (view) => {
  const { h, named, ledger, ranking } = board;
  const { counted } = formats;
  const { ranksOf, sides } = view.scores;
  const LONG = 900; // characters of a query that is folded

  const key = (side, text) => h("span", { class: `key key-${side}` }, text);

  /* What is marked in texts for a system: the query's words, and those of the text that was generated for it. */
  function wantedBy(system) {
    const own = view.query.generated.find(([, , systems]) => systems.includes(system));
    return marks.words(view.query, view.index, own ? own[1] : []);
  }

  /* Who A and B are, with the marks that they have in all drawings. */
  const who = () =>
    h(
      "p",
      { class: "who" },
      ["a", "b"]
        .filter((side) => view.chosen[side])
        .map((side) => h("span", null, key(side, `${side.toUpperCase()} `), named(view.chosen[side]))),
    );

  /* The text of a query; a long one is folded. */
  function questionOf(text) {
    const question = h("p", { class: "question text" }, marks.readable(text));
    if (text.length <= LONG) return [question];
    question.classList.add("folded");
    const unfold = (event) => {
      const open = !question.classList.toggle("folded");
      event.target.setAttribute("aria-expanded", String(open));
      event.target.textContent = open ? "Less" : "The whole query";
    };
    const attributes = { type: "button", class: "plain more", "aria-expanded": "false", onclick: unfold };
    return [question, h("button", attributes, "The whole query")];
  }

  /* Which query it is of those listed, and buttons to the one before and after it. */
  function steps(position) {
    const at = view.shown.indexOf(position);
    const turn = (by, label, sign) =>
      h(
        "button",
        {
          type: "button",
          class: "plain turn-query",
          "data-focus": label,
          "aria-label": label,
          disabled: view.shown[at + by] === undefined,
          onclick: () => view.step(by),
        },
        sign,
      );
    return h(
      "div",
      { class: "query-steps" },
      turn(-1, "Previous query", "‹"),
      h("span", { class: "muted" }, at < 0 ? "" : `${at + 1} of ${view.shown.length}`),
      turn(1, "Next query", "›"),
    );
  }

  function heading(position) {
    const [id, text, answer, body] = view.index.queries[position];
    const about = [named(view.dataset.name), " · query ", named(id)];
    return h(
      "header",
      { class: "query-head" },
      h(
        "div",
        { class: "row spread query-bar" },
        h("p", { class: "eyebrow" }, about, body ? [" · ", h("bdi", null, marks.readable(body))] : null),
        steps(position),
      ),
      who(),
      questionOf(text),
      answer
        ? h(
            "details",
            { class: "answer" },
            h("summary", null, "Gold answer"),
            h("p", null, h("bdi", null, marks.readable(answer))),
          )
        : null,
    );
  }

  function drawLedger(position) {
    const [a, b] = sides();
    const gold = view.query.documents.slice(0, view.query.gold);
    if (!gold.length) return h("p", { class: "note" }, "No document is judged relevant to this query.");
    const of = (system, i) => (system === undefined ? null : (ranksOf(system, position)[i] ?? 0));
    const rows = gold.map((document, i) => {
      const ranks = view.index.systems.map((system) => [view.site.systems[system].name, of(system, i)]);
      const wanted = wantedBy(b ?? a);
      const open = () => [
        ledger.standings(ranks),
        ...(document[1] === null
          ? [h("p", { class: "muted" }, "This document is not in the corpus.")]
          : ranking.text(document[1], document[2], document[3], wanted)),
      ];
      return { name: document[0], ranks, a: of(a, i), b: of(b, i), open };
    });
    const nobody = rows.filter((row) => row.ranks.every(([, rank]) => !rank)).length;
    return h(
      "section",
      { class: "section" },
      h(
        "div",
        { class: "row spread" },
        h("h2", null, "Where the relevant documents are"),
        h(
          "p",
          { class: "legend" },
          key("a", "A"),
          b === undefined ? null : key("b", "B"),
          h("span", { class: "key-tick" }),
          `each of ${counted(view.index.systems.length, "system")}`,
        ),
      ),
      nobody
        ? h(
            "p",
            { class: "note" },
            `${nobody} of ${counted(gold.length, "relevant document")} ${nobody === 1 ? "is" : "are"} found by nobody.`,
          )
        : null,
      ledger.ledger(rows),
    );
  }

  return { heading, drawLedger, wantedBy };
};

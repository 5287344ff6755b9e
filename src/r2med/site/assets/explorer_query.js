/* One query in the explorer: its text, and the ranks of its relevant documents in every system. */
"use strict";

/** @param {ExplorerView} view */
board.explorerQuery = (view) => {
  const { h, named, ledger, ranking } = board;
  const { counted } = formats;
  const { ranksOf, sides } = view.scores;
  const LONG = 900; // a query with more characters is folded

  const key = (side, text) => h("span", { class: `key key-${side}` }, text);

  /* Return the words to mark in texts for a system: those of the query and of its generated texts. */
  function wantedBy(system) {
    const own = view.query.generated.find(([, , systems]) => systems.includes(system));
    return marks.words(view.query, view.index, own ? own[1] : []);
  }

  /* Draw the legend of A and B, with their marks in all drawings. */
  const who = () =>
    h(
      "p",
      { class: "who" },
      ["a", "b"]
        .filter((side) => view.chosen[side])
        .map((side) => h("span", null, key(side, `${side.toUpperCase()} `), named(view.chosen[side]))),
    );

  /* Draw the text of a query. A long text is folded. */
  function questionOf(text) {
    const question = h("p", { class: "question text" }, marks.readable(text));
    if (text.length <= LONG) return [question];
    question.classList.add("folded");
    const unfold = (event) => {
      const open = !question.classList.toggle("folded");
      event.target.setAttribute("aria-expanded", String(open));
      event.target.textContent = open ? "Show less" : "Show the whole query";
    };
    const attributes = { type: "button", class: "plain more", "aria-expanded": "false", onclick: unfold };
    return [question, h("button", attributes, "Show the whole query")];
  }

  /* Draw the number of the query in the list, and buttons to the previous and the next query. */
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
            h("summary", null, "Reference answer"),
            h("p", null, h("bdi", null, marks.readable(answer))),
          )
        : null,
    );
  }

  function drawLedger(position) {
    const [a, b] = sides();
    const relevant = view.query.documents.slice(0, view.query.gold);
    if (!relevant.length) return h("p", { class: "note" }, "No document is judged relevant to this query.");
    const of = (system, i) => (system === undefined ? null : (ranksOf(system, position)[i] ?? 0));
    const rows = relevant.map((document, i) => {
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
    const unfound = rows.filter((row) => row.ranks.every(([, rank]) => !rank)).length;
    return h(
      "section",
      { class: "section" },
      h(
        "div",
        { class: "row spread" },
        h("h2", null, "Ranks of the relevant documents"),
        h(
          "p",
          { class: "legend" },
          key("a", "A"),
          b === undefined ? null : key("b", "B"),
          h("span", { class: "key-tick" }),
          `each of ${counted(view.index.systems.length, "system")}`,
        ),
      ),
      unfound
        ? h("p", { class: "note" }, `No system finds ${unfound} of ${counted(relevant.length, "relevant document")}.`)
        : null,
      ledger.ledger(rows),
    );
  }

  return { heading, drawLedger, wantedBy };
};

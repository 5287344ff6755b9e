/* One query in the explorer: its text, and the ranks of its relevant documents in every system. */
"use strict";

/** @param {ExplorerView} view */
pages.explorerQuery = (view) => {
  const { h, named, ledger, ranking } = pages;
  const { counted } = formats;
  const { ranksOf, sides } = view.scores;
  const LONG = 900; // a query with more characters is folded

  const key = (side, text) => h("span", { class: `key key-${side}` }, text);

  /* Return the words to mark in texts for a system: those of the query and of its generated texts. */
  function wantedBy(system) {
    const own = view.query.generated.find(({ systems }) => systems.includes(system));
    return marks.words(view.query, view.index, own?.terms ?? []);
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
    const { id, text, answer, body } = view.index.queries[position];
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
      reference(answer),
    );
  }

  /* Draw the reference answer, closed. A query may have none. */
  const reference = (answer) =>
    answer
      ? h(
          "details",
          { class: "answer" },
          h("summary", null, "Reference answer"),
          h("p", null, h("bdi", null, marks.readable(answer))),
        )
      : null;

  function drawLedger(position) {
    const [a, b] = sides();
    const relevant = view.query.documents.slice(0, view.query.gold);
    if (!relevant.length) return h("p", { class: "note" }, "No document is judged relevant to this query.");
    const of = (system, i) => (system === undefined ? null : (ranksOf(system, position)[i] ?? 0));
    const rows = relevant.map((document, i) => {
      const ranks = view.index.systems.map((system) => ({
        name: view.site.systems[system].name,
        rank: of(system, i) ?? 0,
      }));
      const wanted = wantedBy(b ?? a);
      const open = () => [ledger.standings(ranks), ...ranking.text(document, wanted)];
      return { name: document.id, ranks, a: of(a, i), b: of(b, i), open };
    });
    const unfound = rows.filter((row) => row.ranks.every(({ rank }) => !rank)).length;
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
      unfound ? h("p", { class: "note" }, unfoundSentence(unfound, relevant.length)) : null,
      ledger.ledger(rows),
    );
  }

  function unfoundSentence(unfound, all) {
    if (all === 1) return "No system finds the relevant document.";
    if (unfound === all) return `No system finds any of the ${all} relevant documents.`;
    return `${unfound} of ${all} relevant documents ${unfound === 1 ? "is" : "are"} found by no system.`;
  }

  const FOUND = 10; // an aspect is found if one of its documents is among the first ten

  /* Draw which systems find each aspect of the answer, if the dataset has aspects. */
  function drawAspects(position) {
    const { aspects } = view.query;
    if (!aspects.length) return [];
    const total = aspects.reduce((sum, { weight }) => sum + weight, 0);
    const finds = (system, documents) =>
      documents.some((i) => {
        const rank = ranksOf(system, position)[i];
        return rank && rank <= FOUND;
      });
    const lines = aspects.map(({ name, weight, documents }) => {
      const found = view.index.systems.filter((system) => finds(system, documents));
      return { name, share: weight / total, found: found.map((system) => view.site.systems[system].name) };
    });
    const lost = lines.filter((line) => !line.found.length).length;
    return [
      h(
        "section",
        { class: "section aspects" },
        h("h2", null, "Aspects of the answer"),
        lost ? h("p", { class: "note" }, `No system finds ${lost} of ${counted(aspects.length, "aspect")}.`) : null,
        parts.table(
          "Aspects of the answer",
          [
            { title: "Aspect", cell: ({ name }) => h("bdi", null, marks.readable(name)) },
            { title: "Weight", num: true, cell: ({ share }) => `${formats.points(share, 0)} %` },
            { title: "Found in the first ten by", cell: ({ found }) => foundBy(found) },
          ],
          lines,
        ),
      ),
    ];
  }

  /* Draw the systems that find an aspect: all, some of them by name, or none. */
  function foundBy(found) {
    const all = view.index.systems.length;
    if (!found.length) return h("strong", null, "No system finds this aspect");
    if (found.length === all && all > 3) return `all ${all} systems`;
    const shown = found.slice(0, 3).flatMap((name, i) => (i ? [", ", named(name)] : [named(name)]));
    return [...shown, found.length > 3 ? ` and ${found.length - 3} more` : ""];
  }

  return { heading, reference, drawLedger, drawAspects, wantedBy };
};

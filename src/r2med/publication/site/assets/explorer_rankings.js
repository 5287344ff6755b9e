/* The rankings of one query in the explorer: the ranking of A, or those of A and B side by side. */
"use strict";

/** @param {ExplorerView} view */
pages.explorerRankings = (view) => {
  const { h, named, ledger, ranking } = pages;
  const { points } = formats;
  const { kept, standing, mean, valueOf, ranksOf, sides } = view.scores;

  function generated(system, letter, position, file) {
    const own = view.query.generated.find(({ systems }) => systems.includes(system));
    const wanted = view.wantedBy(-1);
    const folded = (title, kind = "") => h("details", { class: `generated ${kind}` }, h("summary", null, title));
    const text = own && folded(`Texts that ${letter} searched with`);
    if (text)
      pages.afterFrame(() =>
        text.append(
          ...own.texts.map((each) => h("p", { class: "text" }, marks.draw(each, marks.matches(each, wanted)))),
        ),
      );
    const trace = file.traces.includes(position) && folded(`Steps of ${letter}, turn by turn`, "story");
    if (trace)
      trace.addEventListener(
        "toggle",
        async () =>
          trace.append(
            ...(await pages.load(`explorer/${view.number}/t${system}-${position}`)).flatMap(pages.explorerStory.draw),
          ),
        { once: true },
      );
    return [text, trace];
  }

  function sidePicker(letter) {
    const options = standing().map((each) => ({
      value: view.site.systems[each].name,
      label: `${view.site.systems[each].name}  ·  ${points(mean(each), 1)}`,
    }));
    const field = parts.select(letter, options, "", (name) => view.choose({ [letter.toLowerCase()]: name }));
    field.classList.add("side-picker", `picker-${letter.toLowerCase()}`);
    const select = /** @type {HTMLSelectElement} */ (field.querySelector("select"));
    select.dataset.focus = letter;
    return { field, select };
  }

  /* Draw the head of a side: the system, its score for this query, and failures. */
  function sideHead(letter, system, position, file) {
    const value = valueOf(system, position);
    const failure = file.failures.find(({ query }) => query === position);
    const copied = file.copies.find(({ query }) => query === position);
    const grades = view.gold.grades[view.judged.get(position) ?? -1];
    const { field, select } = kept(`picker ${letter} ${view.chosen.measure}`, () => sidePicker(letter));
    select.value = view.site.systems[system].name;
    return h(
      "div",
      { class: "side-head" },
      field,
      h(
        "p",
        { class: "side-figures" },
        value === null ? "not judged" : [h("b", null, points(value)), ` ${view.chosen.measure}`],
        copied && value !== null
          ? h(
              "span",
              { class: "muted", title: "Documents with the same text as a relevant document count as that document" },
              ` · ${points(pages.measure.query(view.chosen.measure, copied.ranks, grades))} with copies counted`,
            )
          : null,
      ),
      failure
        ? h(
            "p",
            { class: "failure" },
            h("span", { class: "chip bad" }, "failed"),
            " ",
            h("bdi", null, marks.readable(failure.text)),
          )
        : null,
      generated(system, letter, position, file),
    );
  }

  /* On a phone, only one side is shown at a time. */
  const sideSwitch = () => {
    const group = parts.segmented(
      "Side",
      [
        { value: "a", label: "A" },
        { value: "b", label: "B" },
      ],
      view.side,
      (side) => {
        view.side = /** @type {"a" | "b"} */ (side);
        view.body.querySelector(".pair")?.setAttribute("data-side", side);
      },
    );
    group.classList.add("side-switch");
    return group;
  };

  /** @returns {Side[]} */
  const bothSides = (position) =>
    view.files.map((file, i) => {
      const system = sides()[i];
      return {
        letter: i ? "B" : "A",
        system,
        file,
        documents: view.query.documents,
        said: new Map(view.query.said.map(({ document, lines }) => [document, lines])),
        cited: view.citedBy(view.answers[i]),
        ranking: file.rankings[position],
        scores: file.scores[position],
        wanted: view.wantedBy(system),
      };
    });

  /* Draw the ranking of one side. `other` is the side to compare with. */
  function column(position, side, other) {
    const rankIn = (document) =>
      document < view.query.gold
        ? (ranksOf(other.system, position)[document] ?? 0)
        : other.ranking.indexOf(document) + 1;
    return h(
      "section",
      { class: "side", "aria-label": `Ranking of ${side.letter}` },
      sideHead(side.letter, side.system, position, side.file),
      side.ranking.length ? ranking.list(side, other && rankIn) : h("p", { class: "empty" }, "Nothing was retrieved."),
    );
  }

  /* Draw the difference of two rankings in words, and both side by side with lines between them. */
  function pair(position, a, b, legend) {
    const { gold: relevant, documents } = view.query;
    const ranks = (side, i) => ranksOf(side.system, position)[i] ?? 0;
    const moves = documents.slice(0, relevant).map(({ id }, i) => ({ id, a: ranks(a, i), b: ranks(b, i) }));
    const values = [a, b].map((side) => valueOf(side.system, position));
    const between = h("div", { class: "between" });
    pages.afterFrame(() => between.append(ledger.slope(a.ranking, b.ranking, (document) => document < relevant)));
    return [
      ranking.summary(a.ranking, b.ranking, moves, view.chosen.measure, values),
      legend,
      sideSwitch(),
      h("div", { class: "pair", "data-side": view.side }, column(position, a, b), between, column(position, b, a)),
    ];
  }

  function drawRankings(position) {
    const [a, b] = bothSides(position);
    const isGenerated = ({ system }) => view.query.generated.some(({ systems }) => systems.includes(system));
    const legend = marks.legend([a, b].some((side) => side && isGenerated(side)));
    return h(
      "section",
      { class: "section" },
      h(
        "div",
        { class: "row spread" },
        h("h2", null, b ? "Two rankings" : "Ranking"),
        h(
          "button",
          { type: "button", "data-focus": "compare", onclick: view.compare },
          b ? "Close the comparison" : "Compare with another system",
        ),
      ),
      b ? pair(position, a, b, legend) : [legend, column(position, a)],
    );
  }

  return { drawRankings };
};

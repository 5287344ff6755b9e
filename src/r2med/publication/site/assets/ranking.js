/* The ranking of one system for one query, alone or beside another ranking. */
"use strict";

pages.ranking = (() => {
  const { h, named } = pages;
  const { points, count } = formats;
  const WINDOW = 320;
  const COMPARED = 10;
  const AT_ONCE = 3;

  /**
   * Draw the text of a document with the words of the query and of generated texts marked.
   * @param {ShownDocument} document
   * @param {WantedWords} wanted
   */
  const text = (document, wanted) => excerpt(document, (content) => marks.matches(content, wanted));

  /**
   * Draw the text of a document that can be opened. It shows the window with the most matches first, and after a click
   * the whole text in the data file.
   * @param {ShownDocument} document
   * @param {(content: string) => Match[]} matchesIn
   */
  function excerpt({ text: content, before, after }, matchesIn) {
    if (content === null) return [h("p", { class: "muted" }, "This document is not in the corpus.")];
    const all = matchesIn(content);
    const left = (size) => (size ? `⋯ ${count(size)} characters left out ⋯` : "");
    const cut = { before: left(before), after: left(after) };
    const { body, more } = marks.excerpt(content, all, marks.best(content, all, WINDOW), cut);
    return more ? [body, more] : [body];
  }

  const relevance = (grade) => (grade > 1 ? `relevant, grade ${grade}` : "relevant");

  /**
   * @param {ShownDocument} document
   * @param {ShownDocument[]} documents
   */
  function judgement({ grade, copy }, documents) {
    if (grade !== null && grade > 0) return parts.chip({ text: relevance(grade), kind: "gold" });
    if (copy !== null) return h("span", { class: "chip copy" }, "same text as relevant ", named(documents[copy].id));
    return h("span", { class: "muted judgement" }, grade !== null ? "judged not relevant" : "unjudged");
  }

  /* Draw how many readers cite a document in their answers. */
  const citations = (readers) =>
    readers
      ? h(
          "span",
          { class: "chip solid", title: readers.map(pages.visible).join(", ") },
          `cited by ${formats.counted(readers.length, "reader")}`,
        )
      : null;

  /* Draw the rank of a document in the other system, with an arrow. */
  function elsewhere(rank, other, letter, isGold) {
    if (!other)
      return h("span", { class: "elsewhere out" }, isGold ? `beyond ${letter}’s depth` : `not in ${letter}’s top`);
    const turn = other === rank ? "same" : other < rank ? "higher" : "lower";
    const sign = { same: "=", higher: "↑", lower: "↓" }[turn];
    return h("span", { class: `elsewhere ${turn}` }, `${letter} `, h("b", null, `${sign} ${count(other)}`));
  }

  /* Draw who labelled a document in an overlay, and why. */
  /** @param {LabelLine} line */
  const label = ({ who, grade, why }) =>
    h(
      "p",
      { class: "said" },
      h("bdi", null, pages.visible(who)),
      `: ${grade > 0 ? relevance(grade) : "not relevant"}`,
      why ? [". ", h("bdi", null, marks.readable(why))] : null,
    );

  function hit({ letter, documents, said, cited, ranking, scores, wanted }, i, other) {
    const document = documents[ranking[i]];
    const isRelevant = (document.grade ?? 0) > 0;
    return h(
      "li",
      { class: isRelevant ? "hit gold" : "hit" },
      h("span", { class: "hit-rank" }, i + 1),
      h(
        "div",
        { class: "hit-body" },
        h(
          "p",
          { class: "hit-head" },
          named(document.id),
          judgement(document, documents),
          citations(cited.get(ranking[i])),
          h("span", { class: "grow" }),
          other && elsewhere(i + 1, other(ranking[i]), letter === "A" ? "B" : "A", isRelevant),
          h("span", { class: "score", title: "score" }, Number(scores[i].toPrecision(4)).toString()),
        ),
        text(document, wanted),
        said.get(ranking[i])?.map(label),
      ),
    );
  }

  /**
   * Draw the list of a side. `other(position)` is the rank of a document on the other side.
   * @param {Side} side
   * @param {(document: number) => number} [other]
   */
  const list = (side, other) =>
    pages.fillInTurn(
      h("ol", { class: `ranking ${side.letter.toLowerCase()}` }),
      side.ranking.length,
      (i) => hit(side, i, other),
      AT_ONCE,
    );

  /* Return how far a document moves. Ranks at the top count most, and those beyond the depth are very low. */
  const distance = ({ a, b }) => Math.abs(Math.log((a || 1e5) / (b || 1e5)));

  /* Return sentences on how two rankings differ. `relevant` are {id, rank in a, rank in b}, 0 beyond the depth. */
  function summary(a, b, relevant, measure, values) {
    const first = b.slice(0, COMPARED);
    const lost = a.slice(0, COMPARED).filter((position) => !first.includes(position)).length;
    const size = Math.min(COMPARED, a.length);
    const of = (rank) => (rank ? count(rank) : "beyond the depth");
    const moves = relevant.filter((each) => each.a !== each.b).sort((p, q) => distance(q) - distance(p));
    const namedMoves = moves
      .slice(0, 3)
      .flatMap((each, i) => [i ? ", " : "", named(each.id), ` moves from ${of(each.a)} to ${of(each.b)}`]);
    return h(
      "p",
      { class: "summary" },
      lost
        ? `${lost} of A’s top ${size} ${lost === 1 ? "is" : "are"} not in B’s. `
        : `A and B have the same top ${size}, in ${a.slice(0, size).every((position, i) => position === first[i]) ? "the same" : "another"} order. `,
      moves.length
        ? ["Relevant ", ...namedMoves, moves.length > 3 ? `, and ${moves.length - 3} more move. ` : ". "]
        : relevant.some((each) => each.a)
          ? "No relevant document moves. "
          : "Neither finds a relevant document. ",
      values[0] === null ? null : `${measure} goes from ${points(values[0])} to ${points(values[1])}.`,
    );
  }

  /**
   * Return τ_AP of two top lists, the mean of both directions. It is 1 for the same order and −1 for the reverse order.
   * Differences at the top count most. A document that a list does not show ranks below all shown ones. The order of
   * two such documents is unknown.
   * @param {number[]} x
   * @param {number[]} y
   */
  function tauAP(x, y) {
    const one = (reference, ranked) => {
      if (ranked.length < 2) return ranked.length === reference.length ? 1 : 0;
      const place = new Map(reference.map((document, i) => [document, i]));
      let sum = 0;
      for (let i = 1; i < ranked.length; i += 1) {
        const own = place.get(ranked[i]) ?? Infinity;
        let right = 0;
        for (let j = 0; j < i; j += 1) {
          const above = place.get(ranked[j]) ?? Infinity;
          right += above < own ? 1 : above === own ? 0.5 : 0;
        }
        sum += right / i;
      }
      return (2 * sum) / (ranked.length - 1) - 1;
    };
    return (one(x, y) + one(y, x)) / 2;
  }

  return { list, text, excerpt, judgement, summary, tauAP };
})();

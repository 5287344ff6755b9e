/* The answers below the rankings of a query: what each reader answered, which passages it cites, and how it was judged. */
"use strict";

/** @param {ExplorerView} view */
pages.explorerAnswers = (view) => {
  const { h, named } = pages;
  const { counted, count } = formats;
  const WORD = /\p{L}[\p{L}\p{N}-]{4,}|\p{N}[\p{N}.,]+/gu; // words that say something: long ones, and numbers

  /* Conditions, measures and statuses. A board without answers has none. */
  const labels = /** @type {AnswerLabels} */ (view.site.answers);
  const FOUND = {
    support: { sign: "✓", what: "in the answer" },
    partial: { sign: "◐", what: "partly in the answer" },
    none: { sign: "✗", what: "not in the answer" },
  };
  const SUPPORTED = { kind: "supported", sign: "✓", title: "The cited passages support this sentence" };
  const UNSUPPORTED = { kind: "unsupported", sign: "✗", title: "The cited passages do not support this sentence" };
  const UNDECIDED = {
    kind: "undecided",
    sign: "",
    title: "No judge decided if the cited passages support this sentence",
  };
  const support = (supported) => (supported === null ? UNDECIDED : supported ? SUPPORTED : UNSUPPORTED);

  /** Load the answers of the systems on the screen; null for a system without answers to this query. */
  const load = (systems, position) =>
    Promise.all(
      systems.map((system) =>
        view.answered.get(system)?.has(position) ? pages.load(`explorer/${view.number}/a${system}-${position}`) : null,
      ),
    );

  /**
   * Return document -> readers that cite it when they read the system's passages.
   * @param {AnswersFile | null} file
   */
  function citedBy(file) {
    /** @type {Map<number, string[]>} */
    const cited = new Map();
    for (const { reader, answers } of file?.readers ?? [])
      for (const { condition, sentences, read } of answers)
        if (condition === labels.condition)
          for (const at of new Set(sentences.flatMap((sentence) => sentence.cited))) {
            const names = cited.get(read[at]) ?? [];
            if (!names.includes(reader)) cited.set(read[at], [...names, reader]);
          }
    return cited;
  }

  /* --- the verdict ------------------------------------------------------------------------------------------------- */

  /** @param {ShownAnswer} answer */
  function verdict({ status, grade, scores }) {
    const { accuracy } = scores;
    if (status !== "answered") return { sign: "✗", text: status, kind: "bad" };
    if (grade && accuracy === 0) return { sign: "✗", text: labels.grades[grade], kind: "bad" };
    if (accuracy === undefined) return { sign: "?", text: "not judged", kind: "" };
    return accuracy >= 1 ? { sign: "✓", text: "right", kind: "solid" } : { sign: "✗", text: "wrong", kind: "bad" };
  }

  /**
   * Return why an answer was judged as it was.
   * @param {ShownAnswer} answer
   * @param {ReaderAnswers} reader
   * @returns {Fact[]}
   */
  function reasons(answer, { judge, own_family }) {
    const { by_rule, grade, remarks, why, nuggets, statements, scores, status, failure, options } = answer;
    const rule = options.length ? "the chosen option" : "comparison with the reference answer";
    const says = (value) => (value === null ? "cannot decide" : value ? "right" : "wrong");
    const about = labels.statuses[status];
    const all = [
      about && { name: "Status", value: [about, failure ? [" ", text(failure)] : null] },
      status === "answered" && { name: "Rule", value: `${says(by_rule)} (${rule})` },
      remarks.length && { name: "Remarks", value: `${remarks.join(", ")}: shown only, they decide nothing` },
      (grade || why) && {
        name: "Judge",
        value: [
          judge ? [named(judge), ": "] : null,
          grade ? labels.grades[grade] : "no verdict",
          own_family ? [" ", parts.chip({ text: "the reader’s own family", kind: "bad" })] : null,
          why ? [". ", text(why)] : null,
        ],
      },
      nuggets.length && { name: "Facts", value: nuggetList(nuggets) },
      statements.all && {
        name: "Statements",
        value: `${statements.found} of ${counted(statements.all, "statement")} say such a fact`,
      },
      Object.keys(scores).length && { name: "Scores", value: inWords(scores) },
    ];
    return /** @type {Fact[]} */ (all.filter(Boolean));
  }

  const inWords = (scores) =>
    Object.entries(scores)
      .map(([name, value]) => `${pages.answerRows.titleOf(labels, name)} ${formats.points(value, 0)}`)
      .join(" · ");

  const readIn = (condition) => labels.conditions.find(({ name }) => name === condition)?.read ?? condition;

  const text = (content) => h("bdi", null, marks.readable(content));

  /** @param {ShownNugget[]} nuggets */
  const nuggetList = (nuggets) =>
    h(
      "ul",
      { class: "nuggets" },
      nuggets.map(({ text: content, vital, found }) =>
        h(
          "li",
          { class: found },
          h("span", { "aria-hidden": "true" }, FOUND[found].sign),
          h("span", null, text(content), h("span", { class: "muted" }, ` ${FOUND[found].what}`)),
          vital === null ? null : h("span", { class: "chip" }, vital ? "vital" : "okay"),
        ),
      ),
    );

  /* --- the answer and its passages --------------------------------------------------------------------------------- */

  /** @type {(file: AnswersFile, place: number) => ShownDocument} */
  const documentAt = (file, place) => view.query.documents[place] ?? file.more[place - view.query.documents.length];

  /* Return the words of a text that also occur in the sentences that cite it. */
  function sharedWords(content, sentences) {
    const folded = (word) => word.toLowerCase();
    const wanted = new Set(sentences.flatMap((each) => (each.match(WORD) ?? []).map(folded)));
    return [...content.matchAll(WORD)]
      .filter(({ 0: word }) => wanted.has(folded(word)))
      .map(({ 0: word, index }) => ({
        start: index,
        stop: index + word.length,
        term: [...wanted].indexOf(folded(word)),
        kind: /** @type {const} */ ("answer"),
        common: false,
      }));
  }

  /**
   * Draw the passages that a reader read. Return the fold, and a function that opens it at a passage.
   * @param {ShownAnswer} answer
   * @param {AnswersFile} file
   */
  function passages({ read, sentences, cut }, file) {
    const citing = read.map((_, at) =>
      sentences.filter(({ cited }) => cited.includes(at)).map(({ text: each }) => each),
    );
    const used = citing.filter((each) => each.length).length;
    const items = read.map((place, at) => passage(documentAt(file, place), citing[at], at));
    const fold = h(
      "details",
      { class: "read" },
      h(
        "summary",
        null,
        `${counted(read.length, "passage")} read, ${count(used)} cited`,
        cut ? `, ${count(cut)} shortened or left out` : "",
      ),
      h("ol", null, items),
    );
    const point = (at, on) => items[at].classList.toggle("hinted", on);
    const open = (at) => {
      /** @type {HTMLDetailsElement} */ (fold).open = true;
      items.forEach((item, i) => item.classList.toggle("pointed", i === at));
      items[at].focus({ preventScroll: true });
      items[at].scrollIntoView({ block: "center" });
    };
    return { fold: read.length ? fold : null, open, point };
  }

  function passage(document, citing, at) {
    return h(
      "li",
      { class: "passage", tabindex: -1 },
      h(
        "p",
        { class: "hit-head" },
        h("b", null, `[${at + 1}]`),
        named(document.id),
        pages.ranking.judgement(document, view.query.documents),
        citing.length ? h("span", { class: "chip solid" }, `cited by ${counted(citing.length, "sentence")}`) : null,
      ),
      pages.ranking.excerpt(document, (content) => sharedWords(content, citing)),
    );
  }

  /**
   * Draw the sentences of an answer, each with its citations.
   * @param {ShownAnswer} answer
   * @param {AnswersFile} file
   * @param {{ open: (at: number) => void, point: (at: number, on: boolean) => void }} shown
   */
  function sentencesOf(answer, file, shown) {
    const cite = (at) =>
      h(
        "button",
        {
          type: "button",
          class: "cite",
          title: pages.visible(documentAt(file, answer.read[at]).id),
          "aria-label": `Passage ${at + 1}`,
          onclick: () => shown.open(at),
          onpointerenter: () => shown.point(at, true),
          onpointerleave: () => shown.point(at, false),
        },
        `[${at + 1}]`,
      );
    return answer.sentences.map(({ text: content, cited, unknown, supported }) => {
      const { kind, sign, title } = support(supported);
      const judged = answer.read.length && (supported !== null || cited.length);
      return [
        h("span", judged ? { class: `sentence ${kind}`, title } : null, text(content)),
        cited.map(cite),
        unknown
          ? h(
              "span",
              { class: "cite-unknown", title: "This passage does not exist" },
              `[? ${counted(unknown, "unknown citation")}]`,
            )
          : null,
        judged && sign ? h("span", { class: `support-sign ${kind}`, role: "img", "aria-label": kind }, sign) : null,
        " ",
      ];
    });
  }

  /** @param {ShownAnswer} answer */
  const optionList = ({ options, choice }) =>
    h(
      "ol",
      { class: "options" },
      options.map((option, i) =>
        h(
          "li",
          { class: i === choice ? "chosen" : "" },
          text(option),
          i === choice ? h("span", { class: "chip" }, "chosen") : null,
        ),
      ),
    );

  /**
   * @param {ShownAnswer} answer
   * @param {ReaderAnswers} reader
   * @param {AnswersFile} file
   */
  function drawAnswer(answer, reader, file) {
    const shown = passages(answer, file);
    const { kind, sign, text: word } = verdict(answer);
    const body = answer.sentences.length ? sentencesOf(answer, file, shown) : answer.text ? text(answer.text) : null;
    return [
      h(
        "p",
        { class: "row answer-facts" },
        h("span", { class: `chip ${kind}` }, `${sign} ${word}`),
        h("span", { class: "muted" }, `read ${readIn(answer.condition)}, about ${counted(answer.tokens, "token")}`),
      ),
      answer.options.length ? optionList(answer) : null,
      answer.options.length && answer.choice !== null
        ? null
        : h("p", { class: "answer-text text" }, body ?? h("span", { class: "muted" }, "There is no text.")),
      answer.left_out ? h("p", { class: "left-out" }, `⋯ ${counted(answer.left_out, "character")} left out ⋯`) : null,
      h("details", { class: "why" }, h("summary", null, "Why it was judged so"), parts.facts(reasons(answer, reader))),
      shown.fold,
    ];
  }

  /* --- a reader ---------------------------------------------------------------------------------------------------- */

  /* Draw the answers of one reader: a switch of what it read, and the answer. */
  function card(reader, file) {
    const body = h("div", { class: "answer-body" });
    const of = (condition) => reader.answers.find((each) => each.condition === condition) ?? reader.answers[0];
    const draw = (condition) => body.replaceChildren(...shownNodes(drawAnswer(of(condition), reader, file)));
    const wanted = of(of(view.condition).condition === view.condition ? view.condition : labels.condition).condition;
    draw(wanted);
    const options = reader.answers.map((each) => ({
      value: each.condition,
      label: `${verdict(each).sign} ${each.condition}`,
    }));
    return h(
      "article",
      { class: "panel answer-card" },
      h(
        "div",
        { class: "row spread" },
        h("h3", null, named(reader.reader)),
        parts.segmented("What the reader read", options, wanted, (condition) => {
          view.condition = /** @type {AnswerCondition} */ (condition);
          draw(condition);
        }),
      ),
      body,
    );
  }

  const shownNodes = (nodes) => nodes.flat(Infinity).filter((node) => node !== null && node !== false);

  function side(file, system, i) {
    const letter = i ? "B" : "A";
    return h(
      "section",
      { class: "answer-side", "aria-label": `Answers with the passages of ${letter}` },
      view.answers.length > 1
        ? h(
            "p",
            { class: "who" },
            h("span", { class: `key key-${letter.toLowerCase()}` }, `${letter} `),
            named(view.site.systems[system].name),
          )
        : null,
      file
        ? file.readers.map((reader) => card(reader, file))
        : h("p", { class: "muted" }, "No reader answered this query with the passages of this system."),
    );
  }

  /* Draw the answers of A, and of B where there is one. A board without answers has no such section. */
  function drawAnswers(position) {
    if (!view.answers.some(Boolean)) return [];
    return [
      h(
        "section",
        { class: "section answers" },
        h("h2", null, "Answers"),
        h(
          "p",
          { class: "legend" },
          h("span", { class: "sentence supported" }, "supported ✓"),
          h("span", { class: "sentence unsupported" }, "not supported ✗"),
          h("span", { class: "sentence undecided" }, "not decided"),
          h("span", { class: "muted" }, "[2] opens the passage that a sentence cites, with the words that both share."),
        ),
        view.reference(view.index.queries[position].answer),
        h(
          "div",
          { class: view.answers.length > 1 ? "answer-sides two" : "answer-sides" },
          view.answers.map((file, i) => side(file, view.scores.sides()[i], i)),
        ),
      ),
    ];
  }

  return { load, citedBy, drawAnswers };
};

/* The columns and rows of the page Answers: each system with each reader. It draws nothing. */
"use strict";

pages.answerRows = (() => {
  const score = (row, condition, measure) => row.answers.scores[condition]?.[measure] ?? null;

  /**
   * Return a column of a score with its interval.
   * @param {Pick<Column, "id" | "title" | "label" | "group" | "about">} names
   * @param {(row: any) => Score | null} of
   * @returns {Column}
   */
  const scoreColumn = (names, of) => ({
    ...names,
    kind: "score",
    value: (row) => of(row)?.value ?? null,
    interval: of,
  });

  /* Return the share of the answers that are no answers, such as those that abstain. */
  function unanswered(row, condition) {
    /** @type {StatusCounts} */
    const counts = row.answers.statuses[condition] ?? {};
    const abstained = row.answers.grades[condition]?.nothing ?? 0;
    const all = Object.values(counts).reduce((sum, times) => sum + times, 0);
    return all ? (all - (counts.answered ?? 0) + abstained) / all : null;
  }

  /** @type {(counts: Record<string, number>) => string} */
  const inWords = (counts) =>
    Object.entries(counts)
      .map(([word, times]) => `${formats.count(times)} ${word}`)
      .join(", ");

  /**
   * Return the judge's grades in words: "12 right, 1 abstained".
   * @param {GradeCounts} counts
   * @param {AnswerLabels} labels
   */
  const gradesInWords = (counts, labels) =>
    inWords(Object.fromEntries(Object.entries(counts).map(([grade, times]) => [labels.grades[grade], times])));

  /* Return the conditions besides the one that systems are ranked by. */
  /** @param {AnswerLabels} labels */
  const otherConditions = (labels) => labels.conditions.filter(({ name }) => name !== labels.condition);

  /**
   * Return all columns. Those without any value are left out by `shown`.
   * @param {AnswerLabels} labels
   * @returns {Column[]}
   */
  const columns = (labels) => [
    ...mainColumns(labels.condition),
    ...otherConditions(labels).map(({ name, label, about }) =>
      scoreColumn(
        { id: name, title: `Accuracy, ${label.toLowerCase()}`, label, group: "Other passages", about },
        (row) => score(row, name, "accuracy"),
      ),
    ),
    ...labels.measures
      .filter(({ label }) => label)
      .map(({ name, title, label, group, about }) =>
        scoreColumn({ id: name, title, label, group, about }, (row) => score(row, labels.condition, name)),
      ),
    {
      id: "unanswered",
      title: "Not answered",
      label: "No answer",
      group: "Status",
      kind: "harm",
      about:
        "Share of the answers that settle on nothing, state no option, were refused by the server, cut off or unreadable, or failed.",
      value: (row) => unanswered(row, labels.condition),
      note: (row) =>
        [
          inWords(row.answers?.statuses[labels.condition] ?? {}),
          gradesInWords(row.answers?.grades[labels.condition] ?? {}, labels),
        ]
          .filter(Boolean)
          .join("; "),
    },
    {
      id: "dollars",
      title: "Dollars per 1,000 answers",
      label: "$ / 1,000",
      group: "Cost",
      kind: "dollars",
      about: "Search and reader with the system’s passages, without the judge.",
      value: pages.rows.perThousand,
    },
    {
      id: "seconds",
      title: "Seconds per answer",
      label: "Time",
      group: "Cost",
      kind: "seconds",
      about: "Search and reader with the system’s passages, one after another.",
      value: (row) => row.cost?.seconds ?? null,
    },
  ];

  /* Return the columns of the answers that systems are ranked by, those with retrieved passages. */
  /** @type {(condition: AnswerCondition) => Column[]} */
  const mainColumns = (condition) => [
    {
      ...scoreColumn(
        {
          id: "accuracy",
          title: "Accuracy, retrieved passages",
          label: "Accuracy",
          group: "Retrieved",
          about: "Share of the questions that are answered right with the system’s passages.",
        },
        (row) => score(row, condition, "accuracy"),
      ),
      main: true,
    },
    {
      ...scoreColumn(
        {
          id: "gain",
          title: "Gain over closed book",
          label: "Gain",
          group: "Retrieved",
          about: "Accuracy with the system’s passages minus accuracy without passages, on the same questions.",
        },
        (row) => row.answers.gain,
      ),
      kind: "difference",
    },
    {
      ...scoreColumn(
        {
          id: "share",
          title: "Share of the gap",
          label: "Of gap",
          group: "Retrieved",
          about: "The gain as a share of the gain of the labelled passages.",
        },
        (row) => row.answers.share,
      ),
      kind: "share",
    },
  ];

  /**
   * Return the rows of a view with their values and ranks, and the columns in which one of them has a value.
   * @param {AnswersView} view
   * @param {Site} site
   * @param {AnswerLabels} labels
   * @returns {{ columns: Column[], all: Row[] }}
   */
  function shown(view, site, labels) {
    const rows = view.rows.map((answers) => {
      const system = answers.number === null ? null : site.systems[answers.number];
      return {
        name: answers.name,
        system: answers.system,
        kind: system?.kind ?? "",
        llm: answers.reader,
        size: system?.size ?? null,
        ours: true,
        entry: answers.entry,
        unverified: answers.no_verdict,
        from: answers.entry ? "submitted" : "run here",
        mark: null,
        cost: answers.cost,
        last: answers.questions < answers.asked,
        chips: chips(answers, labels.condition),
        answers,
      };
    });
    const known = columns(labels).filter(
      (column) => column.main || rows.some((row) => column.value?.(/** @type {any} */ (row)) != null),
    );
    /** @type {any[]} */
    const all = rows.map((row) => ({ ...row, cells: pages.rows.cells(known, row, [], null) }));
    pages.rows.rank(all.filter((row) => row.cells[0].value !== null && !row.last));
    return { columns: known, all };
  }

  /**
   * Return the notes beside a name.
   * @param {AnswerRow} row
   * @param {AnswerCondition} condition
   * @returns {Chip[]}
   */
  function chips({ judge, statuses, passages, runs, unverified, no_verdict, questions, asked }, condition) {
    const failed = statuses[condition]?.failed ?? 0;
    const left = unverified?.map(pages.visible).join("; ");
    /** @type {any[]} */
    const all = [
      { text: formats.counted(passages, "passage"), title: "The number of passages that the reader reads" },
      runs === pages.rows.ONE_RUN && {
        text: runs,
        title: "Another run can give other answers. Intervals are of the questions only: answer again with --repeats.",
      },
      questions < asked && {
        text: `only ${formats.count(questions)} of ${formats.counted(asked, "question")}`,
        kind: "bad",
        title: "Other records answer more questions, so this row has no rank and is below them",
      },
      unverified && !no_verdict && { text: "partly verified", title: `No check can compute again: ${left}` },
      judge?.trust && {
        text: `judge ${pages.visible(judge.trust)}`,
        kind: "bad",
        title: "Planted controls do not show that it can judge",
      },
      judge?.own_family && {
        text: "judge’s own family",
        kind: "bad",
        title: "The judge and the reader are of one family of LLMs",
      },
      failed && {
        text: formats.counted(failed, "failed answer"),
        kind: "bad",
        title: "They have no score. The same command asks them again.",
      },
    ];
    return all.filter(Boolean);
  }

  /* Return the name of a measure in words: "Nugget recall". */
  /** @type {(labels: AnswerLabels, measure: string) => string} */
  const titleOf = (labels, measure) => labels.measures.find(({ name }) => name === measure)?.title ?? measure;

  return { shown, inWords, gradesInWords, otherConditions, titleOf };
})();

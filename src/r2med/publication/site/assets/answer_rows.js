/* The columns and rows of the page Answers: each system with each reader. It draws nothing. */
"use strict";

pages.answerRows = (() => {
  /** @type {[condition: AnswerCondition, label: string, about: string][]} */
  const OTHERS = [
    ["closed book", "Closed book", "The reader reads no passage."],
    ["relevant", "Relevant", "The reader reads the passages that are labelled as relevant."],
    ["random", "Random", "The reader reads random passages of the same length."],
  ];

  /** @type {[measure: string, label: string, group: string, about: string][]} */
  const FURTHER = [
    ["nugget-recall", "Nuggets", "Facts", "Share of the facts of the reference answer that the answer contains."],
    ["vital-recall", "Vital", "Facts", "Share of the vital facts that the answer contains completely."],
    ["nugget-precision", "Precision", "Facts", "Share of the answer’s statements that are such a fact."],
    ["citation-support", "Support", "Citations", "Share of the answer’s sentences that the cited passages support."],
    ["citation-relevance", "Relevant", "Citations", "Share of the cited passages that are relevant."],
  ];

  const score = (row, condition, measure) => row.answers.scores[condition]?.[measure] ?? null;

  /* Return the upper end of an accuracy: as if all undecided answers were right. Null if none is undecided. */
  function most(row, condition) {
    const undecided = score(row, condition, "undecided")?.[0];
    return undecided ? (score(row, condition, "accuracy")?.[0] ?? 0) + undecided : null;
  }

  /* Return a column of a score with its interval. */
  /** @type {(id: string, title: string, label: string, group: string, about: string, of: (row: any) => Score | null) => Column} */
  const scoreColumn = (id, title, label, group, about, of) => ({
    id,
    title,
    label,
    group,
    kind: "score",
    about,
    value: (row) => of(row)?.[0] ?? null,
    interval: (row) => [of(row)?.[1] ?? null, of(row)?.[2] ?? null],
  });

  /* Return the share of the answers with passages of the system that are no answers, such as refusals. */
  function unanswered(row) {
    const statuses = row.answers?.statuses.retrieved ?? [];
    const all = statuses.reduce((sum, [, times]) => sum + times, 0);
    const answered = statuses.find(([status]) => status === "answered")?.[1] ?? 0;
    return all ? (all - answered) / all : null;
  }

  const inWords = (statuses) => statuses.map(([status, times]) => `${formats.count(times)} ${status}`).join(", ");

  /**
   * Return all columns. Those without any value are left out by `shown`.
   * @type {() => Column[]}
   */
  const columns = () => [
    {
      ...scoreColumn(
        "accuracy",
        "Accuracy, retrieved passages",
        "Accuracy",
        "Retrieved",
        "Share of the questions that are answered right with the system’s passages. A range goes from all undecided answers wrong to all right.",
        (row) => score(row, "retrieved", "accuracy"),
      ),
      most: (row) => most(row, "retrieved"),
      main: true,
    },
    {
      ...scoreColumn(
        "gain",
        "Gain over closed book",
        "Gain",
        "Retrieved",
        "Accuracy with the system’s passages minus accuracy without passages, on the same questions.",
        (row) => row.answers.gain,
      ),
      kind: "difference",
    },
    {
      ...scoreColumn(
        "share",
        "Share of the gap",
        "Of gap",
        "Retrieved",
        "The gain as a share of the gain of the labelled passages.",
        (row) => row.answers.share,
      ),
      kind: "share",
    },
    ...OTHERS.map(([condition, label, about]) => ({
      ...scoreColumn(condition, `Accuracy, ${label.toLowerCase()}`, label, "Other passages", about, (row) =>
        score(row, condition, "accuracy"),
      ),
      most: (row) => most(row, condition),
    })),
    ...FURTHER.map(([measure, label, group, about]) =>
      scoreColumn(measure, pages.measureName(measure), label, group, about, (row) => score(row, "retrieved", measure)),
    ),
    {
      id: "unanswered",
      title: "Not answered",
      label: "No answer",
      group: "Status",
      kind: "harm",
      about:
        "Share of the answers that were refused, only repeat the question, were cut off, unreadable, in another language, or failed.",
      value: unanswered,
      note: (row) => inWords(row.answers?.statuses.retrieved ?? []),
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

  /**
   * Return the rows of a view with their values and ranks, and the columns in which one of them has a value.
   * @param {AnswersView} view
   * @param {Site} site
   * @returns {{ columns: Column[], all: Row[] }}
   */
  function shown(view, site) {
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
        level: null,
        cost: answers.cost,
        last: answers.questions < answers.asked,
        chips: chips(answers),
        answers,
      };
    });
    const known = columns().filter(
      (column) => column.main || rows.some((row) => column.value?.(/** @type {any} */ (row)) != null),
    );
    /** @type {any[]} */
    const all = rows.map((row) => ({ ...row, cells: pages.rows.cells(known, row, [], null) }));
    pages.rows.rank(all.filter((row) => row.cells[0].value !== null && !row.last));
    return { columns: known, all };
  }

  /** Return the notes beside a name.
   * @param {AnswerRow} row */
  function chips({ judge, statuses, passages, unverified, no_verdict, questions, asked }) {
    const failed = statuses.retrieved?.find(([status]) => status === "failed")?.[1] ?? 0;
    return [
      [formats.counted(passages, "passage"), false, "The number of passages that the reader reads"],
      ...(questions < asked
        ? [
            [
              `only ${formats.count(questions)} of ${formats.counted(asked, "question")}`,
              true,
              "Other records answer more questions, so this row has no rank and is below them",
            ],
          ]
        : []),
      ...(unverified && !no_verdict
        ? [["partly verified", false, `No check can compute again: ${unverified.map(pages.visible).join("; ")}`]]
        : []),
      ...(judge?.trust
        ? [[`judge ${pages.visible(judge.trust)}`, true, "Planted controls do not show that it can judge"]]
        : []),
      ...(judge?.own_family
        ? [["judge’s own family", true, "The judge and the reader are of one family of LLMs"]]
        : []),
      ...(failed
        ? [
            [
              `${formats.counted(failed, "failed answer")}`,
              true,
              "They have no score. The same command asks them again.",
            ],
          ]
        : []),
    ];
  }

  return { shown, inWords, most, OTHERS };
})();

/* Return the name of a measure of answers in words: "nugget-recall" is "Nugget recall". */
pages.measureName = (measure) => {
  const words = measure.replaceAll("-", " ");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
};

/* The page Answers: how well readers answer with the passages of each system, and at what cost. */
"use strict";

(() => {
  const { h, named, visible } = pages;
  const { points, counted, count, dollars } = formats;

  /** @type {RankedView} */
  let view; // what is on the screen
  /** @type {AnswerLabels} */
  let labels; // conditions, measures, statuses and grades

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const views = await pages.load("answers");
    const chosen =
      views.find((each) => each.name === params.get("data")) ?? views.find(({ rows }) => rows.length) ?? views[0];
    labels = /** @type {AnswerLabels} */ (site.answers);
    const set = { name: "", group: "", overlays: [], labels: "", datasets: chosen.datasets, missing: [] };
    view = pages.rankedView(
      "answers",
      {
        ...pages.answerRows.shown(chosen, site, labels),
        ...{ site, set, setNumber: -1, measure: "Accuracy", params, chartLines: referenceLines },
        chartNotes: {
          unplaced: "this cost is not known for them",
          line: "The line joins the pairs of system and reader that no other pair beats at the same or lower cost.",
        },
      },
      {
        title: "Systems and readers",
        nouns: "pairs of system and reader",
        kind: "answer-results",
        labels: "",
        details,
        notes: () =>
          "Scores × 100, means over the questions that have a value. Only an answer can be right: one that settles on nothing, states no option or was cut off counts as wrong. A failed request has no value. Open answers that no judge graded have no accuracy.",
      },
    );
    const options = views.map(({ name, datasets }) => ({
      value: name,
      label: datasets.length > 1 ? `${name}, ${datasets.length} datasets` : name,
    }));
    main.replaceChildren(
      ...[lede(chosen), controls(options, chosen.name), view.body],
      ...[...correlations(chosen), ...searches(chosen)],
    );
    view.draw();
  }

  /* --- above the table --------------------------------------------------------------------------------------------- */

  const readers = () => [...new Set(view.all.map((row) => row.llm))].sort();

  function lede(chosen) {
    const systems = new Set(view.all.map((row) => row.system)).size;
    const questions = Math.max(0, ...view.all.map((row) => row.answers?.questions ?? 0));
    return parts.lede(
      [
        chosen.datasets.length > 1
          ? counted(chosen.datasets.length, "dataset")
          : named(view.site.datasets[chosen.datasets[0]].name),
        ` · ${counted(questions, "question")} · ${counted(systems, "system")}, ${counted(readers().length, "reader")}`,
      ],
      "Does better retrieval make better answers?",
      h("p", null, summary()),
    );
  }

  function summary() {
    const ranked = view.all.filter((row) => row.rank).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
    if (!view.all.length) return "No pair of system and reader has answers on all of these datasets.";
    if (!ranked.length) return "The answers are not judged: r2med answer --judge LLM judges them.";
    const [first] = ranked;
    const gain = first.answers?.gain;
    return [
      "Best accuracy: ",
      h("strong", null, named(first.name)),
      ` with ${points(first.cells[0].value, 1)}`,
      gain
        ? [
            gain.value
              ? `, ${points(Math.abs(gain.value), 1)} points ${gain.value < 0 ? "below" : "above"} the same reader without passages`
              : ", the same as this reader without passages",
            gain.low === null ? "" : ` (95 % interval ${points(gain.low, 1)} to ${points(gain.high, 1)})`,
          ]
        : null,
      ".",
    ];
  }

  function controls(options, chosen) {
    const { searchField, filterField, sortField, viewSwitch } = pages.leaderboardControls(view);
    const byReader = pages.rows.FILTERS.filter(({ name }) => name === "llm");
    return h(
      "div",
      { class: "controls" },
      h(
        "div",
        { class: "row filters-row" },
        options.length > 1
          ? parts.select("Dataset", options, chosen, (data) =>
              view.restart({ data: data === options[0].value ? "" : data }),
            )
          : null,
        readers().length > 1 ? byReader.map((filter) => filterField({ ...filter, label: "Reader" })) : null,
        searchField("Search systems and readers"),
        sortField(),
        viewSwitch(),
      ),
    );
  }

  /* --- the chart and the tables below ------------------------------------------------------------------------------ */

  /* Return the scores of a reader without passages, with the relevant and with random ones, for the chart of accuracy.
     There are none for several readers, because each has its own. */
  function referenceLines() {
    const shown = new Set(view.rows.map((row) => row.llm));
    const column = view.columns.find(({ id }) => id === view.order().by);
    if (shown.size !== 1 || (column && column.kind === "score" && !column.main)) return [];
    return pages.answerRows.otherConditions(labels).flatMap(({ name, label }) => {
      const known = view.rows.map((row) => row.answers?.scores[name]?.accuracy).filter((each) => each !== undefined);
      const value = known.reduce((sum, each) => sum + each.value, 0) / known.length;
      return known.length ? [{ label, value }] : [];
    });
  }

  /* Draw how retrieval and answers go together across systems, for readers of three or more systems. */
  /** @param {AnswersView} chosen */
  function correlations(chosen) {
    if (!chosen.correlations.length) return [];
    const { measure } = view.site;
    const r = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
    return [
      parts.section(
        "Do better rankings give better answers?",
        h(
          "p",
          null,
          `Pearson’s r of ${measure} and accuracy across systems. The noise of few questions makes it too small.`,
        ),
        parts.table(
          `Correlation of ${measure} and accuracy`,
          [
            { title: "Reader", isHead: true, cell: (row) => named(row.reader) },
            { title: "Systems", num: true, cell: (row) => count(row.systems) },
            { title: "Questions", num: true, cell: (row) => count(row.questions) },
            { title: "r observed", num: true, cell: (row) => r(row.observed) },
          ],
          chosen.correlations,
        ),
      ),
    ];
  }

  /* Draw how far relevant documents came with each agent that searched and answered. */
  /** @param {AnswersView} chosen */
  function searches(chosen) {
    const steps = labels.measures.filter(({ group }) => group === "Search");
    const agents = chosen.rows.filter(({ scores }) => steps.some(({ name }) => scores.searched[name]));
    if (!agents.length) return [];
    return [
      parts.section(
        "Where agents lose relevant documents",
        h(
          "p",
          null,
          "Share of the relevant documents of a question that a search returned, whose text was in the conversation, that the agent opened, cited in its answer, and kept in its list at the end, with 95 % intervals. A step that an agent does not have is empty.",
        ),
        parts.table(
          "Recall of the steps of each agent",
          [
            { title: "Agent", isHead: true, cell: (row) => named(row.name) },
            { title: "Questions", num: true, cell: (row) => count(row.questions) },
            ...steps.map(({ name, label }) => ({
              title: label,
              num: true,
              cell: (row) => figure(row.scores.searched[name]),
            })),
          ],
          agents,
        ),
      ),
    ];
  }

  /* --- details of a row -------------------------------------------------------------------------------------------- */

  /** @param {Row} row */
  function details({ answers, system }) {
    if (!answers) return [];
    const explored = view.site.datasets[view.set.datasets[0]].name;
    return [
      h("div", { class: "details-wide" }, h("h3", null, "By what the reader read"), conditions(answers)),
      h("div", null, h("h3", null, "Judge"), parts.facts(facts(answers))),
      h(
        "div",
        null,
        h("h3", null, "Notices"),
        answers.notices.length
          ? answers.notices.map((notice) => h("p", { class: "note" }, named(notice)))
          : h("p", { class: "muted" }, "none"),
      ),
      answers.number === null
        ? null
        : h(
            "p",
            { class: "row details-wide" },
            h("a", { href: pages.link("system", { name: system }) }, "System page"),
            answers.entry // an entry has no texts
              ? null
              : h("a", { href: pages.link("explorer", { a: system, data: explored }) }, "Its answers in the explorer"),
          ),
    ];
  }

  /* Draw a table of all measures in all conditions. */
  /** @param {AnswerRow} answers */
  function conditions(answers) {
    const known = labels.conditions.map(({ name }) => name).filter((name) => counts(answers, name).length);
    const has = (measure) => known.some((name) => answers.scores[name]?.[measure.name]);
    const measures = labels.measures.filter(has);
    /** @type {{ title: string, kind?: string, of: (condition: AnswerCondition) => any }[]} */
    const rows = [
      ...measures.map(({ name, title }) => ({ title, of: (condition) => figure(answers.scores[condition][name]) })),
      { title: "Statuses", kind: "statuses", of: (each) => pages.answerRows.inWords(answers.statuses[each]) },
      ...(answers.judge
        ? [
            {
              title: "Grades",
              kind: "statuses",
              of: (each) => pages.answerRows.gradesInWords(answers.grades[each], labels),
            },
          ]
        : []),
      { title: "Cost of an answer", of: (each) => costInWords(answers.costs[each]) },
    ];
    return parts.table(
      "Scores by condition",
      [
        { title: "Measure", isHead: true, cell: (row) => row.title },
        ...known.map((name) => ({
          title: name,
          num: true,
          cell: (row) => (row.kind ? h("td", { class: row.kind }, row.of(name)) : row.of(name)),
        })),
      ],
      rows,
    );
  }

  const counts = (answers, condition) => Object.keys(answers.statuses[condition] ?? {});

  const figure = (score) =>
    !score
      ? "–"
      : [
          points(score.value),
          score.low === null
            ? null
            : h("small", { class: "muted" }, ` ${points(score.low, 1)} – ${points(score.high, 1)}`),
        ];

  const costInWords = (cost) =>
    cost
      ? [
          dollars(cost.dollars),
          h("br"),
          h("small", { class: "muted" }, `${formats.seconds(cost.seconds)}, ${count(Math.round(cost.tokens))} tokens`),
        ]
      : "–";

  /**
   * @param {AnswerRow} row
   * @returns {Fact[]}
   */
  function facts({ judge, judging: judgingCost, questions, passages, runs, entry, unverified, no_verdict }) {
    const judging = judge
      ? [
          {
            name: "Judge",
            value: `${judge.names.map(visible).join(", ")}${judge.trust ? ` (${visible(judge.trust)})` : ""}`,
          },
          {
            name: "Reference called right",
            value: judge.both ? `${count(judge.agreed)} of ${count(judge.both)}` : "never compared",
          },
          {
            name: "Planted controls",
            value: judge.controls.asked
              ? `${count(judge.controls.right)} of ${count(judge.controls.asked)} right`
              : "none",
          },
          { name: "Cost of judging an answer", value: dollars(judgingCost) },
        ]
      : [{ name: "Judge", value: "none: open answers are not judged" }];
    return [
      { name: "Questions", value: count(questions) },
      { name: "Passages read", value: count(passages) },
      ...(runs ? [{ name: "Runs", value: runs }] : []),
      ...judging,
      ...(entry
        ? [
            { name: "Entry", value: visible(entry) },
            { name: "Not verified", value: visible(no_verdict || (unverified ?? []).join("; ")) },
          ]
        : []),
    ];
  }

  pages.page("answers", {
    title: "Answers",
    label: "Answers",
    when: (site) => Boolean(site.answers),
    keys: pages.lineKeys(
      "line",
      () => view,
      (position) => view.open(position),
    ),
    show,
  });
})();

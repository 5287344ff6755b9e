/* The page Answers: how well readers answer with the passages of each system, and at what cost. */
"use strict";

(() => {
  const { h, named, visible } = pages;
  const { points, counted, count, dollars } = formats;
  const { KINDS } = pages.rows;

  /** @type {LeaderboardView} */
  let view; // what is on the screen
  let parts;

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const views = await pages.load("answers");
    const chosen =
      views.find((each) => each.name === params.get("data")) ?? views.find(({ rows }) => rows.length) ?? views[0];
    const { columns, all } = pages.answerRows.shown(chosen, site);
    const set = {
      name: "",
      group: "",
      overlays: [],
      labels: "",
      datasets: chosen.datasets,
      missing: [],
      estimated: false,
    };
    view = {
      site,
      set,
      setNumber: -1,
      measure: "Accuracy",
      columns,
      all,
      params,
      selected: -1,
      marked: null,
      lines: new Map(),
      rows: all,
      body: h("div"),
      order: () => ({ by: params.get("sort") || columns[0].id, upwards: params.get("up") === "1" }),
      change,
      sort: (id, upwards = pages.rows.startsUpwards(columns, id)) => change({ sort: id, up: upwards ? "1" : "" }),
      restart: (changes) => pages.go("answers", { ...Object.fromEntries(params), ...changes }),
      open: details,
      chartNotes: {
        unplaced: "this cost is not known for them",
        line: "The line joins the pairs of system and reader that no other pair beats at the same or lower cost.",
      },
    };
    parts = { ...pages.leaderboardTable(view), ...pages.leaderboardChart(view) };
    const options = views.map(({ name, datasets }) => [
      name,
      datasets.length > 1 ? `${name}, ${datasets.length} datasets` : name,
    ]);
    main.replaceChildren(lede(chosen), controls(options, chosen.name), view.body, ...correlations(chosen));
    draw();
  }

  function change(changes) {
    pages.set(changes);
    for (const [name, value] of Object.entries(changes)) {
      if (value) view.params.set(name, value);
      else view.params.delete(name);
    }
    draw();
  }

  /* --- above the table --------------------------------------------------------------------------------------------- */

  const readers = () => [...new Set(view.all.map((row) => row.llm))].sort();

  function lede(chosen) {
    const systems = new Set(view.all.map((row) => row.system)).size;
    const questions = Math.max(0, ...view.all.map((row) => row.answers?.questions ?? 0));
    return h(
      "div",
      { class: "lede" },
      h(
        "p",
        { class: "eyebrow" },
        chosen.datasets.length > 1
          ? counted(chosen.datasets.length, "dataset")
          : named(view.site.datasets[chosen.datasets[0]].name),
        ` · ${counted(questions, "question")} · ${counted(systems, "system")}, ${counted(readers().length, "reader")}`,
      ),
      h("h1", null, "Does better retrieval make better answers?"),
      h("p", null, summary()),
    );
  }

  function summary() {
    const ranked = view.all.filter((row) => row.rank).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
    if (!view.all.length) return "No pair of system and reader has answers on all of these datasets.";
    if (!ranked.length) return "It was not decided which answers are right: r2med answer with a judge decides it.";
    const [first] = ranked;
    const gain = first.answers?.gain;
    return [
      "Best accuracy: ",
      h("strong", null, named(first.name)),
      ` with ${points(first.cells[0].value, 1)}`,
      first.cells[0].most == null
        ? null
        : ` if every undecided answer is wrong, and ${points(first.cells[0].most, 1)} if all are right`,
      gain
        ? [
            gain[0]
              ? `, ${points(Math.abs(gain[0]), 1)} points ${gain[0] < 0 ? "below" : "above"} the same reader without passages`
              : ", the same as this reader without passages",
            gain[1] === null ? "" : ` (95 % interval ${points(gain[1], 1)} to ${points(gain[2], 1)})`,
          ]
        : null,
      ".",
    ];
  }

  function controls(options, chosen) {
    const { params } = view;
    const search = h("input", {
      type: "search",
      placeholder: "Search systems and readers",
      "aria-label": "Search systems and readers",
      value: params.get("q") || "",
      oninput: () => change({ q: search.value }),
    });
    return h(
      "div",
      { class: "controls" },
      h(
        "div",
        { class: "row filters-row" },
        options.length > 1
          ? pages.select("Dataset", options, chosen, (data) =>
              view.restart({ data: data === options[0][0] ? "" : data }),
            )
          : null,
        readers().length > 1
          ? pages.select(
              "Reader",
              [["", "all"], ...readers().map((name) => [name, name])],
              params.get("llm") || "",
              (llm) => change({ llm }),
            )
          : null,
        h("label", { class: "field grow" }, h("span", null, "Search"), search),
        pages.select(
          "Sort by",
          [...view.columns.map((column) => [column.id, column.title]), ["name", "Name"]],
          view.order().by,
          (id) => view.sort(id),
        ),
        pages.segmented(
          "View",
          [
            ["", "Table"],
            ["chart", "Quality against cost"],
          ],
          params.get("view") || "",
          (value) => change({ view: value }),
        ),
      ),
    );
  }

  /* --- the table or the chart -------------------------------------------------------------------------------------- */

  function draw() {
    const { by, upwards } = view.order();
    view.rows = pages.rows.sorted(pages.rows.passing(view.all, view.params), view.columns, by, upwards);
    view.selected = -1;
    view.chartLines = referenceLines(by);
    const results = h(
      "div",
      { id: "results", class: "answer-results" },
      h("h2", { class: "visually-hidden" }, "Systems and readers"),
      h(
        "div",
        { class: "row spread results-head" },
        h(
          "p",
          { class: "muted", role: "status" },
          `${view.rows.length} of ${view.all.length} pairs of system and reader`,
        ),
        pages.exports.buttons(() => ({
          measure: view.measure,
          labels: "",
          columns: view.columns,
          rows: view.rows,
          latex: view.site.latex,
        })),
      ),
      view.params.get("view") === "chart" ? parts.chart() : parts.table(),
      h(
        "p",
        { class: "note" },
        "Scores × 100, means over the questions that have a value. Only an answer can be right: a refusal, the question again, or an answer that was cut off or is in another language counts as wrong. A failed request has no value. Where nobody decided whether answers are right, accuracy is a range from all of them wrong to all right, and rows are sorted by its lower end.",
      ),
    );
    pages.supplant(view.body, results)();
    view.body = results;
  }

  /* Return the scores of a reader without passages, with the relevant and with random ones, for the chart of accuracy.
     There are none for several readers, because each has its own. */
  function referenceLines(by) {
    const shown = new Set(view.rows.map((row) => row.llm));
    const column = view.columns.find(({ id }) => id === by);
    if (shown.size !== 1 || (column && column.kind === "score" && !column.main)) return [];
    return pages.answerRows.OTHERS.flatMap(([condition, label]) => {
      const known = view.rows
        .map((row) => row.answers?.scores[condition]?.accuracy)
        .filter((each) => each !== undefined);
      const mean = known.reduce((sum, each) => sum + each[0], 0) / known.length;
      return known.length ? [/** @type {[string, number]} */ ([label, mean])] : [];
    });
  }

  /* Draw how retrieval and answers go together across systems, for readers of three or more systems. */
  function correlations(chosen) {
    if (!chosen.correlations.length) return [];
    const r = (value) => (value === null ? "–" : value.toFixed(2));
    const lines = chosen.correlations.map(([reader, systems, questions, observed, corrected]) =>
      h(
        "tr",
        null,
        h("th", { scope: "row" }, named(reader)),
        [count(systems), count(questions), r(observed), r(corrected ? corrected[0] : null)].map((text) =>
          h("td", { class: "num" }, text),
        ),
        h("td", { class: "num" }, corrected?.[1] == null ? "–" : `${r(corrected[1])} to ${r(corrected[2])}`),
      ),
    );
    const heads = ["Systems", "Questions", "r observed", "r corrected", "95 % interval"];
    return [
      h(
        "section",
        { class: "section" },
        h("h2", null, "Do better rankings give better answers?"),
        h(
          "p",
          null,
          "Pearson’s r of nDCG@10 and accuracy across systems. Corrected: without the noise of few questions, which makes the plain r too small. There is no interval if systems do not differ by more than noise.",
        ),
        pages.region(
          "Correlation of nDCG@10 and accuracy",
          h(
            "table",
            null,
            h(
              "thead",
              null,
              h(
                "tr",
                null,
                h("th", { scope: "col" }, "Reader"),
                heads.map((text) => h("th", { scope: "col", class: "num" }, text)),
              ),
            ),
            h("tbody", null, lines),
          ),
        ),
      ),
    ];
  }

  /* --- details of a row -------------------------------------------------------------------------------------------- */

  function details(position) {
    const line = view.body.querySelector(`tr[data-position="${position}"]`);
    const toggle = line?.querySelector(".toggle");
    if (!line || !toggle) return; // the row is not drawn yet
    const open = toggle.getAttribute("aria-expanded") !== "true";
    toggle.setAttribute("aria-expanded", String(open));
    if (line.nextElementSibling?.classList.contains("details")) line.nextElementSibling.remove();
    if (!open) return;
    const { answers, system } = view.rows[position];
    if (!answers) return;
    const explored = view.site.datasets[view.set.datasets[0]].name;
    line.after(
      h(
        "tr",
        { class: "details" },
        h(
          "td",
          { colspan: view.columns.length + 2 },
          h(
            "div",
            { class: "details-inner" },
            h("div", { class: "details-wide" }, h("h3", null, "By what the reader read"), conditions(answers)),
            h("div", null, h("h3", null, "Judge"), pages.facts(facts(answers))),
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
                    : h(
                        "a",
                        { href: pages.link("explorer", { a: system, data: explored }) },
                        "Its answers in the explorer",
                      ),
                ),
          ),
        ),
      ),
    );
  }

  /* Draw a table of all measures in all conditions. */
  function conditions(answers) {
    const known = Object.keys(answers.scores).filter((each) => answers.statuses[each]?.length);
    const measures = [...new Set(known.flatMap((each) => Object.keys(answers.scores[each])))].filter(
      (measure) => measure !== "undecided" || known.some((each) => answers.scores[each].undecided?.[0]),
    );
    return pages.region(
      "Scores by condition",
      h(
        "table",
        null,
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, "Measure"),
            known.map((each) => h("th", { scope: "col", class: "num" }, each)),
          ),
        ),
        h(
          "tbody",
          null,
          measures.map((measure) =>
            h(
              "tr",
              null,
              h("th", { scope: "row" }, pages.measureName(measure)),
              known.map((each) =>
                h(
                  "td",
                  { class: "num" },
                  figure(
                    answers.scores[each][measure],
                    measure === "accuracy" ? pages.answerRows.most({ answers }, each) : null,
                  ),
                ),
              ),
            ),
          ),
          h(
            "tr",
            null,
            h("th", { scope: "row" }, "Statuses"),
            known.map((each) => h("td", { class: "statuses" }, pages.answerRows.inWords(answers.statuses[each]))),
          ),
          h(
            "tr",
            null,
            h("th", { scope: "row" }, "Cost of an answer"),
            known.map((each) => h("td", { class: "num" }, costInWords(answers.costs[each]))),
          ),
        ),
      ),
    );
  }

  const figure = (score, most) =>
    !score
      ? "–"
      : [
          KINDS.score.text(score[0]),
          most == null ? null : ` … ${KINDS.score.text(most)}`,
          score[1] === null ? null : h("small", { class: "muted" }, ` ${points(score[1], 1)} – ${points(score[2], 1)}`),
        ];

  const costInWords = (cost) =>
    cost
      ? [
          dollars(cost.dollars),
          h("br"),
          h("small", { class: "muted" }, `${formats.seconds(cost.seconds)}, ${count(Math.round(cost.tokens))} tokens`),
        ]
      : "–";

  /** @param {AnswerRow} row */
  function facts({ judge, judging: judgingCost, questions, passages, entry, unverified, no_verdict }) {
    const judging = judge
      ? [
          ["Judge", `${judge.names.map(visible).join(", ")}${judge.trust ? ` (${visible(judge.trust)})` : ""}`],
          ["Reference called right", judge.both ? `${count(judge.agreed)} of ${count(judge.both)}` : "never compared"],
          [
            "Planted controls",
            judge.controls[1] ? `${count(judge.controls[0])} of ${count(judge.controls[1])} right` : "none",
          ],
          ["Cost of judging an answer", dollars(judgingCost)],
        ]
      : [["Judge", "none: an answer that is the reference is right, and all others are undecided"]];
    return [
      ["Questions", count(questions)],
      ["Passages read", count(passages)],
      ...judging,
      ...(entry
        ? [
            ["Entry", visible(entry)],
            ["Not verified", visible(no_verdict || (unverified ?? []).join("; "))],
          ]
        : []),
    ];
  }

  /* --- keys -------------------------------------------------------------------------------------------------------- */

  const select = (by) => {
    view.selected = pages.step(view.body, view.selected, by);
  };

  pages.page("answers", {
    title: "Answers",
    label: "Answers",
    when: (site) => Boolean(site.answers),
    keys: [
      ["j", "next line", () => select(1)],
      ["k", "previous line", () => select(-1)],
      [
        "o",
        "show details",
        () => {
          if (view.selected >= 0) details(view.selected);
        },
      ],
    ],
    show,
  });
})();

/* The advice page: the ladder of pipelines that were tried on a dataset, and the one to use. */
"use strict";

(() => {
  const { h, named, visible } = pages;
  const { points, seconds, count, price } = formats;
  const CHOICES = [
    { name: "best", kind: "gold" },
    { name: "recommended", kind: "solid" },
    { name: "fastest", kind: "" },
  ];

  const latency = (value) => (value === null ? formats.UNKNOWN : seconds(value));
  const chance = (p) => (p < 0.001 ? "< 0.001" : p.toFixed(3));
  const rungOf = (advice, choice) => advice.rungs.find((rung) => rung.system === advice[choice]);

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const all = await pages.load("advice");
    const advice = all.find((each) => each.dataset === params.get("data")) || all[0];
    main.append(
      lede(all, advice, site.measure),
      choices(advice),
      h("div", { class: "section" }, parts.command(advice.command)),
      parts.section(
        "The ladder",
        h(
          "p",
          { class: "wide" },
          "The pipelines are in the order in which they were tried, cheap ones first. Dots are means, bars are 95 % intervals, and the dashed line marks the best mean. Settings were chosen on other questions than those they are scored on. Half of the questions take at most the time p50, and 95 % at most p95. p is adjusted for the number of comparisons with the best.",
        ),
        ladder(advice, site.measure),
      ),
      advice.left_out.length
        ? parts.section(
            "Left out",
            advice.left_out.map((line) => h("p", { class: "note" }, named(line))),
          )
        : "",
    );
  }

  function lede(all, advice, measure) {
    return parts.lede(
      [
        named(advice.dataset),
        ` · ${count(advice.questions)} judged questions · ${advice.rungs.length} pipelines · ${measure} × 100`,
      ],
      "Which pipeline to use",
      all.length > 1
        ? parts.segmented(
            "Dataset",
            all.map((each) => ({ value: each.dataset, label: visible(each.dataset) })),
            advice.dataset,
            (data) => pages.go("advice", { data }),
          )
        : null,
      h("p", null, h("strong", null, named(advice.recommended)), `: ${advice.reason}.`),
      advice.limits.map((line) => h("p", null, visible(line))),
    );
  }

  function choices(advice) {
    const behind = (rung) => (rung.system === advice.best ? "the best" : `${points(rung.behind, 1)} points behind`);
    const choice = (label, rung, value, note) => ({ label, value, notes: [note, named(rung.system)] });
    const [best, recommended, fastest] = CHOICES.map(({ name }) => rungOf(advice, name));
    const interval = best.low === null ? "" : `${points(best.low, 1)} to ${points(best.high, 1)}`;
    return parts.figures(
      [
        choice("Best", best, points(best.value, 1), interval),
        choice(
          "Recommended",
          recommended,
          points(recommended.value, 1),
          `${behind(recommended)}, ${price(recommended.dollars)}`,
        ),
        choice("Fastest", fastest, latency(fastest.p50), behind(fastest)),
      ],
      "choices",
    );
  }

  /**
   * @param {AdviceFile} advice
   * @param {ReturnType<typeof pages.chart.scale>} scale
   * @param {string} measure
   * @returns {TableColumn<Rung>[]}
   */
  const columns = (advice, scale, measure) => [
    { title: "Pipeline", isHead: true, cell: (rung) => pipeline(rung, advice) },
    { title: "", axis: scale.head(), kind: "plot", cell: (rung) => scale.cell(rung) },
    {
      title: measure,
      num: true,
      cell: (rung) => h("td", { class: rung.system === advice.best ? "num best" : "num" }, points(rung.value)),
    },
    { title: "expected loss", num: true, cell: (rung) => (rung.system === advice.best ? "–" : points(rung.behind)) },
    { title: "adjusted p", num: true, cell: (rung) => (!rung.behind || rung.note ? "–" : chance(rung.p)) },
    { title: "p50", num: true, cell: (rung) => latency(rung.p50) },
    { title: "p95", num: true, cell: (rung) => latency(rung.p95) },
    { title: "$ / 1,000", num: true, cell: (rung) => price(rung.dollars) },
  ];

  /** @type {(advice: AdviceFile, measure: string) => HTMLElement} */
  function ladder(advice, measure) {
    const scale = pages.chart.scale(advice.rungs, rungOf(advice, "best").value);
    const shown = columns(advice, scale, measure);
    const groups = advice.groups
      .map(({ name, title }) => ({ title, rungs: advice.rungs.filter((rung) => rung.group === name) }))
      .filter(({ rungs }) => rungs.length);
    const heading = (title) =>
      h(
        "tr",
        { class: "group" },
        h("th", { scope: "rowgroup" }, title),
        h("td", { class: "plot" }, scale.cell(null)),
        h("td", { colspan: shown.length - 2 }),
      );
    return parts.region(
      "The ladder",
      h(
        "table",
        { class: "ladder" },
        parts.tableHead(shown),
        groups.map(({ title, rungs }) =>
          h(
            "tbody",
            null,
            heading(title),
            rungs.map((rung, i) => parts.tableRow(shown, rung, i, { class: rung.note ? "stopped" : "rung" })),
          ),
        ),
      ),
    );
  }

  /* Draw the name of a pipeline, what it was chosen for, and a note. */
  function pipeline(rung, advice) {
    const note = rung.note
      ? `${rung.note}, after ${rung.questions} of ${advice.questions} questions`
      : rung.tuned > 1
        ? `${rung.tuned} settings tried`
        : "";
    const chosen = CHOICES.filter(({ name }) => advice[name] === rung.system);
    return [
      h(
        "div",
        { class: "row" },
        named(rung.system),
        chosen.map(({ name, kind }) => parts.chip({ text: name, kind })),
      ),
      note ? h("small", null, named(note)) : null,
    ];
  }

  pages.page("advice", { title: "Advice", label: "Advice", when: (site) => site.advice, show });
})();

/* The page Funnel: at which step an agent that answers loses relevant documents, how sure it is, and its path. */
"use strict";

(() => {
  const { h, named, visible } = pages;
  const { count, counted } = formats;
  const percent = (share) =>
    share === null || share === undefined ? "–" : `${(100 * share).toFixed(1).replace("-", "−")} %`;
  const number = (value) => (value === undefined || value === null ? "–" : `${+value.toFixed(2)}`);
  const documents = (mean) => (Number.isInteger(mean) ? count(mean) : mean.toFixed(1)); // a mean over runs
  const range = (share) =>
    !share || share.low === null || share.high === null ? null : `${percent(share.low)} to ${percent(share.high)}`;

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const funnels = site.answers ? await pages.load("funnels") : [];
    const own = funnels.filter((each) => each.system === params.get("name"));
    const funnel = own.find((each) => site.datasets[each.dataset].name === params.get("data")) ?? own[0] ?? funnels[0];
    if (!funnel) {
      main.append(
        h("p", { class: "empty" }, "No agent answered questions here: r2med answer 'agent(LLM)' --condition searched."),
      );
      return;
    }
    document.title = `Funnel of ${visible(funnel.system)} · r2med board`;
    main.append(
      lede(funnel, funnels, site),
      figures(funnel),
      parts.section(
        "Where relevant documents are lost",
        h(
          "p",
          null,
          `A step that the agent does not have is left out. An agent may cite or keep a document that it was shown and did not open: such a document is not lost there. Dots are means over questions${funnel.runs > 1 ? ` and ${count(funnel.runs)} runs` : ""}, bars are 95 % intervals.`,
        ),
        steps(funnel),
      ),
      parts.section("Confidence", facts(confidence(funnel))),
      parts.section(
        "Path and cost",
        facts(path(funnel)),
        h(
          "p",
          { class: "note" },
          "Means over questions. Guesses: questions whose reference answer a search named before any document showed it. Finds: after one did.",
        ),
      ),
      parts.section("Questions", questions(funnel, site)),
    );
  }

  function lede(funnel, funnels, site) {
    const same = funnels.filter((each) => each.system === funnel.system);
    const options = same.map((each) => ({
      value: site.datasets[each.dataset].name,
      label: visible(site.datasets[each.dataset].name),
    }));
    const others = [...new Set(funnels.map((each) => each.system))];
    const go = (name, data) => pages.go("funnel", { name, data });
    return parts.lede(
      [
        h("a", { href: pages.link("answers") }, "Answers"),
        ` · ${counted(funnel.questions, "question")} · ${funnel.runs > 1 ? `means over ${count(funnel.runs)} runs · ` : ""}`,
        named(funnel.reader),
      ],
      named(funnel.system),
      options.length > 1
        ? parts.segmented("Dataset", options, site.datasets[funnel.dataset].name, (data) => go(funnel.system, data))
        : h("p", null, named(site.datasets[funnel.dataset].name)),
      others.length > 1
        ? h(
            "div",
            { class: "agent-picker" },
            parts.select("Agent", parts.asOptions(others), funnel.system, (name) => go(name, "")),
          )
        : null,
    );
  }

  function figures(funnel) {
    const last = funnel.steps.at(-1);
    const undecided = funnel.undecided ? `${documents(funnel.undecided)} not decided` : range(funnel.accuracy);
    return parts.figures([
      { label: "Accuracy", value: percent(funnel.accuracy?.value), notes: [undecided] },
      { label: "Relevant documents", value: count(funnel.relevant) },
      ...(last
        ? [{ label: `Of these ${last.name}`, value: documents(last.documents), notes: [range(last.recall)] }]
        : []),
      { label: "Mean confidence", value: percent(funnel.calibration.confidence?.value) },
      { label: "Searches per question", value: number(funnel.searching.searches) },
    ]);
  }

  /** @param {Funnel} funnel */
  function steps(funnel) {
    const all = [
      { name: "relevant", about: "labelled as relevant", documents: funnel.relevant, lost: 0, recall: null },
      ...funnel.steps,
    ];
    const wide = window.innerWidth > 736 ? 420 : 104;
    const share = ({ value, low, high }) => ({ value, low, high });
    return parts.table(
      "Steps",
      [
        {
          title: "Step",
          isHead: true,
          cell: ({ name, about }) => [
            name[0].toUpperCase() + name.slice(1),
            h("small", { class: "muted" }, ` ${about}`),
          ],
        },
        {
          title: "Documents",
          num: true,
          cell: (step) =>
            pages.chart.bar(h("td", { class: "num" }, documents(step.documents)), step.documents, funnel.relevant),
        },
        { title: "Lost", num: true, cell: ({ lost }) => (lost > 0 ? `−${documents(lost)}` : "–") },
        { title: "Recall", cell: ({ recall }) => (recall ? pages.chart.interval(share(recall), [0, 1], wide) : "") },
        { title: "", num: true, cell: ({ recall }) => percent(recall?.value) },
      ],
      all,
      { kind: "forest funnel" },
    );
  }

  const facts = (rows) => parts.facts(rows.map(([name, value]) => ({ name, value })));

  function confidence({ calibration, refused, questions: asked }) {
    const { answers, too_sure, brier, ece, when_wrong } = calibration;
    const sure = range(too_sure);
    return [
      ["Decided, with a confidence", `${documents(answers)} of ${count(asked)}`],
      ["Confidence minus accuracy", `${percent(too_sure?.value)}${sure ? ` (${sure})` : ""}`],
      ["Brier score", brier ? brier.value.toFixed(3) : "–"],
      ["Calibration error, ten bins", percent(ece)],
      ["Confidence when wrong", percent(when_wrong)],
      ["Declined to answer", documents(refused)],
    ];
  }

  const path = ({ searching }) => [
    ["Searches per question", number(searching.searches)],
    ["Repeated searches", number(searching.repeated)],
    ["New relevant documents per search", number(searching.new_relevant)],
    ["Guesses", percent(searching.guess)],
    ["Finds", percent(searching.find)],
    ["Tokens per question", count(Math.round(searching.tokens ?? 0))],
    [
      "Dollars per 1,000 questions",
      searching.dollars === undefined ? "unknown" : formats.dollars(1000 * searching.dollars),
    ],
    ["Seconds of the LLM per question", number(searching.seconds)],
  ];

  function questions(funnel, site) {
    const data = site.datasets[funnel.dataset].name;
    const verdict = (right) => (right === null ? "?" : right === 1 ? "✓" : right === 0 ? "✗" : percent(right));
    const linked = ({ id }) =>
      funnel.number === null
        ? named(id)
        : h("a", { href: pages.link("explorer", { data, a: funnel.system, q: id }) }, named(id));
    return parts.table(
      "Questions",
      [
        { title: "Question", isHead: true, cell: linked },
        { title: "Right", num: true, cell: ({ right }) => verdict(right) },
        { title: "Confidence", num: true, cell: (query) => percent(query.confidence) },
        { title: "Relevant", num: true, cell: ({ relevant }) => count(relevant) },
        ...funnel.steps.map(({ name }) => ({
          title: name[0].toUpperCase() + name.slice(1),
          num: true,
          cell: (query) => (query.steps[name] === undefined ? "–" : documents(query.steps[name])),
        })),
      ],
      funnel.queries,
      { kind: "funnel-questions" },
    );
  }

  pages.page("funnel", { title: "Funnel", keys: [], show });
})();

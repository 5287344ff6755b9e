/* The page Funnel: at which step an agent that answers loses relevant documents, how sure it is, and its path. */
"use strict";

(() => {
  const { h, named, visible } = pages;
  const { count, counted } = formats;
  const percent = (share) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(1)} %`);
  const number = (value) => (value === undefined || value === null ? "–" : `${+value.toFixed(2)}`);
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
          "A step that the agent does not have is left out. An agent may cite or keep a document that it was shown and did not open. Dots are means over questions, bars are 95 % intervals.",
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
        ` · ${counted(funnel.questions, "question")} · `,
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
    const undecided = funnel.undecided ? `${counted(funnel.undecided, "answer")} not decided` : range(funnel.accuracy);
    return parts.figures([
      { label: "Accuracy", value: percent(funnel.accuracy?.value), notes: [undecided] },
      { label: "Relevant documents", value: count(funnel.relevant) },
      ...(last ? [{ label: `Of these ${last.name}`, value: count(last.documents), notes: [range(last.recall)] }] : []),
      { label: "Mean confidence", value: percent(funnel.calibration.confidence?.value) },
      { label: "Searches per question", value: number(funnel.searching.searches) },
    ]);
  }

  /** @param {Funnel} funnel */
  function steps(funnel) {
    const all = [
      { name: "relevant", about: "labelled as relevant", documents: funnel.relevant, recall: null },
      ...funnel.steps,
    ];
    const rows = all.map((step, i) => ({ ...step, lost: i ? all[i - 1].documents - step.documents : 0 }));
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
          cell: ({ documents }) =>
            pages.chart.bar(h("td", { class: "num" }, count(documents)), documents, funnel.relevant),
        },
        { title: "Lost here", num: true, cell: ({ lost }) => (lost > 0 ? `− ${count(lost)}` : "–") },
        {
          title: "Recall per question",
          cell: ({ recall }) => (recall ? pages.chart.interval(share(recall), [0, 1], wide) : ""),
        },
        { title: "", num: true, cell: ({ recall }) => percent(recall?.value) },
      ],
      rows,
      { kind: "forest funnel" },
    );
  }

  const facts = (rows) => parts.facts(rows.map(([name, value]) => ({ name, value })));

  function confidence({ calibration, statuses, questions: asked }) {
    const { answers, too_sure, brier, ece, when_wrong } = calibration;
    const sure = range(too_sure);
    return [
      ["Decided, with a confidence", `${count(answers)} of ${count(asked)}`],
      ["Confidence minus accuracy", `${percent(too_sure?.value)}${sure ? ` (${sure})` : ""}`],
      ["Brier score", brier ? brier.value.toFixed(3) : "–"],
      ["Calibration error, ten bins", percent(ece)],
      ["Confidence when wrong", percent(when_wrong)],
      ["Declined to answer", count(statuses.refused ?? 0)],
    ];
  }

  const path = ({ searching }) => [
    ["Searches per question", number(searching.searches)],
    ["Repeated searches", number(searching.repeated)],
    ["New relevant per search", number(searching.new_relevant)],
    ["Guesses", percent(searching.guess)],
    ["Finds", percent(searching.find)],
    ["Tokens per question", count(Math.round(searching.tokens ?? 0))],
    ["Dollars per 1,000", searching.dollars === undefined ? "unknown" : formats.dollars(1000 * searching.dollars)],
    ["Seconds of the LLM", number(searching.seconds)],
  ];

  function questions(funnel, site) {
    const data = site.datasets[funnel.dataset].name;
    const verdict = (right) => (right === null ? "?" : right ? "✓" : "✗");
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
          cell: (query) => (query.steps[name] === undefined ? "–" : count(query.steps[name])),
        })),
      ],
      funnel.queries,
      { kind: "funnel-questions" },
    );
  }

  pages.page("funnel", { title: "Funnel", keys: [], show });
})();

/* The advice page: the ladder of pipelines that were tried on a dataset, and the one to use. */
"use strict";

(() => {
  const { h, named, visible } = pages;
  const { points, seconds, count, price } = formats;
  const GROUPS = new Map([
    ["words", "Words"],
    ["feedback", "Feedback"],
    ["dense", "Dense models"],
    ["fusion", "Fusion"],
    ["expansion", "Expansion by an LLM"],
    ["reranking", "Reranking"],
  ]);
  const HEADS = ["expected loss", "adjusted p", "p50", "p95", "$ / 1,000"];
  const CHOICES = [
    ["best", "gold"],
    ["recommended", "solid"],
    ["fastest", ""],
  ];

  const latency = (value) => (value === null ? formats.UNKNOWN : seconds(value));
  const chance = (p) => (p < 0.001 ? "< 0.001" : p.toFixed(3));
  const rungOf = (advice, choice) => advice.rungs.find((rung) => rung.system === advice[choice]);

  async function show(main, params) {
    const all = await pages.load("advice");
    const advice = all.find((each) => each.dataset === params.get("data")) || all[0];
    main.append(
      lede(all, advice),
      choices(advice),
      h("div", { class: "section" }, pages.command(advice.command)),
      section(
        "The ladder",
        h(
          "p",
          { class: "wide" },
          "The pipelines are in the order in which they were tried, cheap ones first. Dots are means, bars are 95 % intervals, and the dashed line marks the best mean. Settings were chosen on other questions than those they are scored on. Half of the questions take at most the time p50, and 95 % at most p95. p is adjusted for the number of comparisons with the best.",
        ),
        ladder(advice),
      ),
      advice.left_out.length
        ? section(
            "Left out",
            advice.left_out.map((line) => h("p", { class: "note" }, named(line))),
          )
        : "",
    );
  }

  const section = (title, ...content) => h("section", { class: "section" }, h("h2", null, title), content);

  function lede(all, advice) {
    return h(
      "div",
      { class: "lede" },
      h(
        "p",
        { class: "eyebrow" },
        named(advice.dataset),
        ` · ${count(advice.questions)} judged questions · ${advice.rungs.length} pipelines · nDCG@10 × 100`,
      ),
      h("h1", null, "Which pipeline to use"),
      all.length > 1
        ? pages.segmented(
            "Dataset",
            all.map((each) => [each.dataset, visible(each.dataset)]),
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
    const choice = (label, rung, figure, note) =>
      h(
        "div",
        { class: "figure" },
        h("dt", null, label),
        h("dd", null, figure, h("small", null, note), h("small", null, named(rung.system))),
      );
    const [best, recommended, fastest] = CHOICES.map(([name]) => rungOf(advice, name));
    return h(
      "dl",
      { class: "figures choices" },
      choice(
        "Best",
        best,
        points(best.value, 1),
        best.low === null ? "" : `${points(best.low, 1)} to ${points(best.high, 1)}`,
      ),
      choice(
        "Recommended",
        recommended,
        points(recommended.value, 1),
        `${behind(recommended)}, ${price(recommended.dollars)}`,
      ),
      choice("Fastest", fastest, latency(fastest.p50), behind(fastest)),
    );
  }

  function ladder(advice) {
    const scale = pages.chart.scale(advice.rungs, rungOf(advice, "best").value);
    const groups = [...GROUPS]
      .map(([group, title]) => [title, advice.rungs.filter((rung) => rung.group === group)])
      .filter(([, rungs]) => rungs.length);
    return pages.region(
      "The ladder",
      h(
        "table",
        { class: "ladder" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, "Pipeline"),
            h("td", { class: "plot" }, scale.head()),
            h("th", { scope: "col", class: "num" }, "nDCG@10"),
            HEADS.map((text) => h("th", { scope: "col", class: "num aside" }, text)),
          ),
        ),
        groups.map(([title, rungs]) =>
          h(
            "tbody",
            null,
            h(
              "tr",
              { class: "group" },
              h("th", { scope: "rowgroup" }, title),
              h("td", { class: "plot" }, scale.cell(null)),
              h("td", { colspan: 1 + HEADS.length }),
            ),
            rungs.map((rung) => line(rung, advice, scale)),
          ),
        ),
      ),
    );
  }

  function line(rung, advice, scale) {
    const best = rung.system === advice.best;
    const note = rung.note
      ? `${rung.note}, after ${rung.questions} of ${advice.questions} questions`
      : rung.tuned > 1
        ? `${rung.tuned} settings tried`
        : "";
    const beside = [
      best ? "–" : points(rung.behind),
      !rung.behind || rung.note ? "–" : chance(rung.p),
      latency(rung.p50),
      latency(rung.p95),
      price(rung.dollars),
    ];
    return h(
      "tr",
      { class: rung.note ? "stopped" : "rung" },
      h(
        "th",
        { scope: "row" },
        h(
          "div",
          { class: "row" },
          named(rung.system),
          CHOICES.map(([name, kind]) =>
            advice[name] === rung.system ? h("span", { class: `chip ${kind}` }, name) : null,
          ),
        ),
        note ? h("small", null, named(note)) : null,
        h("small", { class: "beside" }, `${latency(rung.p50)} · ${price(rung.dollars)}`),
      ),
      h("td", { class: "plot" }, scale.cell(rung)),
      h("td", { class: best ? "num best" : "num" }, points(rung.value)),
      beside.map((text) => h("td", { class: "num aside" }, text)),
    );
  }

  pages.page("advice", { title: "Advice", label: "Advice", when: (site) => site.advice, show });
})();

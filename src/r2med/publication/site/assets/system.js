/* The page of one system: scores, slices, cost by stage, failures by kind, settings, and the command to run it again. */
"use strict";

(() => {
  const { h, named, visible, facts } = pages;
  const { points, count, seconds, price } = formats;
  let neighbours = []; // the addresses of the systems one rank above and below

  const dollars = (value, unpriced) =>
    unpriced && !value ? formats.UNKNOWN : `${unpriced ? "≥ " : ""}${formats.dollars(value)}`;
  const total = (items, name) => items.reduce((sum, item) => sum + item[name], 0);

  /* The width of a drawing in a cell, in pixels. It is smaller on a phone. */
  const room = (wide) => (window.innerWidth > 736 ? wide : 112);

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const number = site.systems.findIndex((system) => system.name === params.get("name"));
    if (number < 0) {
      main.append(
        h(
          "p",
          { class: "empty" },
          "No system with this name was run here. ",
          h("a", { href: pages.link("leaderboard") }, "All systems"),
        ),
      );
      return;
    }
    const system = site.systems[number];
    const run = site.sets
      .map((_, i) => i)
      .filter((i) => site.sets[i].datasets.some((dataset) => system.figures[dataset]));
    const setNumber = run.find((i) => site.sets[i].name === params.get("set")) ?? run[0];
    const set = site.sets[setNumber];
    const data = await pages.load(`system/${number}`);
    const columns = pages.rows.columns(site, set);
    const rows = await pages.rows.all(site, setNumber, site.measure, columns);
    const row = rows.find((each) => each.number === number && each.ours);
    const records = data.records.filter((record) => set.datasets.includes(record.dataset));
    remember(rows, row, set);
    document.title = `${visible(system.name)} · r2med board`;
    main.append(
      head(site, system, set, run),
      figures(row, columns, records, site, rows, set),
      actions(site, system, set),
      section("Scores", scoreTable(site, row, columns, records)),
      slices(data.slices[setNumber]) ?? "",
      answeredBy(system, site.answers ? await pages.load("answers") : []) ?? "",
      section(
        "Cost by stage",
        stageTable(records, site),
        system.approximate.map((line) => h("p", null, "≈ ", named(line), ".")),
      ),
      section("Failures", pages.failures.list(records, system, site)),
      section(
        "Run it again",
        pages.command(data.command),
        h("p", null, "Earlier results are reused. After an interruption, the same command continues where it stopped."),
      ),
      section(
        "Settings",
        h("div", { class: "columns" }, facts(data.settings), facts([...data.versions, ...origin(records)])),
      ),
    );
  }

  const section = (title, ...content) => h("section", { class: "section" }, h("h2", null, title), content);
  const origin = (records) => [
    ["code", [...new Set(records.map((record) => record.source))].join(", ")],
    [
      "made",
      records
        .map((record) => record.created)
        .sort()
        .at(-1),
    ],
  ];

  const head = (site, system, set, run) =>
    h(
      "div",
      { class: "lede" },
      h(
        "p",
        { class: "eyebrow" },
        h("a", { href: pages.link("leaderboard", { set: set.name }) }, "Leaderboard"),
        pages.sets.hasNote(set) ? ` · ${pages.sets.sentence(set)}` : "",
        ` · ${system.kind}${system.llm ? ` · ${visible(system.llm)}` : ""}`,
      ),
      h("h1", null, named(system.name)),
      pages.sets
        .switches(
          run.map((i) => site.sets[i]),
          set,
          (name) => pages.go("system", { name: system.name, set: name }),
        )
        .map((each) => each && h("div", null, each)),
    );

  function figures(row, columns, records, site, rows, set) {
    const figure = (label, value, note) =>
      h("div", { class: "figure" }, h("dt", null, label), h("dd", null, value, note ? h("small", null, note) : null));
    const main = row.cells[0];
    const without = columns.findIndex((column) => column.id === "without");
    const ours = rows.filter((each) => each.ours && each.rank).length;
    const p50 = records.map((record) => record.p50),
      p95 = records.map((record) => record.p95);
    return h(
      "dl",
      { class: "figures" },
      figure(
        `${columns[0].title}, ${site.measure}`,
        points(main.value),
        main.low === null
          ? main.value === null
            ? pages.sets.noAverage(set) || "not run on all datasets"
            : null
          : `${points(main.low)} to ${points(main.high)}`,
      ),
      without > 0 ? figure(columns[without].title, points(row.cells[without].value)) : null,
      row.rank ? figure("Rank", `${row.rank}`, row.level ? `class ${row.level} of ${ours} run here` : null) : null,
      figure(
        "Latency",
        p50.includes(null) ? formats.UNKNOWN : seconds(mean(p50)),
        p50.includes(null) ? "its cost is not known" : `95 % within ${seconds(Math.max(...p95))}`,
      ),
      figure("Price of 1,000 queries", price(pages.rows.perThousand(row)), null),
      figure(
        "Failures",
        count(
          total(
            records.flatMap((record) => record.stages),
            "failures",
          ),
        ),
        null,
      ),
    );
  }

  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

  function actions(site, system, set) {
    const data = pages.sets.explored(site, set);
    const others = site.systems.filter(
      (other) => other.name !== system.name && set.datasets.some((dataset) => other.figures[dataset]),
    );
    return h(
      "div",
      { class: "row actions" },
      h("a", { class: "button", href: pages.link("explorer", { a: system.name, data }) }, "Explore its queries"),
      others.length
        ? pages.select(
            "Compare with",
            [["", "another system"], ...others.map((other) => [other.name, other.name])],
            "",
            (name) => {
              if (name) pages.go("explorer", { a: system.name, b: name, data });
            },
          )
        : null,
    );
  }

  /* Return a line with a link to the answers of readers that read the results of a system; null if there are none. */
  /** @type {(system: SystemRow, views: AnswersView[]) => HTMLElement | null} */
  function answeredBy(system, views) {
    const rows = views.flatMap((view) => view.rows).filter((row) => row.system === system.name);
    const readers = new Set(rows.map((row) => row.reader)).size;
    return readers
      ? section(
          "Answers",
          h(
            "p",
            null,
            `${formats.counted(readers, "reader")} answered questions from its results: `,
            h("a", { href: pages.link("answers", { q: system.name }) }, "how well"),
            ".",
          ),
        )
      : null;
  }

  function scoreTable(site, row, columns, records) {
    const shown = columns
      .map((column, i) => [column, row.cells[i]])
      .filter(([column, cell]) => cell.value !== null && column.dataset !== undefined);
    const span = [0, Math.max(...shown.map(([, cell]) => cell.high ?? cell.value))];
    return pages.region(
      "Scores by dataset",
      h(
        "table",
        { class: "forest scores" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            [
              "Dataset",
              `0 to ${points(span[1], 0)}`,
              site.measure,
              "95 % interval",
              "Queries",
              "Latency",
              "Failures",
              "",
            ].map((text, i) => h("th", { scope: "col", class: i > 2 ? "num aside" : i > 1 ? "num" : "" }, text)),
          ),
        ),
        h(
          "tbody",
          null,
          shown.map(([column, cell]) => {
            const record = records.find((each) => each.dataset === column.dataset);
            const dataset = site.datasets[column.dataset];
            return h(
              "tr",
              null,
              h(
                "th",
                { scope: "row" },
                named(dataset.name),
                h("small", { class: "muted" }, dataset.task ? ` ${visible(dataset.task)}` : ""),
              ),
              h("td", null, pages.chart.interval(cell, span, room(480))),
              h("td", { class: "num" }, points(cell.value)),
              h(
                "td",
                { class: "num aside muted" },
                cell.low === null ? "–" : `${points(cell.low)} – ${points(cell.high)}`,
              ),
              h("td", { class: "num aside" }, dataset.queries === null ? "–" : count(dataset.queries)),
              h(
                "td",
                { class: "num aside" },
                record ? (record.p50 === null ? formats.UNKNOWN : seconds(record.p50)) : "–",
              ),
              h("td", { class: "num aside" }, record ? count(total(record.stages, "failures")) : "–"),
              h(
                "td",
                { class: "num aside" },
                h("a", { href: pages.link("explorer", { data: dataset.name, a: row.name }) }, "queries"),
              ),
            );
          }),
        ),
      ),
    );
  }

  const SLICES = new Map([
    ["task", "By task"],
    ["scenario", "By scenario"],
    ["body-system", "By body system"],
    ["length", "By length of the query"],
    ["positives", "By number of relevant documents"],
  ]);

  function slices(cut) {
    if (!cut.length) return null;
    const most = Math.max(...cut.map(([, , , figure]) => figure[2] ?? figure[0]));
    const kinds = [...SLICES].filter(([kind]) => cut.some((each) => each[0] === kind));
    return section(
      "Where it is strong and weak",
      h(
        "div",
        { class: "columns" },
        kinds.map(([kind, title]) =>
          h(
            "div",
            { class: "slice" },
            h("h3", null, title),
            h(
              "table",
              { class: "forest" },
              h(
                "tbody",
                null,
                cut
                  .filter((each) => each[0] === kind)
                  .map(([, label, size, [value, low, high]]) =>
                    h(
                      "tr",
                      null,
                      h("th", { scope: "row" }, named(label), h("small", { class: "muted" }, ` ${count(size)}`)),
                      h("td", null, pages.chart.interval({ value, low, high }, [0, most], room(220))),
                      h("td", { class: "num" }, points(value)),
                    ),
                  ),
              ),
            ),
          ),
        ),
      ),
    );
  }

  function stageTable(records, site) {
    const queries = Math.max(
      1,
      records.reduce((sum, record) => sum + (site.datasets[record.dataset].queries || 0), 0),
    );
    const stages = (records[0]?.stages || []).map((stage, i) => {
      const same = records.map((record) => record.stages[i]).filter(Boolean);
      return {
        ...stage,
        ...Object.fromEntries(
          ["seconds", "prepared", "calls", "tokens", "dollars", "unpriced"].map((name) => [name, total(same, name)]),
        ),
      };
    });
    const most = Math.max(...stages.map((stage) => stage.seconds), 1e-12);
    return pages.region(
      "Cost by stage",
      h(
        "table",
        { class: "stages" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            ["Stage", "", "Time per query", "LLM calls", "LLM tokens", "Dollars", "Preparing the corpus"].map(
              (text, i) => h("th", { scope: "col", class: i > 1 ? "num" : "" }, text),
            ),
          ),
        ),
        h(
          "tbody",
          null,
          stages.map((stage) =>
            h(
              "tr",
              { class: "ours" },
              h("th", { scope: "row" }, { expand: "Expand", retrieve: "Retrieve", rerank: "Rerank" }[stage.stage]),
              h("td", null, named(stage.name)),
              stage.recorded
                ? ["unknown", "unknown", "unknown", "unknown"].map((text) => h("td", { class: "num muted" }, text))
                : [
                    pages.chart.bar(h("td", { class: "num" }, seconds(stage.seconds / queries)), stage.seconds, most),
                    h("td", { class: "num" }, count(stage.calls)),
                    h("td", { class: "num" }, count(stage.tokens)),
                    h("td", { class: "num" }, dollars(stage.dollars, stage.unpriced)),
                  ],
              h("td", { class: "num" }, stage.prepared ? seconds(stage.prepared) : "–"),
            ),
          ),
        ),
      ),
    );
  }

  function remember(rows, row, set) {
    const ours = rows.filter((each) => each.ours).sort((a, b) => (a.rank || Infinity) - (b.rank || Infinity));
    const at = ours.indexOf(row);
    neighbours = [ours[at - 1], ours[at + 1]].map((each) => each && { name: each.name, set: set.name });
  }

  const move = (side) => {
    if (neighbours[side]) pages.go("system", neighbours[side]);
  };

  pages.page("system", {
    title: "System",
    keys: [
      ["[", "the system one rank above", () => move(0)],
      ["]", "the system one rank below", () => move(1)],
      [
        "c",
        "compare with another",
        () => /** @type {HTMLElement} */ (document.querySelector(".actions select"))?.focus(),
      ],
    ],
    show,
  });
})();

/* The page of one system: scores, slices, cost by stage, failures by kind, settings, and the command to run it again. */
"use strict";

(() => {
  const { h, named, visible } = pages;
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
      figures(row, columns, records, site, set),
      actions(site, system, set),
      parts.section("Scores", scoreTable(site, row, columns, records)),
      slices(data.slices[setNumber]) ?? "",
      answeredBy(system, site.answers ? await pages.load("answers") : []) ?? "",
      parts.section("Cost by stage", stageTable(records, site)),
      parts.section("Failures", pages.failures.list(records, system, site)),
      parts.section(
        "Run it again",
        parts.command(data.command),
        h("p", null, "Earlier results are reused. After an interruption, the same command continues where it stopped."),
      ),
      parts.section(
        "Settings",
        h(
          "div",
          { class: "columns" },
          parts.facts(parts.asFacts(data.settings)),
          parts.facts([...parts.asFacts(data.versions), ...origin(records)]),
        ),
      ),
    );
  }

  const origin = (records) => [
    { name: "code", value: [...new Set(records.map((record) => record.source))].join(", ") },
    {
      name: "made",
      value: records
        .map((record) => record.created)
        .sort()
        .at(-1),
    },
  ];

  const head = (site, system, set, run) =>
    parts.lede(
      [
        h("a", { href: pages.link("leaderboard", { set: set.name }) }, "Leaderboard"),
        pages.sets.hasNote(set) ? ` · ${pages.sets.sentence(set)}` : "",
        ` · ${system.kind}${system.llm ? ` · ${visible(system.llm)}` : ""}`,
      ],
      named(system.name),
      pages.sets
        .switches(
          run.map((i) => site.sets[i]),
          set,
          (name) => pages.go("system", { name: system.name, set: name }),
        )
        .map((each) => each && h("div", null, each)),
    );

  function figures(row, columns, records, site, set) {
    const [main] = row.cells;
    const without = columns.findIndex((column) => column.id === "without");
    const took = records.map((record) => record.seconds);
    const average = main.value === null ? pages.sets.noAverage(set) || "not run on all datasets" : null;
    return parts.figures([
      {
        label: `${columns[0].title}, ${site.measure}`,
        value: points(main.value),
        notes: [main.low === null ? average : `${points(main.low)} to ${points(main.high)}`, row.runs ?? null],
      },
      ...(without > 0 ? [{ label: columns[without].title, value: points(row.cells[without].value) }] : []),
      ...(row.rank
        ? [
            {
              label: "Rank",
              value: `${row.rank}`,
              notes: [row.mark ? `${pages.rows.counts(row.mark)}, not distinguished from ${row.mark.alike}` : null],
            },
          ]
        : []),
      {
        label: "Time of a query",
        value: took.includes(null) ? formats.UNKNOWN : seconds(mean(took)),
        notes: [took.includes(null) ? "its cost is not known" : "the mean, with all queries worked on together"],
      },
      { label: "Price of 1,000 queries", value: price(pages.rows.perThousand(row)) },
      { label: "Failures", value: count(records.reduce((sum, { stages }) => sum + total(stages, "failures"), 0)) },
    ]);
  }

  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

  function actions(site, system, set) {
    const data = pages.sets.explored(site, set);
    const others = site.systems.filter(
      (other) => other.name !== system.name && set.datasets.some((dataset) => other.figures[dataset]),
    );
    const options = [{ value: "", label: "another system" }, ...parts.asOptions(others.map((other) => other.name))];
    return h(
      "div",
      { class: "row actions" },
      h("a", { class: "button", href: pages.link("explorer", { a: system.name, data }) }, "Explore its queries"),
      others.length
        ? parts.select("Compare with", options, "", (name) => {
            if (name) pages.go("explorer", { a: system.name, b: name, data });
          })
        : null,
    );
  }

  /* Return a line with a link to the answers of readers that read the results of a system; null if there are none. */
  /** @type {(system: SystemRow, views: AnswersView[]) => HTMLElement | null} */
  function answeredBy(system, views) {
    const rows = views.flatMap((view) => view.rows).filter((row) => row.system === system.name);
    const readers = new Set(rows.map((row) => row.reader)).size;
    return readers
      ? parts.section(
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
      .map((column, i) => ({
        cell: row.cells[i],
        dataset: site.datasets[column.dataset],
        record: records.find((record) => record.dataset === column.dataset),
      }))
      .filter(({ cell, dataset }) => cell.value !== null && dataset);
    const span = [0, Math.max(...shown.map(({ cell }) => cell.high ?? cell.value))];
    const time = (record) => (record.seconds === null ? formats.UNKNOWN : seconds(record.seconds));
    const explored = ({ name }) => pages.link("explorer", { data: name, a: row.name });
    return parts.table(
      "Scores by dataset",
      [
        {
          title: "Dataset",
          isHead: true,
          cell: ({ dataset }) => [
            named(dataset.name),
            h("small", { class: "muted" }, dataset.task ? ` ${visible(dataset.task)}` : ""),
          ],
        },
        { title: `0 to ${points(span[1], 0)}`, cell: ({ cell }) => pages.chart.interval(cell, span, room(480)) },
        { title: site.measure, num: true, cell: ({ cell }) => points(cell.value) },
        {
          title: "95 % interval",
          num: true,
          kind: "muted",
          cell: ({ cell }) => (cell.low === null ? "–" : `${points(cell.low)} – ${points(cell.high)}`),
        },
        {
          title: "Queries",
          num: true,
          cell: ({ dataset }) => (dataset.queries === null ? "–" : count(dataset.queries)),
        },
        { title: "Time of a query", num: true, cell: ({ record }) => (record ? time(record) : "–") },
        {
          title: "Failures",
          num: true,
          cell: ({ record }) => (record ? count(total(record.stages, "failures")) : "–"),
        },
        { title: "", num: true, cell: ({ dataset }) => h("a", { href: explored(dataset) }, "queries") },
      ],
      shown,
      { kind: "forest scores" },
    );
  }

  /** @param {SlicesOfKind[]} kinds */
  function slices(kinds) {
    if (!kinds.length) return null;
    const ends = kinds.flatMap(({ slices: all }) => all).map(({ score }) => score.high ?? score.value);
    const span = [0, Math.max(...ends)];
    return parts.section(
      "Where it is strong and weak",
      h(
        "div",
        { class: "columns" },
        kinds.map(({ title, slices: all }) =>
          h(
            "div",
            { class: "slice" },
            h("h3", null, title),
            parts.table(
              title,
              [
                {
                  title: "",
                  isHead: true,
                  cell: ({ label, queries }) => [named(label), h("small", { class: "muted" }, ` ${count(queries)}`)],
                },
                { title: "", cell: ({ score }) => pages.chart.interval(score, span, room(220)) },
                { title: "", num: true, cell: ({ score }) => points(score.value) },
              ],
              all,
              { kind: "forest" },
            ),
          ),
        ),
      ),
    );
  }

  const STAGE_SUMS = ["seconds", "prepared", "calls", "tokens", "dollars", "unpriced"];

  function stageTable(records, site) {
    const queries = Math.max(
      1,
      records.reduce((sum, record) => sum + (site.datasets[record.dataset].queries || 0), 0),
    );
    const stages = (records[0]?.stages || []).map((stage, i) => {
      const same = records.map((record) => record.stages[i]).filter(Boolean);
      return { ...stage, ...Object.fromEntries(STAGE_SUMS.map((name) => [name, total(same, name)])) };
    });
    const most = Math.max(...stages.map((stage) => stage.seconds), 1e-12);
    // What recorded texts took is not known.
    const known = (of) => (stage) => (stage.recorded ? h("td", { class: "num muted" }, "unknown") : of(stage));
    const time = (stage) =>
      pages.chart.bar(h("td", { class: "num" }, seconds(stage.seconds / queries)), stage.seconds, most);
    return parts.table(
      "Cost by stage",
      [
        { title: "Stage", isHead: true, cell: ({ stage }) => stage[0].toUpperCase() + stage.slice(1) },
        { title: "", cell: ({ name }) => named(name) },
        { title: "Time per query", num: true, cell: known(time) },
        { title: "LLM calls", num: true, cell: known(({ calls }) => count(calls)) },
        { title: "LLM tokens", num: true, cell: known(({ tokens }) => count(tokens)) },
        { title: "Dollars", num: true, cell: known((stage) => dollars(stage.dollars, stage.unpriced)) },
        { title: "Preparing the corpus", num: true, cell: ({ prepared }) => (prepared ? seconds(prepared) : "–") },
      ],
      stages,
      { kind: "stages", row: { class: "ours" } },
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
      { key: "[", what: "the system one rank above", action: () => move(0) },
      { key: "]", what: "the system one rank below", action: () => move(1) },
      {
        key: "c",
        what: "compare with another",
        action: () => /** @type {HTMLElement} */ (document.querySelector(".actions select"))?.focus(),
      },
    ],
    show,
  });
})();

/* The explorer: the queries of a dataset, and the rankings of every system for one of them. The address holds all
   choices. Parts are in explorer_*.js. */
"use strict";

(() => {
  const { h } = pages;
  const ORDERS = [
    { value: "", label: "in the order of the dataset" },
    { value: "hard", label: "hardest first" },
    { value: "gain", label: "B gains most over A", pair: true },
    { value: "loss", label: "B loses most to A", pair: true },
    { value: "apart", label: "scores differ most", pair: true },
    { value: "tau", label: "rankings differ most (τ_AP)", pair: true },
    { value: "only-a", label: "only A finds it", pair: true },
    { value: "only-b", label: "only B finds it", pair: true },
    { value: "neither", label: "neither finds it", pair: true },
  ];
  const NEEDS_PAIR = new Set(ORDERS.filter(({ pair }) => pair).map(({ value }) => value));

  const KEYS = ["data", "q", "a", "b", "order", "find", "measure"];
  const WIDE = window.matchMedia("(min-width: 60rem)"); // on smaller screens, the list of queries is folded

  /** @type {ReturnType<typeof explored> | null} */
  let open = null; // what is on the screen

  /**
   * Return the actions on a dataset while it is shown.
   * @param {ExplorerView} view
   */
  function explored(view) {
    const { chosen } = view;
    view.wide = WIDE;
    view.choose = choose;
    view.step = step;
    view.compare = compare;
    const scores = (view.scores = pages.explorerScores(view));
    const { drawList, markCurrent } = pages.explorerList(view);
    const { heading, reference, drawLedger, drawAspects, wantedBy } = pages.explorerQuery(view);
    Object.assign(view, { wantedBy, reference });
    const answers = pages.explorerAnswers(view);
    view.citedBy = answers.citedBy;
    const { drawRankings } = pages.explorerRankings(view);

    /* --- choices -------------------------------------------------------------------------------------------------- */

    /* Replace choices of the address that this dataset does not have. */
    function check() {
      chosen.data = view.dataset.name;
      if (!ORDERS.some(({ value }) => value === chosen.order)) chosen.order = "";
      if (!pages.measure.parse(chosen.measure)) chosen.measure = view.site.measure;
      if (scores.number(chosen.a) === undefined) chosen.a = view.names[scores.standing()[0]];
      if (scores.number(chosen.b) === undefined || chosen.b === chosen.a) chosen.b = "";
      pairUp();
    }

    function remember(push) {
      const params = Object.fromEntries(KEYS.map((key) => [key, chosen[key]]));
      if (params.measure === view.site.measure) params.measure = "";
      const link = pages.link("explorer", params);
      if (link !== location.hash) history[push ? "pushState" : "replaceState"](null, "", link);
    }

    const rivalName = () => view.names[scores.rival() ?? -1] ?? "";

    /* Some orders need two systems. Take the best except A, or the default order if there is only one system. */
    function pairUp() {
      if (NEEDS_PAIR.has(chosen.order) && !chosen.b) chosen.b = rivalName();
      if (NEEDS_PAIR.has(chosen.order) && !chosen.b) chosen.order = "";
    }

    /* A and B are never the same system. If they would be, the other side takes the earlier system of this side. */
    function keepApart(before, changed) {
      if (!chosen.b || chosen.a !== chosen.b) return;
      if (changed === "a") chosen.b = before.a;
      else if (before.b) chosen.a = before.b;
      else chosen.b = "";
    }

    function choose(changes, push = false) {
      const before = { ...chosen };
      Object.assign(chosen, changes);
      keepApart(before, "a" in changes ? "a" : "b");
      pairUp();
      remember(push);
      return draw();
    }

    /* --- drawing -------------------------------------------------------------------------------------------------- */

    /* Load the files and draw the choices. If the choices change before the files arrive, this drawing stops. */
    async function draw() {
      const turn = (view.turn = {});
      const isLate = () => open?.view !== view || view.turn !== turn;
      const files = await Promise.all(scores.sides().map((system) => pages.load(`explorer/${view.number}/s${system}`)));
      if (isLate()) return;
      view.files = files;
      const list = updateList();
      const position = openQuery();
      const [query, answered] = await Promise.all([
        position < 0 ? null : pages.load(`explorer/${view.number}/q${position}`),
        answers.load(scores.sides(), position),
      ]);
      if (isLate()) return;
      view.answers = answered;
      if (list.choices === view.listDrawn) markCurrent();
      else if (list.reordered) drawList();
      else pages.afterFrame(() => isLate() || drawList()); // the same queries, with other values
      if (query) drawQuery(position, query);
      else drawNothing();
    }

    /* Compute the list of queries, unless the choices are the same as before. */
    function updateList() {
      const { q, ...rest } = chosen;
      const choices = JSON.stringify(rest);
      const shown = view.listed === choices ? view.shown : scores.listed();
      const reordered = String(shown) !== String(view.shown);
      Object.assign(view, { listed: choices, shown });
      return { choices, reordered };
    }

    /* Return the position of the query to show: the chosen one, or the first in the list; -1 if the list is empty. */
    function openQuery() {
      const asked = view.index.queries.findIndex(({ id }) => id === chosen.q);
      const position = view.shown.includes(asked) ? asked : (view.shown[0] ?? -1);
      if (position >= 0) chosen.q = view.index.queries[position].id; // otherwise it opens again after the search
      remember(false);
      view.order.value = chosen.order;
      return position;
    }

    function drawNothing() {
      view.drawn = "";
      view.body.replaceChildren(
        h("p", { class: "empty" }, "No query matches. Choose another order, or search for other words."),
      );
    }

    function drawQuery(position, query) {
      const at = view.shown.indexOf(position);
      const drawn = [position, ...scores.sides(), chosen.measure, view.shown.length, at].join(" ");
      view.query = query;
      if (view.drawn === drawn) return;
      view.drawn = drawn;
      if (view.position !== undefined && view.position !== position) window.scrollTo(0, 0);
      view.position = position;
      const focus = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.focus;
      view.body.replaceChildren(
        heading(position),
        drawLedger(position),
        ...drawAspects(position),
        drawRankings(position),
        ...answers.drawAnswers(position),
      );
      if (focus) /** @type {HTMLElement | null} */ (view.body.querySelector(`[data-focus="${focus}"]`))?.focus();
      const next = view.shown[at + 1];
      if (next !== undefined) pages.load(`explorer/${view.number}/q${next}`).catch(() => {}); // load the next query before j is pressed
    }

    function frame(main) {
      const { site } = view;
      const offered = site.explored_measures;
      const measures = offered.includes(chosen.measure) ? offered : [chosen.measure, ...offered];
      const names = view.available.map((each) => site.datasets[each].name);
      const elsewhere = (data) => pages.go("explorer", { ...chosen, data, q: "", find: "" });
      const order = parts.select("Queries", ORDERS, chosen.order, (value) => choose({ order: value, q: "" }, true));
      view.order = /** @type {HTMLSelectElement} */ (order.querySelector("select"));
      view.list = h("ol", { class: "entries" });
      view.count = h("p", { class: "muted entries-count", role: "status" });
      view.body = h("div", { class: "query-view" });
      view.queries = h(
        "details",
        { class: "queries", open: view.wide.matches },
        h("summary", null, "Queries"),
        h(
          "div",
          { class: "explorer-controls" },
          parts.select("Dataset", parts.asOptions(names), chosen.data, elsewhere),
          order,
          parts.select("Measure", parts.asOptions(measures), chosen.measure, (measure) => choose({ measure })),
        ),
        parts.search("Search queries", "Search queries and answers", chosen.find, (find) => choose({ find })),
        view.count,
        view.list,
      );
      main.append(
        h("h1", { class: "visually-hidden" }, "Explorer"),
        h("div", { class: "explorer" }, h("nav", { "aria-label": "Queries" }, view.queries), view.body),
      );
    }

    /* --- keys ----------------------------------------------------------------------------------------------------- */

    function step(by) {
      if (!view.listed) return;
      const at = view.shown.findIndex((position) => view.index.queries[position].id === chosen.q);
      const next = view.shown[at + by];
      if (next !== undefined) choose({ q: view.index.queries[next].id }, true);
    }

    function turnSystem(side, by) {
      if (!chosen[side]) return;
      const other = chosen[side === "a" ? "b" : "a"];
      const all = scores
        .standing()
        .map((system) => view.names[system])
        .filter((name) => name !== other);
      const next = all[(all.indexOf(chosen[side]) + by + all.length) % all.length];
      choose({ [side]: next });
    }

    function compare() {
      const order = chosen.b && NEEDS_PAIR.has(chosen.order) ? "" : chosen.order;
      choose({ b: chosen.b ? "" : rivalName(), order });
    }

    function swap() {
      if (chosen.b) choose({ a: chosen.b, b: chosen.a });
    }

    function answer() {
      const [first, ...others] = /** @type {NodeListOf<HTMLDetailsElement>} */ (view.body.querySelectorAll(".answer"));
      for (const details of first ? [...others, first] : []) details.open = !first.open;
    }

    return { view, check, frame, draw, step, turnSystem, compare, swap, answer };
  }

  /* --- the page --------------------------------------------------------------------------------------------------- */

  function drawEmpty(main) {
    main.append(
      h("h1", null, "Explorer"),
      h(
        "p",
        { class: "empty" },
        "This board contains no texts. It was made with --without-texts, or the runs and datasets were missing on the machine that made it.",
      ),
    );
  }

  /**
   * Return the dataset to show: the one in the address, or the first dataset of the systems in the address.
   * @param {ExplorerDatasets["datasets"]} datasets
   * @param {URLSearchParams} params
   * @param {Site} site
   */
  function chosenDataset(datasets, params, site) {
    const asked = ["a", "b"]
      .map((side) => site.systems.findIndex(({ name }) => name === params.get(side)))
      .filter((system) => system >= 0);
    const [named] = datasets.filter(({ dataset }) => site.datasets[dataset].name === params.get("data"));
    const [fitting] = datasets.filter(({ systems }) => asked.every((system) => systems.includes(system)));
    return (named ?? fitting ?? datasets[0]).dataset;
  }

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const { datasets } = await pages.load("explorer/index");
    if (!datasets.length) {
      open = null;
      drawEmpty(main);
      return;
    }
    const number = chosenDataset(datasets, params, site);
    const [index, gold, answered] = await Promise.all([
      pages.load(`explorer/${number}/index`),
      pages.load(`gold/${number}`),
      site.answers?.datasets.includes(number) ? pages.load(`explorer/${number}/answers`) : [],
    ]);
    const place = new Map(gold.queries.map((id, i) => [id, i]));
    /** @type {Map<number, number>} */
    const judged = new Map();
    index.queries.forEach(({ id }, i) => {
      const at = place.get(id);
      if (at !== undefined) judged.set(i, at);
    });
    const view = /** @type {ExplorerView} */ ({
      site,
      available: datasets.map(({ dataset }) => dataset),
      number,
      dataset: site.datasets[number],
      index,
      gold,
      judged,
      chosen: /** @type {any} */ (Object.fromEntries(KEYS.map((name) => [name, params.get(name) || ""]))),
      kept: new Map(),
      side: "a",
      condition: site.answers?.condition,
      answered: new Map(answered.map(({ system, queries }) => /** @type {const} */ ([system, new Set(queries)]))),
      names: site.systems.map(({ name }) => name),
    });
    open = explored(view);
    open.check();
    open.frame(main);
    await open.draw();
  }

  pages.page("explorer", {
    title: "Explorer",
    label: "Explorer",
    keys: [
      { key: "j", what: "next query", action: () => open?.step(1) },
      { key: "k", what: "previous query", action: () => open?.step(-1) },
      { key: "[", what: "A: a better system", action: () => open?.turnSystem("a", -1) },
      { key: "]", what: "A: a weaker system", action: () => open?.turnSystem("a", 1) },
      { key: "{", what: "B: a better system", action: () => open?.turnSystem("b", -1) },
      { key: "}", what: "B: a weaker system", action: () => open?.turnSystem("b", 1) },
      { key: "c", what: "compare with another system, or stop", action: () => open?.compare() },
      { key: "x", what: "swap A and B", action: () => open?.swap() },
      { key: "g", what: "reference answer", action: () => open?.answer() },
      { key: "n", what: "next turn of the agent", action: () => pages.explorerStory.step(1) },
      { key: "p", what: "previous turn of the agent", action: () => pages.explorerStory.step(-1) },
      { key: "o", what: "open or close the results of a turn", action: () => pages.explorerStory.unfold() },
    ],
    show,
  });
})();

/* The leaderboard: all systems, run here and published. The address holds the choices. Parts are in leaderboard_*.js. */
"use strict";

(() => {
  const { h, visible } = pages;
  /** @type {LeaderboardView} */
  let view; // what is on the screen
  /** @type {{ table: () => HTMLElement, chart: () => HTMLElement, details: (position: number) => Promise<void> }} */
  let parts; // the functions that draw it

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const setNumber = chosenSet(site, params.get("set"));
    const set = site.sets[setNumber];
    const asked = params.get("measure") || "";
    const measure = pages.measure.parse(asked) && !set.estimated ? asked : site.measure;
    const columns = pages.rows.columns(site, set);
    const all = await pages.rows.all(site, setNumber, measure, columns);
    view = {
      site,
      set,
      setNumber,
      measure,
      columns,
      all,
      params,
      selected: -1,
      marked: null,
      lines: new Map(),
      rows: all,
      body: h("div"),
      order,
      change,
      sort,
      restart,
      open: (position) => parts.details(position),
    };
    parts = { ...pages.leaderboardTable(view), ...pages.leaderboardDetails(view), ...pages.leaderboardChart(view) };
    const { lede, controls } = pages.leaderboardControls(view);
    main.replaceChildren(lede(), controls(), view.body);
    draw();
  }

  /* Return the set in the address, or the first set with systems run here. */
  function chosenSet(site, name) {
    const asked = site.sets.findIndex((set) => set.name === name);
    if (asked >= 0) return asked;
    const run = site.sets.findIndex((set) =>
      site.systems.some((system) => set.datasets.some((number) => system.figures[number])),
    );
    return Math.max(0, run);
  }

  function change(changes) {
    pages.set(changes);
    for (const [name, value] of Object.entries(changes)) {
      if (value) view.params.set(name, value);
      else view.params.delete(name);
    }
    draw();
  }

  /* Draw the page again from the address, because the rows themselves change. */
  const restart = (changes) => pages.go("leaderboard", { ...Object.fromEntries(view.params), ...changes });

  /* Return the first column in which a row has a value: the average, if there is one. */
  const firstColumn = () =>
    view.columns.find((_, i) => view.all.some((row) => row.cells[i].value !== null)) ?? view.columns[0];

  const order = () => ({ by: view.params.get("sort") || firstColumn().id, upwards: view.params.get("up") === "1" });

  /* Sort by a column. The default direction depends on the kind of column. */
  const sort = (id, upwards = pages.rows.startsUpwards(view.columns, id)) =>
    change({ sort: id, up: upwards ? "1" : "" });

  function draw() {
    const { by, upwards } = order();
    view.rows = pages.rows.sorted(pages.rows.passing(view.all, view.params), view.columns, by, upwards);
    view.selected = -1;
    const filtered = ["q", ...pages.rows.FILTERS.map(([name]) => name)].filter((name) => view.params.get(name));
    const reset = () => restart(Object.fromEntries(filtered.map((name) => [name, ""])));
    const results = h(
      "div",
      { id: "results" },
      h(
        "div",
        { class: "row spread results-head" },
        h(
          "p",
          { class: "muted", role: "status" },
          `${view.rows.length} of ${view.all.length} systems`,
          filtered.length ? h("button", { type: "button", class: "plain", onclick: reset }, "Show all") : null,
        ),
        pages.exports.buttons(() => ({
          measure: view.measure,
          labels: pages.sets.kind(view.set),
          columns: view.columns,
          rows: view.rows,
          latex: view.site.latex,
        })),
      ),
      view.params.get("view") === "chart" ? parts.chart() : parts.table(),
      notes(),
    );
    pages.supplant(view.body, results)();
    view.body = results;
  }

  function notes() {
    const headline = view.measure === view.site.measure;
    const { set } = view;
    const unranked = "Published rows have no rankings, so they have scores as published only.";
    return h(
      "p",
      { class: "note" },
      set.overlays.length ? `${unranked} ` : "",
      set.estimated
        ? `An estimate is the ${view.measure} that people’s labels of all pools would give. Its interval contains the errors of the judge. There is no interval if people labelled fewer than 20 queries of a dataset.`
        : headline
          ? "Systems of one class: their difference from the best of the class may be chance (paired sign flips, max-T, 5 %). A system can be in a better class than a system that ranks above it, if its scores vary more. Classes are computed over all systems run here on all of these datasets, so filters do not change them. With fewer than 20 queries there are no classes. Published rows have no scores of single queries, so they are ranked by value only."
          : `${view.measure} is computed here from the ranks of the relevant documents. Published rows and classes exist only for ${view.site.measure}.`,
    );
  }

  /* --- keys -------------------------------------------------------------------------------------------------------- */

  const select = (by) => {
    view.selected = pages.step(view.body, view.selected, by);
  };
  const chosen = () => view.rows[view.selected];

  function open() {
    if (document.activeElement?.closest("a, button")) return false;
    if (chosen()?.ours) pages.go("system", { name: chosen().name, set: view.set.name });
    else if (chosen()) parts.details(view.selected);
    return undefined;
  }

  function compare() {
    if (!chosen()?.ours) {
      pages.toast("Choose a system that was run here with j and k");
      return;
    }
    if (view.marked && view.marked !== chosen().name) pages.go("explorer", { a: view.marked, b: chosen().name });
    else {
      view.marked = chosen().name;
      pages.toast(`Comparing ${visible(view.marked)}: choose another system and press c`);
    }
  }

  function neighbour(step) {
    const ids = view.columns.map((column) => column.id);
    const now = ids.indexOf(order().by);
    sort(ids[(now + step + ids.length) % ids.length]);
  }

  pages.page("leaderboard", {
    title: "Leaderboard",
    label: "Leaderboard",
    keys: [
      ["j", "next system", () => select(1)],
      ["k", "previous system", () => select(-1)],
      ["Enter", "open the system", open],
      [
        "o",
        "show details",
        () => {
          if (chosen()) parts.details(view.selected);
        },
      ],
      ["[", "sort by the column to the left", () => neighbour(-1)],
      ["]", "sort by the column to the right", () => neighbour(1)],
      ["c", "compare this system with another", compare],
    ],
    show,
  });
})();

/* The leaderboard: all systems, run here and published. The address holds the choices. Parts are in leaderboard_*.js. */
"use strict";

(() => {
  const { visible } = pages;
  /** @type {RankedView} */
  let view; // what is on the screen
  let marked = ""; // the system to compare with another

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const setNumber = chosenSet(site, params.get("set"));
    const set = site.sets[setNumber];
    const asked = params.get("measure") || "";
    const measure = pages.measure.parse(asked) ? asked : site.measure;
    const columns = pages.rows.columns(site, set);
    const all = await pages.rows.all(site, setNumber, measure, columns);
    marked = "";
    view = pages.rankedView(
      "leaderboard",
      { site, set, setNumber, measure, columns, all, params },
      {
        title: "Systems",
        nouns: "systems",
        kind: "",
        labels: pages.sets.kind(set),
        details: (row) => pages.leaderboardDetails(view).content(row),
        notes,
      },
    );
    const { lede, controls } = pages.leaderboardControls(view);
    main.replaceChildren(lede(), controls(), view.body);
    view.draw();
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

  function notes() {
    const headline = view.measure === view.site.measure;
    const { set } = view;
    const unranked = "Published rows have no rankings, so they have scores as published only.";
    return [
      set.overlays.length ? `${unranked} ` : "",
      headline
        ? "Two systems share a letter if and only if they do not differ significantly (paired sign flips, adjusted by max-T for all pairs of systems run here or verified on all of these datasets; 5 %). If more than six letters were needed, each row says instead how many systems it is better and worse than. Filters do not change marks. Published rows have no scores of single queries, so they are ranked by value only."
        : `${view.measure} is computed here from the ranks of the relevant documents. Published rows and marks exist only for ${view.site.measure}.`,
    ];
  }

  /* --- keys -------------------------------------------------------------------------------------------------------- */

  const chosen = () => view.rows[view.selected];

  function open() {
    if (document.activeElement?.closest("a, button")) return false;
    if (chosen()?.ours) pages.go("system", { name: chosen().name, set: view.set.name });
    else if (chosen()) view.open(view.selected);
    return undefined;
  }

  function compare() {
    if (!chosen()?.ours) {
      parts.toast("Choose a system that was run here with j and k");
      return;
    }
    if (marked && marked !== chosen().name) pages.go("explorer", { a: marked, b: chosen().name });
    else {
      marked = chosen().name;
      parts.toast(`Comparing ${visible(marked)}: choose another system and press c`);
    }
  }

  function neighbour(step) {
    const ids = view.columns.map((column) => column.id);
    const now = ids.indexOf(view.order().by);
    view.sort(ids[(now + step + ids.length) % ids.length]);
  }

  pages.page("leaderboard", {
    title: "Leaderboard",
    label: "Leaderboard",
    keys: [
      ...pages.lineKeys(
        "system",
        () => view,
        (position) => view.open(position),
      ),
      { key: "Enter", what: "open the system", action: open },
      { key: "[", what: "sort by the column to the left", action: () => neighbour(-1) },
      { key: "]", what: "sort by the column to the right", action: () => neighbour(1) },
      { key: "c", what: "compare this system with another", action: compare },
    ],
    show,
  });
})();

/* The scores of the explorer: means of systems, values and ranks of a query, and the listed queries. It draws nothing. */
"use strict";

/** @param {ExplorerView} view */
pages.explorerScores = (view) => {
  const FOUND = 10; // "finds it" means: a relevant document among the first ten

  const number = (name) => view.index.systems.find((system) => view.site.systems[system].name === name);

  /* Return the result of `make`. It is cached under a key while the dataset is shown. */
  function kept(key, make) {
    if (!view.kept.has(key)) view.kept.set(key, make());
    return view.kept.get(key);
  }

  /* Return the systems sorted by mean, best first. */
  const standing = () =>
    kept(`standing ${view.chosen.measure}`, () => {
      const means = view.index.systems.map((system) => ({ system, mean: mean(system) }));
      return means.sort((x, y) => y.mean - x.mean).map(({ system }) => system);
    });

  /* Return the system to compare with: the best system except A. */
  const rival = () => standing().find((system) => view.site.systems[system].name !== view.chosen.a);

  /* Return the values of a system's judged queries for the chosen measure. */
  const values = (system) => {
    const all = kept(view.chosen.measure, () => []);
    all[system] ??= pages.measure.queries(view.chosen.measure, view.gold, system);
    return all[system];
  };

  const mean = (system) => {
    const all = values(system);
    return all?.length ? all.reduce((sum, value) => sum + value, 0) / all.length : -1;
  };

  /* Return the value of a query for a system; null if the query is not judged. */
  const valueOf = (system, query) => values(system)?.[view.judged.get(query) ?? -1] ?? null;

  const ranksOf = (system, query) => view.gold.ranks[system]?.[view.judged.get(query) ?? -1] ?? [];

  const finds = (system, query) => ranksOf(system, query).some((rank) => rank && rank <= FOUND);

  /* Return the positions of the queries that match the search, in the chosen order. */
  function listed() {
    const { order, find } = view.chosen;
    const [a, b] = sides();
    const needle = find.trim().toLowerCase();
    const has = (i) =>
      !needle || Object.values(view.index.queries[i]).some((text) => text.toLowerCase().includes(needle));
    const all = view.index.queries.map((_, i) => i).filter(has);
    const judged = all.filter((i) => view.judged.has(i));
    const by = (key, some = judged) =>
      some
        .map((i) => ({ at: i, value: key(i) }))
        .sort((x, y) => x.value - y.value || x.at - y.at)
        .map(({ at }) => at);
    const difference = (i) => (valueOf(b, i) ?? 0) - (valueOf(a, i) ?? 0);
    /** @type {Record<string, () => number[]>} */
    const orders = {
      hard: () => by((i) => view.index.systems.reduce((sum, system) => sum + (valueOf(system, i) ?? 0), 0)),
      gain: () => by((i) => -difference(i)),
      loss: () => by(difference),
      apart: () => by((i) => -Math.abs(difference(i))),
      tau: () => by(tau, all),
      "only-a": () => judged.filter((i) => finds(a, i) && !finds(b, i)),
      "only-b": () => judged.filter((i) => finds(b, i) && !finds(a, i)),
      neither: () => judged.filter((i) => !finds(a, i) && !finds(b, i)),
    };
    return orders[order]?.() ?? all;
  }

  const tau = (i) => pages.ranking.tauAP(view.files[0].rankings[i], view.files[1].rankings[i]);

  const sides = () =>
    [view.chosen.a, view.chosen.b].filter(Boolean).map((name) => /** @type {number} */ (number(name)));

  return { number, kept, standing, rival, mean, valueOf, ranksOf, listed, sides };
};

/* Compute measures from the ranks of relevant documents. r2med/evaluation/measure/scores.py computes the same from rankings. */
"use strict";

pages.measure = (() => {
  const NEED_CUTOFF = ["R", "P"];

  /**
   * Return the family and the cutoff of a measure such as "nDCG@10". The cutoff of "MRR" is null. Return null for other
   * texts.
   * @param {string} text
   * @returns {{ family: string, cutoff: number | null } | null}
   */
  function parse(text) {
    const [, family, cutoff] = /^([a-z]+)(?:@([1-9][0-9]{0,8}))?$/i.exec(text) ?? [];
    if (!FAMILIES.includes(family) || (!cutoff && NEED_CUTOFF.includes(family))) return null;
    return { family, cutoff: cutoff ? Number(cutoff) : null };
  }

  /**
   * @param {string} measure a measure that `parse` accepts
   * @returns {{ family: string, cutoff: number }}
   */
  function accepted(measure) {
    const parsed = parse(measure);
    if (!parsed) throw new Error(`${measure} is not a measure`);
    return { family: parsed.family, cutoff: parsed.cutoff ?? Infinity };
  }

  const discount = (rank) => 1 / Math.log2(rank + 1);
  const sum = (values) => values.reduce((total, value) => total + value, 0);

  // Plain loops without lists are fast: one click may compute ninety thousand values for a hundred systems.
  function gained(ranks, grades, cutoff) {
    let gain = 0;
    for (let i = 0; i < ranks.length; i += 1)
      if (ranks[i] > 0 && ranks[i] <= cutoff) gain += grades[i] * discount(ranks[i]);
    return gain;
  }

  function retrieved(ranks, cutoff) {
    let count = 0;
    for (let i = 0; i < ranks.length; i += 1) if (ranks[i] > 0 && ranks[i] <= cutoff) count += 1;
    return count;
  }

  function first(ranks) {
    let best = Infinity;
    for (let i = 0; i < ranks.length; i += 1) if (ranks[i] > 0 && ranks[i] < best) best = ranks[i];
    return best;
  }

  const COMPUTE = {
    nDCG: (ranks, grades, cutoff, ideal) => gained(ranks, grades, cutoff) / ideal,
    R: (ranks, grades, cutoff) => retrieved(ranks, cutoff) / grades.length,
    P: (ranks, grades, cutoff) => retrieved(ranks, cutoff) / cutoff,
    MAP: (ranks, grades, cutoff) =>
      sum(
        ranks
          .filter((rank) => rank > 0 && rank <= cutoff)
          .sort((a, b) => a - b)
          .map((rank, i) => (i + 1) / rank),
      ) / grades.length,
    MRR: (ranks, grades, cutoff) => (first(ranks) <= cutoff ? 1 / first(ranks) : 0),
  };

  const FAMILIES = Object.keys(COMPUTE);

  /* Return the gain of the best possible ranking of a query's relevant documents. */
  const ideal = (grades, cutoff) =>
    sum(
      [...grades]
        .sort((a, b) => b - a)
        .slice(0, cutoff)
        .map((grade, i) => grade * discount(i + 1)),
    );

  const ideals = new WeakMap(); // data file -> cutoff -> the ideal gain of each query, the same for all systems

  function idealsOf(gold, cutoff) {
    if (!ideals.has(gold)) ideals.set(gold, new Map());
    const known = ideals.get(gold);
    if (!known.has(cutoff))
      known.set(
        cutoff,
        gold.grades.map((grades) => ideal(grades, cutoff)),
      );
    return known.get(cutoff);
  }

  /**
   * Return the value for one query from the ranks (0: not in the ranking) and grades of its relevant documents.
   * @param {string} measure
   * @param {number[]} ranks
   * @param {number[]} grades
   * @returns {number}
   */
  function query(measure, ranks, grades) {
    const { family, cutoff } = accepted(measure);
    const best = ideal(grades, cutoff);
    return best ? COMPUTE[family](ranks, grades, cutoff, best) : 0;
  }

  /**
   * Return the values of all queries of a dataset for one system; null if the system has no ranking.
   * @param {string} measure
   * @param {GoldFile} gold
   * @param {number} system
   * @returns {number[] | null}
   */
  function queries(measure, gold, system) {
    const { family, cutoff } = accepted(measure);
    const best = idealsOf(gold, cutoff);
    return (
      gold.ranks[system]?.map((ranks, i) => (best[i] ? COMPUTE[family](ranks, gold.grades[i], cutoff, best[i]) : 0)) ??
      null
    );
  }

  /**
   * Return the mean over a dataset's judged queries; null if there is no ranking.
   * @param {string} measure
   * @param {GoldFile} gold
   * @param {number} system
   * @returns {number | null}
   */
  function mean(measure, gold, system) {
    const values = queries(measure, gold, system);
    return values && (values.length ? sum(values) / values.length : 0);
  }

  return { FAMILIES, parse, query, queries, mean };
})();

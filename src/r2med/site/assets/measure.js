/* Measures from the ranks of gold documents, the same as r2med/measure/scores.py computes from whole rankings. */
"use strict";

board.measure = (() => {
  const FAMILIES = ["nDCG", "R", "P", "MAP", "MRR"];

  /**
   * Return [family, cutoff] of "nDCG@10", "MRR" (cutoff null), or null where it is no measure.
   * @param {string} text
   * @returns {[family: string, cutoff: number | null] | null}
   */
  function parse(text) {
    const match = /^(nDCG|R|P|MAP|MRR)(?:@([1-9][0-9]{0,8}))?$/.exec(text);
    if (!match || (!match[2] && (match[1] === "R" || match[1] === "P"))) return null;
    return [match[1], match[2] ? Number(match[2]) : null];
  }

  /**
   * @param {string} measure one that `parse` knows
   * @returns {[family: string, cutoff: number]}
   */
  function parts(measure) {
    const parsed = parse(measure);
    if (!parsed) throw new Error(`${measure} is not a measure`);
    return [parsed[0], parsed[1] ?? Infinity];
  }

  const discount = (rank) => 1 / Math.log2(rank + 1);
  const sum = (values) => values.reduce((total, value) => total + value, 0);

  // Loops that make no lists: of a hundred systems ninety thousand queries are computed between a click and its answer.
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

  /* The gain of the best ranking of a query's gold documents. */
  const ideal = (grades, cutoff) =>
    sum(
      [...grades]
        .sort((a, b) => b - a)
        .slice(0, cutoff)
        .map((grade, i) => grade * discount(i + 1)),
    );

  const ideals = new WeakMap(); // gold file -> cutoff -> the ideal gain of each query, the same for all systems

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
   * Return the value for one query: `ranks` of its gold documents (0: not in the ranking) and their grades, all above 0.
   * @param {string} measure
   * @param {number[]} ranks
   * @param {number[]} grades
   * @returns {number}
   */
  function query(measure, ranks, grades) {
    const [family, cutoff] = parts(measure);
    const best = ideal(grades, cutoff);
    return best ? COMPUTE[family](ranks, grades, cutoff, best) : 0;
  }

  /**
   * Return the values of all queries of a dataset's gold file for one system; null where there is no ranking of it.
   * @param {string} measure
   * @param {GoldFile} gold
   * @param {number} system
   * @returns {number[] | null}
   */
  function queries(measure, gold, system) {
    const [family, cutoff] = parts(measure);
    const best = idealsOf(gold, cutoff);
    return (
      gold.ranks[system]?.map((ranks, i) => (best[i] ? COMPUTE[family](ranks, gold.grades[i], cutoff, best[i]) : 0)) ??
      null
    );
  }

  /**
   * Return the mean over a dataset's judged queries; null where there is no ranking.
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

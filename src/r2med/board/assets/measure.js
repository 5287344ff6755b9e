/* Measures from the ranks of gold documents, the same as r2med/measure/scores.py computes from whole rankings. */
"use strict";

board.measure = (() => {
  const FAMILIES = ["nDCG", "R", "P", "MAP", "MRR"];

  /* Return [family, cutoff] of "nDCG@10", "MRR" (cutoff null), or null where it is no measure. */
  function parse(text) {
    const match = /^(nDCG|R|P|MAP|MRR)(?:@([1-9][0-9]{0,8}))?$/.exec(text);
    if (!match || (!match[2] && (match[1] === "R" || match[1] === "P"))) return null;
    return [match[1], match[2] ? Number(match[2]) : null];
  }

  const discount = (rank) => 1 / Math.log2(rank + 1);
  const sum = (values) => values.reduce((total, value) => total + value, 0);

  const COMPUTE = {
    nDCG(found, grades, cutoff) {
      const ideal = [...grades].sort((a, b) => b - a).slice(0, cutoff);
      return sum(found.map(([rank, grade]) => grade * discount(rank))) / sum(ideal.map((grade, i) => grade * discount(i + 1)));
    },
    R: (found, grades) => found.length / grades.length,
    P: (found, grades, cutoff) => found.length / cutoff,
    MAP: (found, grades) => sum(found.map(([rank], i) => (i + 1) / rank)) / grades.length,
    MRR: (found) => (found.length ? 1 / found[0][0] : 0),
  };

  /* Return the value for one query: `ranks` of its gold documents (0: not in the ranking) and their grades, all above 0. */
  function query(measure, ranks, grades) {
    const [family, cutoff] = parse(measure);
    const limit = cutoff ?? Infinity;
    const found = ranks.map((rank, i) => [rank, grades[i]]).filter(([rank]) => rank > 0 && rank <= limit).sort((a, b) => a[0] - b[0]);
    return grades.length ? COMPUTE[family](found, grades, limit) : 0;
  }

  /* Return the values of all queries of a dataset's gold file for one system; null where there is no ranking of it. */
  const queries = (measure, gold, system) => gold.ranks[system]?.map((ranks, i) => query(measure, ranks, gold.grades[i])) ?? null;

  /* Return the mean over a dataset's judged queries; null where there is no ranking. */
  function mean(measure, gold, system) {
    const values = queries(measure, gold, system);
    return values && (values.length ? sum(values) / values.length : 0);
  }

  return { FAMILIES, parse, query, queries, mean };
})();

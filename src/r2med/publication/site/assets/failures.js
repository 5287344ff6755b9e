/* The failures of a system: by kind, by query, and the answers that were repaired. */
"use strict";

pages.failures = (() => {
  const { h, named, visible } = pages;
  const { count } = formats;

  /* Return kind -> times, summed over several counts. */
  /** @type {(counts: Record<string, number>[]) => Record<string, number>} */
  function summed(counts) {
    const sums = new Map();
    for (const [kind, times] of counts.flatMap(Object.entries)) sums.set(kind, (sums.get(kind) || 0) + times);
    return Object.fromEntries(sums);
  }

  const stagesOf = (records) => records.flatMap((record) => record.stages);

  /* Return the failures of some records: stage and kind -> times. */
  const failureKinds = (records) =>
    summed(
      stagesOf(records).map(({ name, kinds, failures }) => {
        const known = Object.keys(kinds).length || !failures ? kinds : { failed: failures };
        return Object.fromEntries(Object.entries(known).map(([kind, times]) => [`${name}: ${kind}`, times]));
      }),
    );

  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

  /* Return in how many cases nothing was left to use; null if the failures are just these. */
  function without(records) {
    const left = sum(stagesOf(records).map(({ failures }) => failures));
    return left < sum(Object.values(failureKinds(records))) ? left : null;
  }

  /* Return one line about the failures. */
  function inWords({ records }) {
    const kinds = Object.entries(failureKinds(records)).map(([kind, times]) => `${kind} ${times}`);
    const left = without(records);
    return `${kinds.join(", ") || "none"}${left === null ? "" : ` (${count(left)} without a result)`}`;
  }

  const countFacts = (counts) =>
    parts.facts(Object.entries(counts).map(([kind, times]) => ({ name: kind, value: count(times) })));

  /* Return the failed queries with links into the explorer. */
  function failedQueries(records, system, site) {
    const failed = records.flatMap((record) =>
      record.stages.flatMap((stage) =>
        Object.entries(stage.failed).map(([query, kinds]) => ({
          query,
          kinds,
          stage: stage.name,
          data: site.datasets[record.dataset].name,
        })),
      ),
    );
    const explored = ({ data, query }) => pages.link("explorer", { data, q: query, a: system.name });
    return failed.length
      ? h(
          "details",
          null,
          h("summary", null, "Which queries"),
          parts.table(
            "Queries that failed",
            [
              { title: "Query", isHead: true, cell: (row) => h("a", { href: explored(row) }, named(row.query)) },
              { title: "Dataset", cell: (row) => named(row.data) },
              { title: "Stage", cell: (row) => named(row.stage) },
              { title: "What failed", cell: (row) => visible(row.kinds) },
            ],
            failed,
            { kind: "stages" },
          ),
        )
      : null;
  }

  /* Return the whole section as nodes. */
  function list(records, system, site) {
    const kinds = failureKinds(records);
    const left = without(records);
    const repairs = summed(stagesOf(records).map((stage) => stage.repairs));
    const has = (counts) => Object.keys(counts).length > 0;
    return [
      has(kinds) ? countFacts(kinds) : h("p", null, "There were no failures."),
      left === null
        ? null
        : h(
            "p",
            { class: "note" },
            `These are all LLM calls that failed and all conversations that ended early. If something was left, such as the documents found so far, it was used. The number above counts only the cases in which nothing was left: ${count(left)}.`,
          ),
      failedQueries(records, system, site),
      has(repairs) ? [h("h3", null, "Answers that were repaired"), countFacts(repairs)] : null,
    ];
  }

  return { inWords, list };
})();

/* The failures of a system: by kind, by query, and the answers that were repaired. */
"use strict";

pages.failures = (() => {
  const { h, named, visible, facts } = pages;
  const { count } = formats;

  /* Return the failures of some records by kind: [[kind, number]]. */
  function failureKinds(records) {
    const kinds = new Map();
    for (const stage of records.flatMap((record) => record.stages)) {
      const named = stage.kinds.length ? stage.kinds : stage.failures ? [["failed", stage.failures]] : [];
      for (const [kind, times] of named)
        kinds.set(`${stage.name}: ${kind}`, (kinds.get(`${stage.name}: ${kind}`) || 0) + times);
    }
    return [...kinds];
  }

  /* Return one line about the failures. */
  const inWords = (system) =>
    failureKinds(system.records)
      .map(([kind, times]) => `${kind} ${times}`)
      .join(", ") || "none";

  /* Return the failed queries with links into the explorer. */
  function failedQueries(records, system, site) {
    const failed = records.flatMap((record) =>
      record.stages.flatMap((stage) =>
        stage.failed.map(([query, kinds]) => [site.datasets[record.dataset].name, query, stage.name, kinds]),
      ),
    );
    return failed.length
      ? h(
          "details",
          null,
          h("summary", null, "Which queries"),
          pages.region(
            "Queries that failed",
            h(
              "table",
              { class: "stages" },
              h(
                "tbody",
                null,
                failed.map(([data, query, stage, kinds]) =>
                  h(
                    "tr",
                    null,
                    h(
                      "th",
                      { scope: "row" },
                      h("a", { href: pages.link("explorer", { data, q: query, a: system.name }) }, named(query)),
                    ),
                    h("td", null, named(data)),
                    h("td", null, named(stage)),
                    h("td", null, visible(kinds)),
                  ),
                ),
              ),
            ),
          ),
        )
      : null;
  }

  /* Return the whole section as nodes. */
  function list(records, system, site) {
    const kinds = failureKinds(records);
    const repairs = records.flatMap((record) => record.stages.flatMap((stage) => stage.repairs));
    const sums = new Map();
    for (const [kind, times] of repairs) sums.set(kind, (sums.get(kind) || 0) + times);
    return [
      kinds.length
        ? facts(kinds.map(([kind, times]) => [kind, count(times)]))
        : h("p", null, "There were no failures."),
      failedQueries(records, system, site),
      sums.size
        ? [h("h3", null, "Answers that were repaired"), facts([...sums].map(([kind, times]) => [kind, count(times)]))]
        : null,
    ];
  }

  return { inWords, list };
})();

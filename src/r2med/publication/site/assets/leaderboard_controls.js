/* The part above the leaderboard's table: a summary in words, the measure, the filters. */
"use strict";

/** @param {RankedView} view */
pages.leaderboardControls = (view) => {
  const { h, named } = pages;
  const { points, counted } = formats;

  function lede() {
    const { site, set, measure } = view;
    const known = set.datasets.map((number) => site.datasets[number]);
    const queries = known.reduce((sum, dataset) => sum + (dataset.queries || 0), 0);
    return parts.lede(
      [
        `${set.group} · ${counted(known.length, "dataset")}, ${counted(queries, "query", "queries")} · ${measure} × 100`,
        site.sets.some(pages.sets.hasNote) ? ` · ${pages.sets.sentence(set)}` : "",
      ],
      "Which systems reason about medicine?",
      h("p", null, summary()),
      set.group === "demo"
        ? h(
            "p",
            { class: "note" },
            "The demo is small and was written to show one thing. Its scores show nothing else.",
          )
        : null,
    );
  }

  function summary() {
    const ranked = view.all.filter((row) => row.rank).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
    if (view.set.missing.length) return pages.sets.noAverage(view.set);
    if (!ranked.length) return "No system has been run on all of these datasets yet.";
    const best = ranked.find((row) => row.mark);
    const parts = [
      ranked.length === 1 ? "" : `Of ${ranked.length} systems, `,
      h("strong", null, named(ranked[0].name)),
      ranked.length === 1
        ? ` has ${points(ranked[0].cells[0].value)}. `
        : ` is first with ${points(ranked[0].cells[0].value)}. `,
    ];
    if (best?.mark) {
      if (best !== ranked[0])
        parts.push(
          "Of the systems run here or verified, ",
          h("strong", null, named(best.name)),
          ` leads with ${points(best.cells[0].value)}. `,
        );
      parts.push(pages.rows.peers(best.mark));
    }
    return parts;
  }

  function controls() {
    const { site, set, measure } = view;
    const rest = h(
      "div",
      { class: "row filters", id: "filters" },
      searchField("Search systems"),
      pages.rows.FILTERS.map(filterField),
      sortField(),
    );
    const opener = h(
      "button",
      {
        type: "button",
        class: "filters-switch",
        "aria-controls": "filters",
        "aria-expanded": "false",
        onclick: () => opener.setAttribute("aria-expanded", String(rest.classList.toggle("open"))),
      },
      "Filter and sort",
    );
    return h(
      "div",
      { class: "controls" },
      h(
        "div",
        { class: "row spread" },
        pages.sets.switches(site.sets, set, (name) => view.restart({ set: name, sort: "" })),
        viewSwitch(),
        measureField(measure),
        opener,
      ),
      rest,
    );
  }

  /* --- fields that the page Answers has too ------------------------------------------------------------------------ */

  const searchField = (label) =>
    parts.field(
      "Search",
      parts.search(label, label, view.params.get("q") || "", (q) => view.change({ q })),
      "grow",
    );

  /* Draw a filter, unless all rows have the same value. */
  /** @param {RowFilter} filter */
  function filterField({ name, label, options }) {
    const offered = options(view.all);
    const all = [{ value: "", label: "all" }, ...offered];
    return offered.length
      ? parts.select(label, all, view.params.get(name) || "", (value) => view.change({ [name]: value }))
      : null;
  }

  const sortField = () =>
    parts.select(
      "Sort by",
      [...view.columns.map((column) => ({ value: column.id, label: column.title })), { value: "name", label: "Name" }],
      view.order().by,
      (id) => view.sort(id),
    );

  const viewSwitch = () =>
    parts.segmented(
      "View",
      [
        { value: "", label: "Table" },
        { value: "chart", label: "Quality against cost" },
      ],
      view.params.get("view") || "",
      (value) => view.change({ view: value }),
    );

  function measureField(measure) {
    const { family, cutoff } = pages.measure.parse(measure);
    const apply = (name, at) => {
      const wanted = at ? `${name}@${at}` : name;
      if (pages.measure.parse(wanted)) view.restart({ measure: wanted === view.site.measure ? "" : wanted });
      else parts.toast(`${name} needs a cutoff`);
    };
    const near = () => pages.rows.goldFiles(view.site, view.set);
    return h(
      "div",
      { class: "row measure", onpointerenter: near, onfocusin: near },
      parts.select("Measure", parts.asOptions(pages.measure.FAMILIES), family, (name) =>
        apply(name, cutoff || (name === "MRR" ? null : 10)),
      ),
      parts.field(
        "Cutoff",
        h("input", {
          type: "number",
          min: 1,
          max: 1000,
          value: cutoff ?? "",
          placeholder: "none",
          onchange: (event) => apply(family, event.target.value),
        }),
      ),
    );
  }

  return { lede, controls, searchField, filterField, sortField, viewSwitch };
};

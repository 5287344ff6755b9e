/* The part above the leaderboard's table: a summary in words, the measure, the filters. */
"use strict";

/** @param {LeaderboardView} view */
pages.leaderboardControls = (view) => {
  const { h, named } = pages;
  const { points, counted } = formats;

  function lede() {
    const { site, set, measure } = view;
    const known = set.datasets.map((number) => site.datasets[number]);
    const queries = known.reduce((sum, dataset) => sum + (dataset.queries || 0), 0);
    return h(
      "div",
      { class: "lede" },
      h(
        "p",
        { class: "eyebrow" },
        `${set.group} · ${counted(known.length, "dataset")}, ${counted(queries, "query", "queries")} · ${measure} × 100`,
        site.sets.some(pages.sets.hasNote) ? ` · ${pages.sets.sentence(set)}` : "",
      ),
      h("h1", null, "Which systems reason about medicine?"),
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
    const best = ranked.find((row) => row.ours && row.level === 1);
    const parts = [
      ranked.length === 1 ? "" : `Of ${ranked.length} systems, `,
      h("strong", null, named(ranked[0].name)),
      ranked.length === 1
        ? ` has ${points(ranked[0].cells[0].value)}. `
        : ` is first with ${points(ranked[0].cells[0].value)}. `,
    ];
    if (best) {
      const peers = ranked.filter((row) => row.level === 1).length - 1;
      if (best !== ranked[0])
        parts.push(
          "Of the systems run here, ",
          h("strong", null, named(best.name)),
          ` leads with ${points(best.cells[0].value)}. `,
        );
      parts.push(
        peers
          ? `${counted(peers, "other system")} run here cannot be distinguished from it with these queries.`
          : "It differs significantly from all other systems run here.",
      );
    }
    return parts;
  }

  function controls() {
    const { site, set, params, measure } = view;
    const search = h("input", {
      type: "search",
      placeholder: "Search systems",
      "aria-label": "Search systems",
      value: params.get("q") || "",
      oninput: (event) => view.change({ q: event.target.value }),
    });
    const filters = pages.rows.FILTERS.map(([name, label, options]) => {
      const offered = options(view.all);
      return offered.length
        ? pages.select(label, [["", "all"], ...offered], params.get(name) || "", (value) =>
            view.change({ [name]: value }),
          )
        : null;
    });
    const rest = h(
      "div",
      { class: "row filters", id: "filters" },
      h("label", { class: "field grow" }, h("span", null, "Search"), search),
      filters,
      pages.select(
        "Sort by",
        [...view.columns.map((column) => [column.id, column.title]), ["name", "Name"]],
        view.order().by,
        view.sort,
      ),
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
        pages.segmented(
          "View",
          [
            ["", "Table"],
            ["chart", "Quality against cost"],
          ],
          params.get("view") || "",
          (value) => view.change({ view: value }),
        ),
        set.estimated ? null : measureField(measure),
        opener,
      ),
      rest,
    );
  }

  function measureField(measure) {
    const [family, cutoff] = pages.measure.parse(measure);
    const apply = (name, at) => {
      const wanted = at ? `${name}@${at}` : name;
      if (pages.measure.parse(wanted)) view.restart({ measure: wanted === view.site.measure ? "" : wanted });
      else pages.toast(`${name} needs a cutoff`);
    };
    const near = () => pages.rows.goldFiles(view.site, view.set);
    return h(
      "div",
      { class: "row measure", onpointerenter: near, onfocusin: near },
      pages.select(
        "Measure",
        pages.measure.FAMILIES.map((name) => [name, name]),
        family,
        (name) => apply(name, cutoff || (name === "MRR" ? null : 10)),
      ),
      h(
        "label",
        { class: "field" },
        h("span", null, "Cutoff"),
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

  return { lede, controls };
};

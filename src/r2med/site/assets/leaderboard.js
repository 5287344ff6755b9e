/* The leaderboard: every system, ours and published; filters, order, details, quality against cost, downloads. */
"use strict";

(() => {
  const { h, named, visible } = board;
  const { points, count, counted } = formats;
  /** @type {LeaderboardView} */
  let view = null; // what is on the screen

  const X_AXES = new Map([
    ["dollars", ["dollars per 1,000 queries", board.rows.perThousand, (v) => (v === 0 ? "free" : `$${trimmed(v)}`)]],
    ["seconds", ["seconds per query", (row) => row.cost?.seconds ?? null, (v) => `${trimmed(v)} s`]],
    [
      "size",
      [
        "parameters of the largest model",
        (row) => row.size,
        (v) => (v === 0 ? "none" : v < 1 ? `${trimmed(1000 * v)}M` : `${trimmed(v)}B`),
      ],
    ],
  ]);
  const trimmed = (value) => Number(value.toPrecision(2)).toLocaleString("en", { maximumFractionDigits: 6 });

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const setNumber = chosenSet(site, params.get("set"));
    const set = site.sets[setNumber];
    const measure = board.measure.parse(params.get("measure") || "") ? params.get("measure") : site.measure;
    const columns = board.rows.columns(site, set);
    const all = await board.rows.all(site, setNumber, measure, columns);
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
    };
    main.replaceChildren(lede(), controls(), view.body);
    draw();
  }

  /* The set in the address, or the first that has systems of ours. */
  function chosenSet(site, name) {
    const asked = site.sets.findIndex((set) => set.name === name);
    if (asked >= 0) return asked;
    const run = site.sets.findIndex((set, i) => site.systems.some((system) => system.averages[i]));
    return Math.max(0, run);
  }

  function change(changes) {
    board.set(changes);
    for (const [name, value] of Object.entries(changes)) {
      if (value) view.params.set(name, value);
      else view.params.delete(name);
    }
    draw();
  }

  /* For what changes the rows themselves, and not only which are shown: drawn from the address. */
  const restart = (changes) => board.go("leaderboard", { ...Object.fromEntries(view.params), ...changes });

  /* --- above the table --------------------------------------------------------------------------------------------- */

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
        `${set.name} · ${counted(known.length, "dataset")}, ${counted(queries, "query", "queries")} · ${measure} × 100`,
      ),
      h("h1", null, "Which systems reason about medicine?"),
      h("p", null, summary()),
      set.name === "demo"
        ? h(
            "p",
            { class: "note" },
            "The demo is small and written to show one thing. Its figures mean nothing beyond it.",
          )
        : null,
    );
  }

  function summary() {
    const ranked = view.all.filter((row) => row.rank).sort((a, b) => a.rank - b.rank);
    if (!ranked.length) return "No system has been run on all of these datasets yet.";
    const best = ranked.find((row) => row.ours && row.level === 1);
    const parts = [
      `Of ${ranked.length} systems, `,
      h("strong", null, named(ranked[0].name)),
      ` stands first with ${points(ranked[0].cells[0].value)}. `,
    ];
    if (best) {
      const peers = ranked.filter((row) => row.level === 1).length - 1;
      if (best !== ranked[0])
        parts.push(
          "Of those run here, ",
          h("strong", null, named(best.name)),
          ` leads with ${points(best.cells[0].value)}. `,
        );
      parts.push(
        peers
          ? `${counted(peers, "other")} that ${peers === 1 ? "was" : "were"} run here cannot be told from it with these queries.`
          : "Each other that was run here can be told from it.",
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
      oninput: (event) => change({ q: event.target.value }),
    });
    const filters = board.rows.FILTERS.map(([name, label, options]) => {
      const offered = options(view.all);
      return offered.length
        ? board.select(label, [["", "all"], ...offered], params.get(name) || "", (value) => change({ [name]: value }))
        : null;
    });
    const rest = h(
      "div",
      { class: "row filters", id: "filters" },
      h("label", { class: "field grow" }, h("span", null, "Search"), search),
      filters,
      board.select(
        "Sort by",
        [...view.columns.map((column) => [column.id, column.title]), ["name", "Name"]],
        order().by,
        (value) => change({ sort: value, up: "" }),
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
        site.sets.length > 1
          ? board.segmented(
              "Datasets",
              site.sets.map((each) => [each.name, each.name]),
              set.name,
              (name) => restart({ set: name, sort: "" }),
            )
          : null,
        board.segmented(
          "View",
          [
            ["", "Table"],
            ["chart", "Quality against cost"],
          ],
          params.get("view") || "",
          (value) => change({ view: value }),
        ),
        measureField(measure),
        opener,
      ),
      rest,
    );
  }

  function measureField(measure) {
    const [family, cutoff] = board.measure.parse(measure);
    const apply = (name, at) => {
      const wanted = at ? `${name}@${at}` : name;
      if (board.measure.parse(wanted)) restart({ measure: wanted === view.site.measure ? "" : wanted });
      else board.toast(`${name} needs a cutoff`);
    };
    const near = () => board.rows.goldFiles(view.site, view.set);
    return h(
      "div",
      { class: "row measure", onpointerenter: near, onfocusin: near },
      board.select(
        "Measure",
        board.measure.FAMILIES.map((name) => [name, name]),
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

  /* --- the table --------------------------------------------------------------------------------------------------- */

  const order = () => ({ by: view.params.get("sort") || view.columns[0].id, upwards: view.params.get("up") === "1" });

  function draw() {
    const { by, upwards } = order();
    view.rows = board.rows.sorted(board.rows.passing(view.all, view.params), view.columns, by, upwards);
    view.selected = -1;
    const filtered = ["q", ...board.rows.FILTERS.map(([name]) => name)].filter((name) => view.params.get(name));
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
        board.exports.buttons(() => ({
          measure: view.measure,
          columns: view.columns,
          rows: view.rows,
          latex: view.site.latex,
        })),
      ),
      view.params.get("view") === "chart" ? chart() : table(),
      notes(),
    );
    board.supplant(view.body, results)();
    view.body = results;
  }

  function notes() {
    const headline = view.measure === view.site.measure;
    return h(
      "p",
      { class: "note" },
      headline
        ? "Systems of one class cannot be told from the leader of their class by a paired test (sign flips, max-T over the leader's pairs, 5 %). A system may be in a better class than one that ranks above it: its queries vary more. Classes are computed once over all systems run here with all of these datasets, so no filter changes them; with fewer than 20 queries there are none. Published rows have no scores of single queries: they are placed by value."
        : `${view.measure} is computed here from the ranks of the gold documents. Published rows are known for ${view.site.measure} only, and classes are told for it.`,
    );
  }

  function table() {
    if (!view.rows.length) return h("p", { class: "empty" }, "No system fits these filters.");
    const { by, upwards } = order();
    const tracks = view.columns.map((_, i) => {
      const cells = view.all.map((row) => row.cells[i]).filter((cell) => cell.value !== null);
      return { span: board.chart.span(cells), best: Math.max(...cells.map((cell) => cell.value)) };
    });
    const groups = [];
    for (const column of view.columns) {
      if (groups.at(-1)?.name === column.group) groups.at(-1).size += 1;
      else groups.push({ name: column.group, size: 1 });
    }
    const starts = new Set();
    groups.reduce((at, group) => {
      starts.add(at);
      return at + group.size;
    }, 0);
    const head = (id, label, title, classes) =>
      h(
        "th",
        { scope: "col", class: classes, "aria-sort": by === id ? (upwards ? "ascending" : "descending") : null },
        h(
          "button",
          { type: "button", title, onclick: () => sortBy(id) },
          visible(label),
          by === id ? (upwards ? " ↑" : " ↓") : "",
        ),
      );
    const sorted = view.columns.findIndex((column) => column.id === by);
    const made = (row, position) => {
      if (!view.lines.has(row)) view.lines.set(row, line(row, tracks, starts)); // made once, moved ever after
      return placed(view.lines.get(row), position, sorted);
    };
    const table = h(
      "table",
      { class: "leaderboard" },
      h(
        "colgroup",
        null,
        h("col", { class: "rank" }),
        h("col"),
        view.columns.map((column) => h("col", { class: column.main ? "main" : "extra" })),
      ),
      h(
        "thead",
        null,
        h(
          "tr",
          { class: "groups" },
          h("td", { colspan: 2 }),
          groups.map((group, i) =>
            h("th", { scope: "colgroup", colspan: group.size, class: i ? "starts" : "" }, visible(group.name)),
          ),
        ),
        h(
          "tr",
          null,
          h("th", { scope: "col", class: "rank" }, "Rank"),
          head("name", "System", "Sort by name", "system"),
          view.columns.map((column, i) =>
            head(
              column.id,
              column.label,
              `Sort by ${column.title}`,
              `${cellClass(column, i, starts)}${i === sorted ? " sorted" : ""}`,
            ),
          ),
        ),
      ),
    );
    return board.region("Systems and their scores", board.fillTable(table, view.rows, made), "long");
  }

  const cellClass = (column, i, starts) =>
    ["num", starts.has(i) && i ? "starts" : "", column.main ? "main" : "extra"].join(" ");

  function sortBy(id) {
    const { by, upwards } = order();
    change({ sort: id, up: (by === id ? !upwards : id === "name") ? "1" : "" });
    /** @type {HTMLElement} */ (view.body.querySelector("[aria-sort] button"))?.focus();
  }

  function placed(line, position, sorted) {
    line.dataset.position = position;
    line.removeAttribute("aria-selected");
    line.querySelector(".toggle").setAttribute("aria-expanded", "false");
    line.querySelector(".sorted")?.classList.remove("sorted");
    line.children[sorted + 2]?.classList.add("sorted");
    return line;
  }

  function line(row, tracks, starts) {
    const cells = view.columns.map((column, i) => {
      const cell = row.cells[i];
      if (cell.value === null) return h("td", { class: `${cellClass(column, i, starts)} muted` }, "–");
      const range =
        cell.low === null ? null : `${column.title}: 95 % interval ${points(cell.low)} to ${points(cell.high)}`;
      const made = h(
        "td",
        { class: `${cellClass(column, i, starts)}${cell.value === tracks[i].best ? " best" : ""}`, title: range },
        points(cell.value),
      );
      if (column.main) made.append(board.chart.interval(cell, tracks[i].span));
      return column.main ? made : board.chart.bar(made, cell.value, tracks[i].best);
    });
    const toggle = h(
      "button",
      {
        type: "button",
        class: "plain toggle",
        "aria-expanded": "false",
        "aria-label": `Details of ${visible(row.name)}`,
        onclick: () => details(Number(made.dataset.position)),
      },
      "▸",
    );
    const made = h(
      "tr",
      { class: row.ours ? "ours" : "published" },
      h(
        "td",
        { class: "rank" },
        h("span", { class: "rank-number" }, row.rank ?? "–"),
        h("small", { class: "muted" }, row.level ? `class ${row.level}` : row.ours ? "" : "by value"),
      ),
      h(
        "th",
        { scope: "row", class: "system" },
        h("div", { class: "system-name" }, toggle, nameOf(row)),
        h("small", { class: "muted" }, about(row)),
      ),
      cells,
    );
    return made;
  }

  const nameOf = (row) =>
    row.ours
      ? h("a", { href: board.link("system", { name: row.name, set: view.set.name }) }, named(row.name))
      : named(row.name);

  const about = (row) => [
    row.ours ? h("span", { class: "chip solid" }, row.entry ? `entry ${visible(row.entry)}` : row.from) : null,
    row.ours ? " " : "",
    row.kind,
    row.ours ? "" : ` · ${visible(row.reported_by)}`,
    row.failures ? [" · ", h("span", { class: "chip bad" }, counted(row.failures, "failure"))] : "",
    row.approximate?.length
      ? [" · ", h("span", { class: "chip", title: row.approximate.map(visible).join(" · ") }, "≈ approximate search")]
      : "",
    row.judged_by_kin?.length
      ? [
          " · ",
          h(
            "span",
            {
              class: "chip bad",
              title: `An LLM of the same family judged the documents of ${row.judged_by_kin.map(visible).join(", ")}`,
            },
            "judge’s own family",
          ),
        ]
      : "",
  ];

  /* --- details ----------------------------------------------------------------------------------------------------- */

  async function details(position) {
    const line = view.body.querySelector(`tr[data-position="${position}"]`);
    const toggle = line.querySelector(".toggle");
    const open = () => toggle.getAttribute("aria-expanded") === "true";
    toggle.setAttribute("aria-expanded", String(!open()));
    if (line.nextElementSibling?.classList.contains("details")) line.nextElementSibling.remove();
    if (!open()) return;
    const row = view.rows[position];
    const facts = row.ours ? await oursFacts(row) : publishedFacts(row);
    if (!open()) return; // closed or sorted anew meanwhile
    line.after(
      h(
        "tr",
        { class: "details" },
        h("td", { colspan: view.columns.length + 2 }, h("div", { class: "details-inner" }, scores(row), facts)),
      ),
    );
  }

  const scores = (row) =>
    h(
      "div",
      null,
      h("h3", null, "Scores"),
      h(
        "dl",
        { class: "facts" },
        view.columns.map((column, i) => [
          h("dt", null, visible(column.title)),
          h(
            "dd",
            null,
            points(row.cells[i].value),
            row.cells[i].low === null
              ? ""
              : h("span", { class: "muted" }, ` ${points(row.cells[i].low)} to ${points(row.cells[i].high)}`),
          ),
        ]),
      ),
    );

  async function oursFacts(row) {
    const system = await board.load(`system/${row.number}`);
    const facts = [
      ["Kind", row.kind],
      ["LLM", row.llm || "none"],
      ["Failures", board.failures(system)],
      ...system.settings.map(([name, value]) => [name, value]),
    ];
    return [
      h("div", null, h("h3", null, "Settings"), list(facts)),
      h(
        "div",
        { class: "details-wide" },
        h("h3", null, "Run it again"),
        board.command(system.command),
        h(
          "p",
          { class: "row" },
          h("a", { href: board.link("system", { name: row.name, set: view.set.name }) }, "System page"),
          h("a", { href: board.link("explorer", { a: row.name }) }, "Its queries in the explorer"),
        ),
      ),
    ];
  }

  function publishedFacts(row) {
    const facts = [
      ["Reported by", row.reported_by],
      ["Source", row.source],
      ["Note", row.note],
      ["Maximum length", row.max_length && `${count(row.max_length)} tokens`],
      ["Differs from ours", row.differs],
      ["Retriever", row.retriever],
      ["Expansion", row.expansion],
      ["LLM", row.llm],
      ["Reranker", row.reranker],
    ].filter(([, value]) => value);
    return [
      h("div", null, h("h3", null, "As published"), list(facts)),
      row.command
        ? h("div", { class: "details-wide" }, h("h3", null, "Run it here"), board.command(row.command))
        : null,
    ];
  }

  const list = (facts) =>
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => [h("dt", null, visible(name)), h("dd", null, named(value))]),
    );

  /* --- quality against cost ---------------------------------------------------------------------------------------- */

  /* Return the axis to begin with: seconds if they are known for half of the rows, else what is known for most. */
  function fullest(rows) {
    const placed = (axis) => rows.filter((row) => X_AXES.get(axis)[1](row) !== null).length;
    return 2 * placed("seconds") >= rows.length
      ? "seconds"
      : [...X_AXES.keys()].reduce((best, axis) => (placed(axis) > placed(best) ? axis : best));
  }

  function chart() {
    const chosen = Math.max(
      0,
      view.columns.findIndex((column) => column.id === order().by),
    );
    const axis = X_AXES.has(view.params.get("x"))
      ? view.params.get("x")
      : fullest(view.rows.filter((row) => row.cells[chosen].value !== null));
    const [xLabel, x, tick] = X_AXES.get(axis);
    const column = view.columns[chosen];
    const items = view.rows
      .filter((row) => row.cells[chosen].value !== null && x(row) !== null)
      .map((row) => {
        const cell = row.cells[chosen];
        return {
          x: x(row),
          y: 100 * cell.value,
          low: cell.low === null ? null : 100 * cell.low,
          high: cell.high === null ? null : 100 * cell.high,
          name: visible(row.name),
          kind: row.kind,
          solid: row.ours,
          costed: !row.ours || row.cost.seconds !== null,
          href: row.ours ? board.link("system", { name: row.name, set: view.set.name }) : null,
          text: `${visible(row.name)}: ${points(cell.value)}, ${tick(x(row))}`,
        };
      });
    const switcher = board.segmented(
      "Against",
      [...X_AXES].map(([id, [label]]) => [id, label]),
      axis,
      (value) => change({ x: value }),
    );
    const unplaced = view.rows.length - items.length;
    const kinds = [...board.chart.KINDS.keys()].filter((kind) => items.some((item) => item.kind === kind));
    const width = Math.max(340, Math.min(1240, view.body.clientWidth || 1240));
    return h(
      "section",
      { class: "section scatter" },
      h("div", { class: "row spread" }, h("h2", null, `${column.title} against ${xLabel}`), switcher),
      items.length
        ? [
            board.chart.legend(kinds),
            board.chart.scatter(items, { width, xLabel, yLabel: `${view.measure} × 100`, tick }),
            pointList(items),
          ]
        : h("p", { class: "empty" }, "It is known for none of these systems."),
      unplaced
        ? h(
            "p",
            { class: "muted" },
            `${unplaced} of these systems are not drawn: ${axis === "size" ? "the size of a model of theirs is not known" : "published rows do not state it, and recorded texts do not say what writing them took"}.`,
          )
        : null,
      h(
        "p",
        { class: "muted" },
        "The line joins the systems that no other beats at their cost. Systems that search with recorded texts are not on it: what these took is unknown.",
      ),
    );
  }

  /* All points by name, the best first: the chart itself names those that it has room for, and the one that is pointed at. */
  const pointList = (items) =>
    h(
      "details",
      { class: "points" },
      h("summary", null, `The ${items.length} systems of this chart`),
      h(
        "ol",
        null,
        [...items]
          .sort((a, b) => b.y - a.y)
          .map((item) => h("li", null, item.href ? h("a", { href: item.href }, item.text) : item.text)),
      ),
    );

  /* --- keys -------------------------------------------------------------------------------------------------------- */

  const select = (by) => {
    view.selected = board.step(view.body, view.selected, by);
  };
  const chosen = () => view.rows[view.selected];

  function open() {
    if (document.activeElement?.closest("a, button")) return false;
    if (chosen()?.ours) board.go("system", { name: chosen().name, set: view.set.name });
    else if (chosen()) details(view.selected);
    return undefined;
  }

  function compare() {
    if (!chosen()?.ours) {
      board.toast("Choose a system that was run here, with j and k");
      return;
    }
    if (view.marked && view.marked !== chosen().name) board.go("explorer", { a: view.marked, b: chosen().name });
    else {
      view.marked = chosen().name;
      board.toast(`${visible(view.marked)} against …: choose another, press c`);
    }
  }

  function neighbour(step) {
    const ids = view.columns.map((column) => column.id);
    const now = ids.indexOf(order().by);
    change({ sort: ids[(now + step + ids.length) % ids.length], up: "" });
  }

  board.page("leaderboard", {
    title: "Leaderboard",
    label: "Leaderboard",
    keys: [
      ["j", "next system", () => select(1)],
      ["k", "previous system", () => select(-1)],
      ["Enter", "open the system", open],
      [
        "o",
        "its details",
        () => {
          if (chosen()) details(view.selected);
        },
      ],
      ["[", "sort by the column to the left", () => neighbour(-1)],
      ["]", "sort by the column to the right", () => neighbour(1)],
      ["c", "compare this system with another", compare],
    ],
    show,
  });
})();

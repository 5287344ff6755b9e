/* The explorer: a dataset's queries, and what every system did with one of them. All that is chosen is in the address. */
"use strict";

(() => {
  const { h, named, ledger, ranking } = board;
  const { points, counted } = formats;
  const AT_ONCE = 10; // queries of the list that are drawn first
  const ABOVE = 2; // of them above the one that is open
  const FOUND = 10; // "finds it": a relevant document among the first ten
  const MEASURES = ["nDCG@10", "R@10", "R@100", "MRR", "MAP"];
  const ORDERS = [
    ["", "in their order"],
    ["hard", "hardest first"],
    ["gain", "B gains most over A"],
    ["loss", "B loses most to A"],
    ["apart", "scores differ most"],
    ["tau", "rankings differ most (τ_AP)"],
    ["only-a", "only A finds it"],
    ["only-b", "only B finds it"],
    ["neither", "neither finds it"],
  ];
  const NEEDS_PAIR = new Set(["gain", "loss", "apart", "tau", "only-a", "only-b", "neither"]);

  const WIDE = window.matchMedia("(min-width: 60rem)"); // below, the list of queries is folded

  /** @type {ExplorerView} */
  let view = null; // what is in view: dataset, its files, the choices, the list

  /* --- what is chosen --------------------------------------------------------------------------------------------- */

  const KEYS = ["data", "q", "a", "b", "order", "find", "measure"];

  function remember(push) {
    const params = Object.fromEntries(KEYS.map((key) => [key, view.chosen[key]]));
    if (params.measure === view.site.measure) params.measure = "";
    const link = board.link("explorer", params);
    if (link !== location.hash) history[push ? "pushState" : "replaceState"](null, "", link);
  }

  /* Some orders need two systems: take the best but A, or no such order where there is only one. */
  function pairUp() {
    const { chosen } = view;
    if (NEEDS_PAIR.has(chosen.order) && !chosen.b) chosen.b = view.names[rival()] ?? "";
    if (NEEDS_PAIR.has(chosen.order) && !chosen.b) chosen.order = "";
  }

  /* A and B are never the same system: the other side takes what this one had. */
  function keepApart(before, changed) {
    const { chosen } = view;
    if (!chosen.b || chosen.a !== chosen.b) return;
    if (changed === "a") chosen.b = before.a;
    else if (before.b) chosen.a = before.b;
    else chosen.b = "";
  }

  function choose(changes, push = false) {
    const before = { ...view.chosen };
    Object.assign(view.chosen, changes);
    keepApart(before, "a" in changes ? "a" : "b");
    pairUp();
    remember(push);
    return draw();
  }

  const number = (name) => view.index.systems.find((system) => view.site.systems[system].name === name);

  /* Return what `make` returns, kept under a key while the dataset is in view. */
  function kept(key, make) {
    if (!view.kept.has(key)) view.kept.set(key, make());
    return view.kept.get(key);
  }

  /* The systems by their mean, best first. */
  const standing = () =>
    kept(`standing ${view.chosen.measure}`, () => {
      const means = new Map(view.index.systems.map((system) => [system, mean(system)]));
      return [...view.index.systems].sort((x, y) => means.get(y) - means.get(x));
    });

  /* Whom to compare with: the best system but A. */
  const rival = () => standing().find((system) => view.site.systems[system].name !== view.chosen.a);

  /* The values of a system's judged queries, by the measure that is chosen. */
  const values = (system) => {
    const all = kept(view.chosen.measure, () => []);
    all[system] ??= board.measure.queries(view.chosen.measure, view.gold, system);
    return all[system];
  };

  const mean = (system) => {
    const all = values(system);
    return all?.length ? all.reduce((sum, value) => sum + value, 0) / all.length : -1;
  };

  /* The value of a query for a system; null where it is not judged. */
  const valueOf = (system, query) =>
    view.judged.has(query) ? (values(system)?.[view.judged.get(query)] ?? null) : null;

  const ranksOf = (system, query) =>
    view.judged.has(query) ? (view.gold.ranks[system]?.[view.judged.get(query)] ?? []) : [];

  const finds = (system, query) => ranksOf(system, query).some((rank) => rank && rank <= FOUND);

  /* --- the list --------------------------------------------------------------------------------------------------- */

  /* Return the positions of the queries that the search and the order leave, in that order. */
  function listed() {
    const { order, find } = view.chosen;
    const [a, b] = sides();
    const needle = find.trim().toLowerCase();
    const has = (i) => !needle || view.index.queries[i].some((text) => text.toLowerCase().includes(needle));
    const all = view.index.queries.map((_, i) => i).filter(has);
    const judged = all.filter((i) => view.judged.has(i));
    const by = (key) =>
      judged
        .map((i) => [key(i), i])
        .sort((x, y) => x[0] - y[0] || x[1] - y[1])
        .map(([, i]) => i);
    const difference = (i) => valueOf(b, i) - valueOf(a, i);
    switch (order) {
      case "hard":
        return by((i) => view.index.systems.reduce((sum, system) => sum + valueOf(system, i), 0));
      case "gain":
        return by((i) => -difference(i));
      case "loss":
        return by(difference);
      case "apart":
        return by((i) => -Math.abs(difference(i)));
      case "tau":
        return all
          .map((i) => [tau(i), i])
          .sort((x, y) => x[0] - y[0] || x[1] - y[1])
          .map(([, i]) => i);
      case "only-a":
        return judged.filter((i) => finds(a, i) && !finds(b, i));
      case "only-b":
        return judged.filter((i) => finds(b, i) && !finds(a, i));
      case "neither":
        return judged.filter((i) => !finds(a, i) && !finds(b, i));
      default:
        return all;
    }
  }

  const tau = (i) => ranking.tauAP(view.files[0].rankings[i], view.files[1].rankings[i]);

  const sides = () => [number(view.chosen.a), view.chosen.b ? number(view.chosen.b) : undefined];

  /* A line of all systems' values for a query, 0 to 1, with A and B told apart. */
  function line(query) {
    if (!view.judged.has(query)) return h("small", { class: "muted" }, "not judged");
    const percent = (value) => 3 + 94 * value;
    const at = (value) => `${percent(value)}%`;
    const [a, b] = sides().map((system) => (system === undefined ? null : valueOf(system, query)));
    const s = board.svg;
    return s(
      "svg",
      {
        class: "values",
        height: 12,
        role: "img",
        "aria-label": `A ${points(a)}${b === null ? "" : `, B ${points(b)}`}`,
      },
      s("line", { class: "rail", x1: at(0), x2: at(1), y1: 6, y2: 6 }),
      ledger.ticks(
        view.index.systems.map((system) => percent(valueOf(system, query))),
        12,
        3,
      ),
      a === null ? null : s("circle", { class: "side-a", cx: at(a), cy: 6, r: 3.5 }),
      b === null
        ? null
        : s(
            "svg",
            { x: at(b), y: 6, overflow: "visible" },
            s("rect", { class: "side-b", x: -3, y: -3, width: 6, height: 6 }),
          ),
    );
  }

  /* Whether a stage of A or B failed for a query. */
  const failed = (position) => view.files.some(({ failures }) => failures.some(([at]) => at === position));

  function entry(position) {
    const [id, text] = view.index.queries[position];
    const link = h(
      "a",
      {
        class: "entry",
        href: board.link("explorer", { ...view.chosen, q: id }),
        "aria-current": id === view.chosen.q ? "true" : null,
      },
      h("span", { class: "entry-text" }, h("bdi", null, marks.readable(text.slice(0, 160)))),
      line(position),
      failed(position) ? h("span", { class: "chip bad" }, "failed") : null,
    );
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (!WIDE.matches) view.queries.open = false;
      choose({ q: id }, true);
    });
    return h("li", null, link);
  }

  function drawList() {
    const { shown } = view;
    view.listDrawn = view.listed;
    const many = `${shown.length} of ${view.index.queries.length} queries`;
    view.count.textContent = shown.length === view.index.queries.length ? `${shown.length} queries` : many;
    const current = shown.findIndex((position) => view.index.queries[position][0] === view.chosen.q);
    board.fillInTurn(view.list, shown.length, (i) => entry(shown[i]), AT_ONCE, Math.max(0, current - ABOVE));
    markCurrent();
  }

  /* Mark the query that is open, and have it in view. */
  function markCurrent() {
    view.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const at = view.shown.findIndex((position) => view.index.queries[position][0] === view.chosen.q);
    const current = /** @type {HTMLElement} */ (view.list.children[at]?.firstChild);
    current?.setAttribute("aria-current", "true");
    if (current && view.list.clientHeight) {
      const top = current.offsetTop - view.list.offsetTop;
      if (top < view.list.scrollTop || top + current.offsetHeight > view.list.scrollTop + view.list.clientHeight)
        view.list.scrollTop = top - 80;
    }
  }

  /* --- one query -------------------------------------------------------------------------------------------------- */

  /* Who A and B are, with the marks that they have in all drawings. */
  const who = () =>
    h(
      "p",
      { class: "who" },
      ["a", "b"]
        .filter((side) => view.chosen[side])
        .map((side) => h("span", null, key(side, `${side.toUpperCase()} `), named(view.chosen[side]))),
    );

  function heading(position) {
    const [, text, answer, body] = view.index.queries[position];
    const question = h("p", { class: "question text" }, marks.readable(text));
    const long = text.length > 900;
    if (long) question.classList.add("folded");
    const unfold =
      long &&
      h(
        "button",
        {
          type: "button",
          class: "plain more",
          "aria-expanded": "false",
          onclick: (event) => {
            const open = !question.classList.toggle("folded");
            event.target.setAttribute("aria-expanded", String(open));
            event.target.textContent = open ? "Less" : "The whole query";
          },
        },
        "The whole query",
      );
    const at = view.shown.indexOf(position);
    const turn = (by, label, sign) =>
      h(
        "button",
        {
          type: "button",
          class: "plain turn-query",
          "data-focus": label,
          "aria-label": label,
          disabled: view.shown[at + by] === undefined,
          onclick: () => step(by),
        },
        sign,
      );
    return h(
      "header",
      { class: "query-head" },
      h(
        "div",
        { class: "row spread query-bar" },
        h(
          "p",
          { class: "eyebrow" },
          named(view.dataset.name),
          " · query ",
          named(view.index.queries[position][0]),
          body ? [" · ", h("bdi", null, marks.readable(body))] : null,
        ),
        h(
          "div",
          { class: "query-steps" },
          turn(-1, "Previous query", "‹"),
          h("span", { class: "muted" }, at < 0 ? "" : `${at + 1} of ${view.shown.length}`),
          turn(1, "Next query", "›"),
        ),
      ),
      who(),
      question,
      unfold,
      answer
        ? h(
            "details",
            { class: "answer" },
            h("summary", null, "Gold answer"),
            h("p", null, h("bdi", null, marks.readable(answer))),
          )
        : null,
    );
  }

  function drawLedger(position) {
    const [a, b] = sides();
    const gold = view.query.documents.slice(0, view.query.gold);
    if (!gold.length) return h("p", { class: "note" }, "No document is judged relevant to this query.");
    const of = (system, i) => (system === undefined ? null : (ranksOf(system, position)[i] ?? 0));
    const rows = gold.map((document, i) => {
      const ranks = view.index.systems.map((system) => [view.site.systems[system].name, of(system, i)]);
      const wanted = wantedBy(b ?? a);
      const open = () => [
        ledger.standings(ranks),
        ...(document[1] === null
          ? [h("p", { class: "muted" }, "This document is not in the corpus.")]
          : ranking.text(document[1], document[2], document[3], wanted)),
      ];
      return { name: document[0], ranks, a: of(a, i), b: of(b, i), open };
    });
    const nobody = rows.filter((row) => row.ranks.every(([, rank]) => !rank)).length;
    return h(
      "section",
      { class: "section" },
      h(
        "div",
        { class: "row spread" },
        h("h2", null, "Where the relevant documents are"),
        h(
          "p",
          { class: "legend" },
          key("a", "A"),
          b === undefined ? null : key("b", "B"),
          h("span", { class: "key-tick" }),
          `each of ${counted(view.index.systems.length, "system")}`,
        ),
      ),
      nobody
        ? h(
            "p",
            { class: "note" },
            `${nobody} of ${counted(gold.length, "relevant document")} ${nobody === 1 ? "is" : "are"} found by nobody.`,
          )
        : null,
      ledger.ledger(rows),
    );
  }

  const key = (side, text) => h("span", { class: `key key-${side}` }, text);

  /* What is marked in texts for a system: the query's words, and those of the text that was generated for it. */
  function wantedBy(system) {
    const own = view.query.generated.find(([, , systems]) => systems.includes(system));
    return marks.words(view.query, view.index, own ? own[1] : []);
  }

  function generated(system, letter, position, file) {
    const own = view.query.generated.find(([, , systems]) => systems.includes(system));
    const wanted = wantedBy(-1);
    const folded = (title) => h("details", { class: "generated" }, h("summary", null, title));
    const text = own && folded(`What ${letter} searched with`);
    if (text)
      board.afterFrame(() =>
        text.append(
          ...own[0].map((each) =>
            h("p", { class: "text" }, marks.draw(each, marks.matches(each, wanted), [0, each.length])),
          ),
        ),
      );
    const trace = file.traces.includes(position) && folded(`What ${letter} did, turn by turn`);
    if (trace)
      trace.addEventListener(
        "toggle",
        async () => trace.append(...turns(await board.load(`explorer/${view.number}/t${system}-${position}`))),
        { once: true },
      );
    return [text, trace];
  }

  /* An agent's trace: every turn with what it wrote, asked, was shown and made of it. */
  function turns(trace) {
    const part = (label, text) =>
      text ? [h("dt", null, label), h("dd", { class: "text" }, marks.readable(text))] : [];
    return [
      h("dl", { class: "facts turn" }, part("Prompt", trace.prompt)),
      ...trace.turns.map((turn, i) =>
        h(
          "dl",
          { class: "facts turn" },
          part(`Turn ${i + 1}`, turn.text),
          part("Search", turn.query),
          part("Told", turn.notice),
          turn.documents
            ? [
                h("dt", null, "Retrieved"),
                h(
                  "dd",
                  null,
                  turn.documents.map(({ id }) => [named(id), " "]),
                ),
              ]
            : [],
          part("Shown", turn.information),
          part("Made of it", turn.analysis),
        ),
      ),
    ];
  }

  function sidePicker(letter) {
    const options = standing().map((each) => [
      view.site.systems[each].name,
      `${view.site.systems[each].name}  ·  ${points(mean(each), 1)}`,
    ]);
    const picker = board.select(letter, options, "", (name) => choose({ [letter.toLowerCase()]: name }));
    picker.classList.add("side-picker", `picker-${letter.toLowerCase()}`);
    picker.querySelector("select").dataset.focus = letter;
    return picker;
  }

  /* The head of a side: which system, its figures for this query, what failed. */
  function sideHead(letter, system, position, file) {
    const value = valueOf(system, position);
    const failure = file.failures.find(([query]) => query === position);
    const copied = file.copies.find(([query]) => query === position);
    const grades = view.gold.grades[view.judged.get(position)];
    const picker = kept(`picker ${letter} ${view.chosen.measure}`, () => sidePicker(letter));
    picker.querySelector("select").value = view.site.systems[system].name;
    return h(
      "div",
      { class: "side-head" },
      picker,
      h(
        "p",
        { class: "side-figures" },
        value === null ? "not judged" : [h("b", null, points(value)), ` ${view.chosen.measure}`],
        copied && value !== null
          ? h(
              "span",
              {
                class: "muted",
                title: "Documents that have the text of a relevant one under another id, counted as that one",
              },
              ` · ${points(board.measure.query(view.chosen.measure, copied[1], grades))} with copies counted`,
            )
          : null,
      ),
      failure
        ? h(
            "p",
            { class: "failure" },
            h("span", { class: "chip bad" }, "failed"),
            " ",
            h("bdi", null, marks.readable(failure[1])),
          )
        : null,
      generated(system, letter, position, file),
    );
  }

  /* On a phone one side is in view at a time. */
  const sideSwitch = () => {
    const group = board.segmented(
      "Side",
      [
        ["a", "A"],
        ["b", "B"],
      ],
      view.side,
      (side) => {
        view.side = side;
        /** @type {HTMLElement} */ (view.body.querySelector(".pair")).dataset.side = side;
      },
    );
    group.classList.add("side-switch");
    return group;
  };

  function drawRankings(position) {
    const [a, b] = sides();
    const both = [/** @type {["A" | "B", number]} */ (["A", a]), /** @type {["A" | "B", number]} */ (["B", b])].filter(
      ([, system]) => system !== undefined,
    );
    const made = both.map(([letter, system], i) => {
      const file = view.files[i];
      return {
        letter,
        system,
        file,
        documents: view.query.documents,
        ranking: file.rankings[position],
        scores: file.scores[position],
        wanted: wantedBy(system),
      };
    });
    const rankIn = (other) => (document) =>
      document < view.query.gold
        ? (ranksOf(other.system, position)[document] ?? 0)
        : other.ranking.indexOf(document) + 1;
    const column = (side, other) =>
      h(
        "section",
        { class: "side", "aria-label": `Ranking of ${side.letter}` },
        sideHead(side.letter, side.system, position, side.file),
        side.ranking.length
          ? ranking.list(side, other && rankIn(other))
          : h("p", { class: "empty" }, "Nothing was retrieved."),
      );
    const marked = view.query.generated.some(([, , systems]) => both.some(([, system]) => systems.includes(system)));
    const head = h(
      "div",
      { class: "row spread" },
      h("h2", null, b === undefined ? "Ranking" : "Two rankings"),
      h(
        "button",
        { type: "button", "data-focus": "compare", onclick: compare },
        b === undefined ? "Compare with another" : "Close the comparison",
      ),
    );
    if (b === undefined) return h("section", { class: "section" }, head, marks.legend(marked), column(made[0]));
    const gold = view.query.documents
      .slice(0, view.query.gold)
      .map(([id], i) => [id, ranksOf(a, position)[i] ?? 0, ranksOf(b, position)[i] ?? 0]);
    const between = h("div", { class: "between" });
    const { gold: relevant } = view.query;
    board.afterFrame(() =>
      between.append(ledger.slope(made[0].ranking, made[1].ranking, (document) => document < relevant)),
    );
    return h(
      "section",
      { class: "section" },
      head,
      ranking.summary(made[0].ranking, made[1].ranking, gold, view.chosen.measure, [
        valueOf(a, position),
        valueOf(b, position),
      ]),
      marks.legend(marked),
      sideSwitch(),
      h("div", { class: "pair", "data-side": view.side }, column(made[0], made[1]), between, column(made[1], made[0])),
    );
  }

  /* --- drawing ---------------------------------------------------------------------------------------------------- */

  async function draw() {
    const turn = (view.turn = {});
    const { chosen } = view;
    const own = view;
    const [a, b] = sides();
    const systems = [a, b].filter((system) => system !== undefined);
    own.files = await Promise.all(systems.map((system) => board.load(`explorer/${own.number}/s${system}`)));
    if (own !== view || own.turn !== turn) return; // something else was chosen meanwhile
    const { q, ...rest } = chosen;
    const list = JSON.stringify(rest);
    const shown = own.listed === list ? own.shown : listed();
    const reordered = String(shown) !== String(own.shown);
    own.listed = list;
    own.shown = shown;
    let position = own.index.queries.findIndex(([id]) => id === q);
    if (!own.shown.includes(position)) position = own.shown[0] ?? -1;
    if (position >= 0) chosen.q = own.index.queries[position][0]; // else what was open opens again when the search is over
    remember(false);
    own.order.value = chosen.order;
    const query = position < 0 ? null : await board.load(`explorer/${own.number}/q${position}`);
    if (own !== view || own.turn !== turn) return;
    own.query = query;
    if (own.listDrawn === list) markCurrent();
    else if (reordered) drawList();
    else
      board.afterFrame(() => {
        if (own === view && own.turn === turn) drawList();
      }); // the same queries, with other values
    if (position < 0) {
      own.drawn = "";
      own.body.replaceChildren(
        h("p", { class: "empty" }, "No query is left. Choose another order, or search for other words."),
      );
      return;
    }
    const drawn = [position, a, b, chosen.measure, own.shown.length, own.shown.indexOf(position)].join(" ");
    if (own.drawn === drawn) return;
    own.drawn = drawn;
    if (own.position !== undefined && own.position !== position) window.scrollTo(0, 0);
    own.position = position;
    const focus = /** @type {HTMLElement} */ (document.activeElement)?.dataset?.focus;
    own.body.replaceChildren(heading(position), drawLedger(position), drawRankings(position));
    if (focus) /** @type {HTMLElement} */ (own.body.querySelector(`[data-focus="${focus}"]`))?.focus();
    const next = own.shown[own.shown.indexOf(position) + 1];
    if (next !== undefined) board.load(`explorer/${own.number}/q${next}`).catch(() => {}); // so that j finds it there
  }

  function frame(main) {
    const { chosen, site } = view;
    const measures = MEASURES.includes(chosen.measure) ? MEASURES : [chosen.measure, ...MEASURES];
    const names = view.available.map((each) => site.datasets[each].name);
    const elsewhere = (data) => board.go("explorer", { ...chosen, data, q: "", find: "" });
    const order = board.select("Queries", ORDERS, chosen.order, (value) => choose({ order: value, q: "" }, true));
    const search = h("input", {
      type: "search",
      placeholder: "Search queries and answers",
      "aria-label": "Search queries",
      value: chosen.find,
      oninput: () => choose({ find: search.value }),
    });
    view.order = order.querySelector("select");
    view.list = h("ol", { class: "entries" });
    view.count = h("p", { class: "muted entries-count", role: "status" });
    view.body = h("div", { class: "query-view" });
    view.queries = h(
      "details",
      { class: "queries", open: WIDE.matches },
      h("summary", null, "Queries"),
      h(
        "div",
        { class: "explorer-controls" },
        board.select(
          "Dataset",
          names.map((name) => [name, name]),
          chosen.data,
          elsewhere,
        ),
        order,
        board.select(
          "Measure",
          measures.map((each) => [each, each]),
          chosen.measure,
          (measure) => choose({ measure }),
        ),
      ),
      search,
      view.count,
      view.list,
    );
    main.append(
      h("h1", { class: "visually-hidden" }, "Explorer"),
      h("div", { class: "explorer" }, h("nav", { "aria-label": "Queries" }, view.queries), view.body),
    );
  }

  /** @type {Page["show"]} */
  async function show(main, params, site) {
    const { datasets } = await board.load("explorer/index");
    if (!datasets.length) {
      view = null;
      main.append(
        h("h1", null, "Explorer"),
        h(
          "p",
          { class: "empty" },
          "This board holds no texts. It was made with --without-texts, or its runs and datasets were not on the machine that made it.",
        ),
      );
      return;
    }
    const available = datasets.map(([each]) => each);
    const asked = ["a", "b"]
      .map((side) => site.systems.findIndex(({ name }) => name === params.get(side)))
      .filter((system) => system >= 0);
    const wanted =
      available.find((each) => site.datasets[each].name === params.get("data")) ??
      datasets.find(([, systems]) => asked.every((system) => systems.includes(system)))?.[0] ??
      available[0];
    const [index, gold] = await Promise.all([board.load(`explorer/${wanted}/index`), board.load(`gold/${wanted}`)]);
    const chosen = /** @type {any} */ (Object.fromEntries(KEYS.map((name) => [name, params.get(name) || ""])));
    const place = new Map(gold.queries.map((id, i) => [id, i]));
    /** @type {Map<number, number>} */
    const judged = new Map();
    index.queries.forEach(([id], i) => place.has(id) && judged.set(i, place.get(id)));
    view = {
      site,
      available,
      number: wanted,
      dataset: site.datasets[wanted],
      index,
      gold,
      judged,
      chosen,
      kept: new Map(),
      side: "a",
      names: site.systems.map(({ name }) => name),
    };
    chosen.data = view.dataset.name;
    if (!ORDERS.some(([name]) => name === chosen.order)) chosen.order = "";
    if (!board.measure.parse(chosen.measure)) chosen.measure = site.measure;
    if (number(chosen.a) === undefined) chosen.a = view.names[standing()[0]];
    if (number(chosen.b) === undefined || chosen.b === chosen.a) chosen.b = "";
    pairUp();
    frame(main);
    await draw();
  }

  /* --- keys ------------------------------------------------------------------------------------------------------- */

  function step(by) {
    if (!view?.shown) return;
    const at = view.shown.findIndex((position) => view.index.queries[position][0] === view.chosen.q);
    const next = view.shown[at + by];
    if (next !== undefined) choose({ q: view.index.queries[next][0] }, true);
  }

  function turnSystem(side, by) {
    if (!view?.chosen[side]) return;
    const other = view.chosen[side === "a" ? "b" : "a"];
    const all = standing()
      .map((system) => view.names[system])
      .filter((name) => name !== other);
    const next = all[(all.indexOf(view.chosen[side]) + by + all.length) % all.length];
    choose({ [side]: next });
  }

  function compare() {
    if (!view) return;
    choose({
      b: view.chosen.b ? "" : (view.names[rival()] ?? ""),
      ...(view.chosen.b && NEEDS_PAIR.has(view.chosen.order) ? { order: "" } : {}),
    });
  }

  const swap = () => {
    if (view?.chosen.b) choose({ a: view.chosen.b, b: view.chosen.a });
  };
  const answer = () => {
    const details = /** @type {HTMLDetailsElement} */ (view?.body.querySelector(".answer"));
    if (details) details.open = !details.open;
  };

  board.page("explorer", {
    title: "Explorer",
    label: "Explorer",
    keys: [
      ["j", "next query", () => step(1)],
      ["k", "previous query", () => step(-1)],
      ["[", "A: a better system", () => turnSystem("a", -1)],
      ["]", "A: a weaker system", () => turnSystem("a", 1)],
      ["{", "B: a better system", () => turnSystem("b", -1)],
      ["}", "B: a weaker system", () => turnSystem("b", 1)],
      ["c", "compare with another system, or stop", compare],
      ["x", "swap A and B", swap],
      ["g", "gold answer", answer],
    ],
    show,
  });
})();

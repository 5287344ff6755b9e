/* The list of queries in the explorer. Each query has a line with the values of all systems. */
"use strict";

/** @param {ExplorerView} view */
pages.explorerList = (view) => {
  const { h, ledger } = pages;
  const { points } = formats;
  const { valueOf, sides } = view.scores;
  const AT_ONCE = 10; // number of queries that are drawn first
  const ABOVE = 2; // number of queries above the open one

  /* Draw the values of all systems for a query on a line from 0 to 1. A and B have their own marks. */
  function line(query) {
    if (!view.judged.has(query)) return h("small", { class: "muted" }, "not judged");
    const percent = (value) => 3 + 94 * value;
    const at = (value) => `${percent(value)}%`;
    const [a, b = null] = sides().map((system) => valueOf(system, query));
    const s = pages.svg;
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

  /* Return true if a stage of A or B failed for a query. */
  const failed = (position) => view.files.some(({ failures }) => failures.some(({ query }) => query === position));

  function entry(position) {
    const { id, text } = view.index.queries[position];
    const link = h(
      "a",
      {
        class: "entry",
        href: pages.link("explorer", { ...view.chosen, q: id }),
        "aria-current": id === view.chosen.q ? "true" : null,
      },
      h("span", { class: "entry-text" }, h("bdi", null, marks.readable(text.slice(0, 160)))),
      line(position),
      failed(position) ? h("span", { class: "chip bad" }, "failed") : null,
    );
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (!view.wide.matches) view.queries.open = false;
      view.choose({ q: id }, true);
    });
    return h("li", null, link);
  }

  function drawList() {
    const { shown } = view;
    view.listDrawn = view.listed;
    const many = `${shown.length} of ${view.index.queries.length} queries`;
    view.count.textContent = shown.length === view.index.queries.length ? `${shown.length} queries` : many;
    const current = shown.findIndex((position) => view.index.queries[position].id === view.chosen.q);
    pages.fillInTurn(view.list, shown.length, (i) => entry(shown[i]), AT_ONCE, Math.max(0, current - ABOVE));
    markCurrent();
  }

  /* Mark the open query and scroll to it. */
  function markCurrent() {
    view.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const at = view.shown.findIndex((position) => view.index.queries[position].id === view.chosen.q);
    const current = /** @type {HTMLElement} */ (view.list.children[at]?.firstChild);
    current?.setAttribute("aria-current", "true");
    if (current && view.list.clientHeight) {
      const top = current.offsetTop - view.list.offsetTop;
      if (top < view.list.scrollTop || top + current.offsetHeight > view.list.scrollTop + view.list.clientHeight)
        view.list.scrollTop = top - 80;
    }
  }

  return { drawList, markCurrent };
};

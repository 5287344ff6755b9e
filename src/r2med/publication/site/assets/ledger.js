/* Two drawings of ranks: the rank of each relevant document in every system, and the difference of two rankings. */
"use strict";

pages.ledger = (() => {
  const { h, svg } = pages;
  const { count } = formats;
  const SPAN = 82; // percent of the width for the ranks; documents beyond the depth are at the right
  const BEYOND = 93;

  const depthOf = (ranks) => Math.max(10, 10 ** Math.ceil(Math.log10(Math.max(1, ...ranks))));

  /* Return a function from a rank to percent of the width. Rank 0 is beyond the depth. */
  const scale = (depth) => (rank) => (rank ? 1.5 + (SPAN - 1.5) * (Math.log10(rank) / Math.log10(depth)) : BEYOND);

  const decades = (depth) => Array.from({ length: Math.round(Math.log10(depth)) + 1 }, (_, i) => 10 ** i);

  function axis(depth) {
    const x = scale(depth);
    return h(
      "div",
      { class: "gold-row gold-axis", "aria-hidden": "true" },
      h("span", null, "relevant document"),
      svg(
        "svg",
        { class: "strip", height: 16 },
        decades(depth).map((rank) =>
          svg("text", { x: `${x(rank)}%`, y: 12, class: rank === 1 ? "first" : null }, count(rank)),
        ),
        svg("text", { x: "100%", y: 12, class: "last" }, "beyond"),
      ),
      h("span"),
    );
  }

  function pair(x, a, b) {
    const marks = [];
    if (a !== null && b !== null)
      marks.push(
        svg("line", {
          class: b && (!a || b < a) ? "move up" : "move down",
          x1: `${x(a)}%`,
          x2: `${x(b)}%`,
          y1: 13,
          y2: 13,
        }),
      );
    if (a !== null) marks.push(svg("circle", { class: "side-a", cx: `${x(a)}%`, cy: 13, r: 5 }));
    if (b !== null)
      marks.push(
        svg(
          "svg",
          { x: `${x(b)}%`, y: 13, overflow: "visible" },
          svg("rect", { class: "side-b", x: -4.5, y: -4.5, width: 9, height: 9 }),
        ),
      );
    return marks;
  }

  /* Draw ticks at these percents of the width as one element, because a page may have thousands of them. */
  const ticks = (percents, height, margin, name = "tick") =>
    svg(
      "svg",
      { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", width: "100%", height },
      svg("path", { class: name, d: percents.map((x) => `M${x.toFixed(2)} ${margin}V${height - margin}`).join("") }),
    );

  /* Draw one strip: a tick for every system, a disc for A, a square for B. */
  function strip(ranks, a, b, depth) {
    const x = scale(depth);
    return svg(
      "svg",
      { class: "strip", height: 26, "aria-hidden": "true" },
      svg("rect", { class: "seen", x: 0, y: 0, width: `${x(10) + 0.8}%`, height: 26 }),
      svg("line", { class: "rail", x1: "0%", x2: `${SPAN + 1}%`, y1: 13, y2: 13 }),
      ticks(
        ranks.filter(({ rank }) => rank).map(({ rank }) => x(rank)),
        26,
        6,
      ),
      ranks.some(({ rank }) => !rank) ? ticks([BEYOND], 26, 6, "tick beyond") : null,
      pair(x, a, b),
    );
  }

  function note(ranks) {
    const known = ranks.filter(({ rank }) => rank);
    if (!ranks.length) return "";
    if (!known.length) return h("strong", { class: "nobody" }, "found by no system");
    const missing = ranks.length - known.length;
    return `best ${count(Math.min(...known.map(({ rank }) => rank)))}${missing ? ` · ${missing} of ${ranks.length} beyond` : ""}`;
  }

  function spoken(ranks, a, b) {
    const of = (rank) => (rank ? `rank ${rank}` : "beyond the depth");
    return `${a === null ? "" : `A ${of(a)}, `}${b === null ? "" : `B ${of(b)}, `}${ranks.filter(({ rank }) => rank).length} of ${ranks.length} systems find it`;
  }

  /* Draw the ledger. `rows` are {name, ranks: [{name of a system, rank}], a, b, open() -> nodes}.
     If no system is chosen, a or b is null. */
  function ledger(rows) {
    const depth = depthOf(rows.flatMap((row) => row.ranks.map(({ rank }) => rank)));
    return h(
      "div",
      { class: "ledger" },
      axis(depth),
      rows.map(({ name, ranks, a, b, open }) => {
        const inside = h("div", { class: "gold-text" });
        const row = h(
          "details",
          { class: "gold-details" },
          h(
            "summary",
            { class: "gold-row" },
            pages.named(name),
            strip(ranks, a, b, depth),
            h(
              "span",
              { class: "gold-note" },
              note(ranks),
              h("span", { class: "visually-hidden" }, ` · ${spoken(ranks, a, b)}`),
            ),
          ),
          inside,
        );
        row.addEventListener("toggle", () => {
          if (row.open && !inside.childElementCount) inside.append(...open());
        });
        return row;
      }),
    );
  }

  /* Draw the ranks of one document as text, best first. */
  const standings = (ranks) =>
    h(
      "p",
      { class: "standings", role: "region", tabindex: 0, "aria-label": "Its rank in every system" },
      [...ranks]
        .sort((x, y) => (x.rank || Infinity) - (y.rank || Infinity))
        .map(({ name, rank }) =>
          h(
            "span",
            { class: rank ? null : "muted" },
            pages.named(name),
            " ",
            h("b", null, rank ? count(rank) : "beyond"),
          ),
        ),
    );

  /* Draw lines between the ranks of a document in two rankings. The line of a document in only one ranking is short. */
  function slope(a, b, isGold) {
    const step = 15,
      width = 120,
      left = 26,
      right = width - 26;
    const y = (rank) => 10 + step * rank;
    const lines = a.map((document, i) => {
      const j = b.indexOf(document);
      const gold = isGold(document) ? " gold" : "";
      return j < 0
        ? svg("line", { class: `skipped${gold}`, x1: left, x2: left + 14, y1: y(i), y2: y(i) })
        : svg("line", { class: `kept${gold}`, x1: left, x2: right, y1: y(i), y2: y(j) });
    });
    const extra = b.map((document, j) =>
      a.includes(document)
        ? null
        : svg("line", {
            class: `skipped${isGold(document) ? " gold" : ""}`,
            x1: right - 14,
            x2: right,
            y1: y(j),
            y2: y(j),
          }),
    );
    const number = (documents, at, anchor) =>
      documents.map((document, i) =>
        svg("text", { x: at, y: y(i) + 4, "text-anchor": anchor, class: isGold(document) ? "gold" : null }, i + 1),
      );
    const height = y(Math.max(a.length, b.length));
    return svg(
      "svg",
      {
        class: "slope",
        viewBox: `0 0 ${width} ${height}`,
        width,
        height,
        role: "img",
        "aria-label": "Lines from the rank of each document in A to its rank in B",
      },
      lines,
      extra,
      number(a, left - 6, "end"),
      number(b, right + 6, "start"),
    );
  }

  return { ticks, ledger, standings, slope };
})();

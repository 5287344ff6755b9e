/* Drawings as SVG without a library: intervals and bars in cells, and quality against cost with the Pareto line. */
"use strict";

pages.chart = (() => {
  const { h, svg } = pages;
  const { points } = formats;

  const spoken = ({ value, low, high }) =>
    low === null || low === high ? points(value) : `${points(value)}, 95 % interval ${points(low)} to ${points(high)}`;

  /* Draw a dot on a line from low to high. All cells of a column share the scale `span`, [least, most]. */
  function interval({ value, low, high }, span, width = 84) {
    const x = (at) => (4 + ((at - span[0]) / (span[1] - span[0] || 1)) * (width - 8)).toFixed(1);
    return svg(
      "svg",
      {
        class: "glyph",
        viewBox: `0 0 ${width} 14`,
        width,
        height: 14,
        role: "img",
        "aria-label": spoken({ value, low, high }),
      },
      svg("line", { class: "glyph-rail", x1: 4, x2: width - 4, y1: 7, y2: 7 }),
      low === null ? null : svg("line", { class: "glyph-range", x1: x(low), x2: x(high), y1: 7, y2: 7 }),
      svg("circle", { class: low === null ? "glyph-dot hollow" : "glyph-dot", cx: x(value), cy: 7, r: 2.8 }),
    );
  }

  /* Draw a thin bar below the number in a cell. `most` is the largest number of its column. */
  function bar(cell, value, most) {
    cell.classList.add("bar");
    cell.style.setProperty("--share", Math.max(0, Math.min(1, value / (most || 1))).toFixed(3));
    return cell;
  }

  const span = (cells) => {
    const values = cells.flatMap(({ value, low, high }) => [value, low, high]).filter((at) => at !== null);
    return [Math.min(...values), Math.max(...values)];
  };

  /* --- the scatter ------------------------------------------------------------------------------------------------- */

  // Kinds of systems are told apart by the shape and the colour of their marks, numbered from 1.
  const SHAPES = [
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
    "M0-6 5.5 4.5h-11z",
    "M-4.5-4.5h9v9h-9z",
    "M0-6 6 0 0 6-6 0z",
    "M0 6-5.5-4.5h11z",
    "M-5 0h10M0-5v10",
  ];
  const known = (shape) => (SHAPES[shape - 1] ? shape : SHAPES.length);
  const colour = (shape) => `k${known(shape)}`;

  const mark = (shape, solid) =>
    svg("path", {
      class: `mark ${colour(shape)}`,
      d: SHAPES[known(shape) - 1],
      fill: solid ? "currentColor" : "var(--bg)",
      stroke: "currentColor",
      "stroke-width": 1.5,
    });

  /**
   * Return the points that no other point beats at the same or lower cost, cheapest first.
   * @template {{ x: number, y: number }} Item
   * @param {Item[]} items
   */
  function pareto(items) {
    /** @type {Item[]} */
    const front = [];
    for (const item of [...items].sort((a, b) => a.x - b.x || b.y - a.y)) {
      if (!front.length || item.y > front[front.length - 1].y) front.push(item);
    }
    return front;
  }

  /* Return the positions of values on a logarithmic axis. A cost of 0 has its own position at the left. */
  function logAxis(values, from, to) {
    const positive = values.filter((value) => value > 0);
    const free = positive.length < values.length;
    const start = free ? from + 56 : from + 14;
    const [low, high] = positive.length
      ? [Math.floor(Math.log10(Math.min(...positive))), Math.ceil(Math.log10(Math.max(...positive)))]
      : [0, 1];
    const decades = Math.max(1, high - low);
    const at = (value) => (value > 0 ? start + ((Math.log10(value) - low) / decades) * (to - start) : from + 14);
    const ticks = Array.from({ length: decades + 1 }, (_, i) => 10 ** (low + i));
    return { at, ticks: free ? [0, ...ticks] : ticks };
  }

  function linearTicks(low, high) {
    const step = [1, 2, 5, 10, 20, 50].find((size) => (high - low) / size <= 8) || 50;
    const first = Math.floor(low / step) * step;
    return Array.from({ length: Math.ceil((high - first) / step) + 1 }, (_, i) => first + i * step);
  }

  /* Draw items: {x, y (points), low, high, name, shape, solid, costed, text, href}.
     Items that are not `costed` are not on the line. `lines` are scores to compare
     with: {label, value}. */
  function scatter(items, { width, xLabel, yLabel, tick, lines = [] }) {
    const height = width < 560 ? 380 : 480;
    const frame = { left: 44, right: width - 16, top: 16, bottom: height - 46 };
    const axis = logAxis(
      items.map((item) => item.x),
      frame.left,
      frame.right,
    );
    const levels = lines.map(({ value }) => 100 * value);
    const ys = linearTicks(
      Math.min(...levels, ...items.map((item) => item.low ?? item.y)),
      Math.max(...levels, ...items.map((item) => item.high ?? item.y)),
    );
    const y = (value) =>
      frame.bottom - ((value - ys[0]) / (ys[ys.length - 1] - ys[0] || 1)) * (frame.bottom - frame.top);
    const front = pareto(items.filter((item) => item.costed));
    const steps =
      front
        .map((item, i) => `${i ? `H${axis.at(item.x)}V${y(item.y)}` : `M${axis.at(item.x)} ${y(item.y)}`}`)
        .join("") + (front.length ? `H${frame.right}` : "");
    const ticks = axis.ticks.filter((_, i) => axis.ticks.length <= 7 || width > 560 || i % 2 === 0);
    const tip = svg("text", { class: "pareto-name", "aria-hidden": "true" });
    const drawn = svg(
      "svg",
      { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${yLabel} against ${xLabel}` },
      ys.map((value) => [
        svg("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y(value), y2: y(value) }),
        svg("text", { x: frame.left - 8, y: y(value) + 4, "text-anchor": "end" }, String(value)),
      ]),
      ticks.map((value) =>
        svg("text", { x: axis.at(value), y: frame.bottom + 20, "text-anchor": "middle" }, tick(value)),
      ),
      svg("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }),
      svg("text", { class: "axis-title", x: frame.right, y: height - 6, "text-anchor": "end" }, xLabel),
      lines.map(({ label }, i) => [
        svg("line", { class: "reference", x1: frame.left, x2: frame.right, y1: y(levels[i]), y2: y(levels[i]) }),
        svg(
          "text",
          { class: "reference-name", x: frame.right, y: y(levels[i]) - 5, "text-anchor": "end" },
          `${label} ${levels[i].toFixed(1)}`,
        ),
      ]),
      svg("path", { class: "pareto", d: steps }),
      [...items].sort((a, b) => a.solid - b.solid).map((item) => point(item, axis.at(item.x), y)),
      labels(front, items, axis.at, y, frame),
      tip,
    );
    for (const kind of ["pointerover", "focusin"])
      drawn.addEventListener(kind, ({ target }) =>
        pointAt(/** @type {Element} */ (target).closest("[data-name]"), tip, frame),
      );
    return drawn;
  }

  /* Write the name of a point above it. Without a point, write nothing. */
  function pointAt(marked, tip, frame) {
    tip.textContent = marked?.dataset.name ?? "";
    if (!marked) return;
    const [x, y] = [Number(marked.dataset.x), Number(marked.dataset.y)];
    const anchor = x < frame.left + 200 ? "start" : x > frame.right - 200 ? "end" : "middle";
    for (const [name, value] of Object.entries({ x, y: Math.max(12, y - 12), "text-anchor": anchor }))
      tip.setAttribute(name, value);
  }

  function point(item, x, y) {
    const marked = svg(
      "g",
      { transform: `translate(${x} ${y(item.y)})` },
      mark(item.shape, item.solid),
      svg("title", null, item.text),
    );
    const whiskers =
      item.low === null
        ? null
        : svg("line", { class: `whisker ${colour(item.shape)}`, x1: x, x2: x, y1: y(item.low), y2: y(item.high) });
    const facts = { "data-name": item.text, "data-x": x, "data-y": y(item.y) };
    return item.href
      ? svg("a", { href: item.href, "aria-label": item.text, ...facts }, whiskers, marked)
      : svg("g", facts, whiskers, marked);
  }

  const HEIGHT = 14; // height of a label
  const SIGN = 6.8; // estimated width of a letter, rather too large than too small
  const RADIUS = 8; // radius of a point with some space around it

  /* Draw names beside the Pareto points. A name that would cover a point or another name is left out. */
  function labels(front, items, x, y, frame) {
    /** @typedef {{ left: number, top: number, wide: number, high: number }} Box */
    /** @type {Box[]} */
    const taken = items.map((item) => ({
      left: x(item.x) - RADIUS,
      top: y(item.y) - RADIUS,
      wide: 2 * RADIUS,
      high: 2 * RADIUS,
    }));
    const apart = (one, other) =>
      one.left + one.wide <= other.left ||
      other.left + other.wide <= one.left ||
      one.top + one.high <= other.top ||
      other.top + other.high <= one.top;
    const free = (box) =>
      box.left >= frame.left &&
      box.left + box.wide <= frame.right &&
      box.top >= 0 &&
      taken.every((other) => apart(box, other));
    return [...front].reverse().map((item) => {
      const name = item.name.length > 34 ? `${item.name.slice(0, 33)}…` : item.name;
      const [wide, at, level] = [name.length * SIGN, x(item.x), y(item.y)];
      const places = [
        { left: at + 10, top: level - 18, anchor: "start" },
        { left: at - 10 - wide, top: level - 18, anchor: "end" },
        { left: at + 10, top: level + 5, anchor: "start" },
        { left: at - 10 - wide, top: level + 5, anchor: "end" },
        { left: at - wide / 2, top: level - 24, anchor: "middle" },
        { left: at - wide / 2, top: level + 12, anchor: "middle" },
      ].map((place) => ({ ...place, wide, high: HEIGHT }));
      const box = places.find(free);
      if (!box) return null;
      taken.push(box);
      const from = { start: box.left, end: box.left + wide, middle: at }[box.anchor];
      return svg("text", { class: "pareto-name", x: from, y: box.top + 11, "text-anchor": box.anchor }, name);
    });
  }

  const legend = (kinds, note = "filled: run here or submitted · hollow: published") =>
    h(
      "div",
      { class: "row legend" },
      kinds.map(({ name, shape }) =>
        h(
          "span",
          { class: "row" },
          svg("svg", { viewBox: "-8 -8 16 16", width: 14, height: 14, "aria-hidden": "true" }, mark(shape, true)),
          name,
        ),
      ),
      note ? h("span", { class: "muted" }, note) : null,
    );

  return { interval, bar, span, scatter, legend, pareto };
})();

/* Mark matching words. Python analysed every word and wrote the forms of each index term into the data files. This
   script only splits texts as Python does and looks up the forms, so that page and index never disagree. */
"use strict";

const marks = (() => {
  const { h, visible } = shell;
  const CAPITALS = /[A-Z]+/g;
  const KINDS = {
    query: "a word of the query",
    generated: "a word of the generated text",
    both: "a word of both",
    answer: "a word of a sentence that cites it",
  };

  // A page has hundreds of marks, and copies are faster than new elements.
  const MARKS = Object.fromEntries(
    Object.entries(KINDS).map(([kind, title]) => [
      kind,
      ["", " common"].map((common) => h("mark", { class: `word ${kind}${common}`, title })),
    ]),
  );

  // White space stays. Characters that are invisible or change the reading order are shown as escapes.
  // eslint-disable-next-line no-control-regex
  const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
  const readable = (text) => text.replace(CONTROLS, visible);

  /**
   * Return the words to look for in a query's file. `generated` are the numbers of the terms of a system's texts.
   * @param {QueryFile} file
   * @param {ExplorerIndex} index
   * @param {number[]} generated
   * @returns {WantedWords}
   */
  function words(file, { edges, blanks }, generated) {
    file.chunk ??= new RegExp(`[^${blanks.replace(/[\]\\^-]/g, "\\$&")}]+`, "g");
    file.lookup ??= new Map(Object.entries(file.forms));
    return {
      chunk: file.chunk,
      lookup: file.lookup,
      edges,
      query: file.words,
      common: new Set(file.common),
      generated: new Set(generated),
    };
  }

  /** @type {(term: number, wanted: WantedWords) => Match["kind"] | null} */
  function kind(term, { query, generated }) {
    if (term < query) return generated.has(term) ? "both" : "query";
    return generated.has(term) ? "generated" : null;
  }

  /**
   * Return the words of a text that match, in order.
   * @param {string} text
   * @param {WantedWords} wanted
   * @returns {Match[]}
   */
  function matches(text, wanted) {
    const all = [];
    for (const { 0: chunk, index } of text.matchAll(wanted.chunk)) {
      let first = 0,
        last = chunk.length;
      while (first < last && wanted.edges.includes(chunk[first])) first += 1;
      while (last > first && wanted.edges.includes(chunk[last - 1])) last -= 1;
      const bare = chunk.slice(first, last).replace(CAPITALS, (letters) => letters.toLowerCase());
      const form = wanted.lookup.get(bare) ?? [];
      const found = typeof form === "number" ? [{ start: 0, stop: last - first, term: form }] : form;
      for (const { start, stop, term } of found) {
        const of = kind(term, wanted);
        if (of)
          all.push({
            start: index + first + start,
            stop: index + first + stop,
            term,
            kind: of,
            common: wanted.common.has(term),
          });
      }
    }
    return all;
  }

  /**
   * Return the window of `width` characters with the most different words, as text/highlight.py does.
   * @param {string} text
   * @param {Match[]} all
   * @param {number} width
   * @returns {Stretch}
   */
  function best(text, all, width) {
    if (text.length <= width) return { start: 0, stop: text.length };
    const telling = all.filter((match) => !match.common);
    const times = new Map();
    for (const { term } of telling) times.set(term, (times.get(term) || 0) + 1);
    let top = 0,
      from = 0,
      to = 0,
      total = 0,
      first = 0;
    for (const match of telling) {
      total += 1 / times.get(match.term);
      while (match.stop - telling[first].start > width && telling[first] !== match)
        total -= 1 / times.get(telling[first++].term);
      if (total > top + 1e-9) [top, from, to] = [total, telling[first].start, match.stop];
    }
    let start = Math.max(0, Math.min(from - Math.floor((width - (to - from)) / 3), text.length - width));
    let stop = Math.min(text.length, start + width);
    const before = text.indexOf(" ", start),
      after = text.lastIndexOf(" ", stop - 1);
    if (start && before >= 0 && before < from) start = before + 1;
    if (stop < text.length && after >= to) stop = after;
    return { start, stop };
  }

  /**
   * Return the nodes of a part of a text with its matches marked.
   * @param {string} text
   * @param {Pick<Match, "start" | "stop" | "kind" | "common">[]} all
   * @param {Stretch} [stretch] the whole text if it is left out
   */
  function draw(text, all, { start, stop } = { start: 0, stop: text.length }) {
    const nodes = [];
    let at = start;
    for (const match of all) {
      if (match.start < at || match.stop > stop) continue;
      nodes.push(readable(text.slice(at, match.start)));
      const mark = /** @type {HTMLElement} */ (MARKS[match.kind][Number(match.common)].cloneNode());
      mark.append(readable(text.slice(match.start, match.stop)));
      nodes.push(mark);
      at = match.stop;
    }
    nodes.push(readable(text.slice(at, stop)));
    return nodes;
  }

  /**
   * Draw a part of a text, with a button that shows the whole of it. Without more to show there is no button.
   * @param {string} text
   * @param {Pick<Match, "start" | "stop" | "kind" | "common">[]} all
   * @param {Stretch} window
   * @param {{ before?: string, after?: string }} [left] what is said where the text itself was cut; empty if it was not
   */
  function excerpt(text, all, window, { before = "", after = "" } = {}) {
    const body = h("p", { class: "text" });
    const isWhole = window.start === 0 && window.stop === text.length && !before && !after;
    const note = (words) => (words ? h("span", { class: "left-out" }, words) : "");
    const fill = (open) =>
      open
        ? body.replaceChildren(note(before), ...draw(text, all), note(after))
        : body.replaceChildren(
            window.start || before ? "… " : "",
            ...draw(text, all, window),
            window.stop < text.length || after ? " …" : "",
          );
    fill(isWhole);
    if (isWhole) return { body, more: null };
    const more = h(
      "button",
      {
        type: "button",
        class: "plain more",
        "aria-expanded": "false",
        onclick: () => {
          const open = more.getAttribute("aria-expanded") !== "true";
          more.setAttribute("aria-expanded", String(open));
          more.textContent = open ? "Less" : "More";
          fill(open);
        },
      },
      "More",
    );
    return { body, more };
  }

  /* Draw the legend of the colours. */
  const legend = (generated) =>
    h(
      "p",
      { class: "legend" },
      h("mark", { class: "word query" }, "query word"),
      generated
        ? [
            " ",
            h("mark", { class: "word generated" }, "generated word"),
            " ",
            h("mark", { class: "word both" }, "both"),
          ]
        : null,
      h("span", { class: "muted" }, " by index term: “wrinkled” matches “wrinkling”; common words are faint."),
    );

  /**
   * Return a function from an offset in characters (Python) to an offset in UTF-16 units (JavaScript).
   * @param {string} text
   * @returns {(offset: number) => number}
   */
  function units(text) {
    const starts = [0];
    for (const letter of text) starts.push(/** @type {number} */ (starts.at(-1)) + letter.length);
    return (offset) => starts[Math.min(offset, starts.length - 1)];
  }

  return { readable, words, matches, best, draw, excerpt, legend, units };
})();

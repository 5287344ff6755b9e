/* Draw the project's guideline: headings, lists, bold, italic and code of Markdown. All other marks, links and HTML
   stay plain text. */
"use strict";

(() => {
  const { h } = pages;
  const { readable } = marks;
  const INLINE = /(\*\*[^*\n]+\*\*|\*[^*\n]+\*|`[^`\n]+`)/;

  /** @type {(text: string) => (Node | string)[]} */
  function inline(text) {
    return text.split(INLINE).map((part, i) => {
      if (i % 2 === 0) return readable(part);
      if (part.startsWith("**")) return h("strong", null, readable(part.slice(2, -2)));
      return h(part.startsWith("*") ? "em" : "code", null, readable(part.slice(1, -1)));
    });
  }

  /* Return the kind of a line and its text without the mark. */
  function line(text) {
    const heading = /^#{1,6}\s+(.*)$/.exec(text);
    if (heading) return { kind: "h3", words: heading[1] };
    const bullet = /^\s*[-*+]\s+(.*)$/.exec(text);
    if (bullet) return { kind: "ul", words: bullet[1] };
    const number = /^\s*\d{1,3}[.)]\s+(.*)$/.exec(text);
    return number ? { kind: "ol", words: number[1] } : { kind: text.trim() ? "p" : "", words: text.trim() };
  }

  /**
   * Return the elements of a guideline.
   * @param {string} text
   * @returns {HTMLElement[]}
   */
  pages.guideline = (text) => {
    /** @type {HTMLElement[]} */
    const blocks = [];
    let open = ""; // the block that the next line may continue
    for (const { kind, words } of text.split(/\r?\n/).map(line)) {
      const last = blocks.at(-1);
      if (kind === "ul" || kind === "ol") {
        const list = last && open === kind ? last : h(kind);
        if (list !== last) blocks.push(list);
        list.append(h("li", null, inline(words)));
        open = kind;
      } else if (kind === "p" && last && open) {
        const end = open === "p" ? last : /** @type {HTMLElement} */ (last.lastElementChild);
        end.append(" ", ...inline(words)); // a long line goes on
      } else {
        if (kind) blocks.push(h(/** @type {"h3" | "p"} */ (kind), null, inline(words)));
        open = kind === "p" ? "p" : "";
      }
    }
    return blocks;
  };
})();

/* Draw the texts of a review item. Text from data is never used as HTML. */
"use strict";

pages.reviewTexts = (() => {
  const { h, visible } = pages;
  const { readable } = marks;

  const labelled = ({ label, text }) =>
    h(
      "section",
      null,
      h("h2", { class: "label" }, label),
      h(
        "p",
        { class: `text ${label === "Question" || label === "Answer" ? label.toLowerCase() : ""}` },
        readable(text),
      ),
    );

  /** @param {NonNullable<ReviewItem["origin"]>} origin */
  function provenance({ title, url, source }) {
    const parts = [
      title && readable(title),
      url && h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, visible(url)),
      source && visible(source),
    ].filter(Boolean);
    return h(
      "p",
      { class: "provenance" },
      parts.length ? parts.flatMap((part, i) => (i ? [" · ", part] : [part])) : "The source is not known.",
    );
  }

  /* Draw the texts that the item is compared with. On small screens long ones are folded. */
  function asked(item) {
    const isWide = window.matchMedia("(min-width: 60rem)").matches;
    const fold = ({ label, text }) =>
      h(
        "details",
        { class: "reasoning", open: isWide },
        h("summary", { class: "label" }, label),
        h("p", { class: "text" }, readable(text)),
      );
    return h(
      "div",
      { class: "asked" },
      item.beside.map((shown) => (shown.folds ? fold(shown) : labelled(shown))),
    );
  }

  /* Draw each sentence beside its translation, and below what changed on the way back. */
  const sentences = (pairs) =>
    h(
      "ol",
      { class: "sentences" },
      pairs.map((pair) =>
        h(
          "li",
          null,
          [pair.source, pair.translation].map((text) => h("p", { class: "text", dir: "auto" }, readable(text))),
          pair.marks && h("p", { class: "marks", dir: "auto" }, readable(pair.marks)),
        ),
      ),
    );

  /* Draw the texts that are reviewed. */
  function texts(item) {
    if (item.sentences.length) return sentences(item.sentences);
    if (item.main.length > 1) return item.main.map(labelled);
    return item.main.map(({ label, text }) =>
      h("p", { class: `text ${label === "Question" ? "question" : ""}` }, readable(text)),
    );
  }

  return { asked, texts, provenance };
})();

/* Answers in words. Each kind has points, and a scale of answers to them. */
"use strict";

pages.reviewReplies = (() => {
  const isSeveral = (page) => page.kind.points.length > 1;
  const plural = (kind) => `${kind.noun}s`;

  /** @type {(page: ReviewPage, replies: ReviewReplies) => string} */
  const described = (page, replies) =>
    page.kind.points
      .map(({ name }) => {
        const label = page.kind.scale.find(({ word }) => word === replies[name])?.label ?? "";
        return isSeveral(page) ? `${name.replaceAll("_", " ")}: ${label.toLowerCase()}` : label;
      })
      .join(", ");

  /** @type {Record<ReviewVerdict, string>} */
  const PAST = { accept: "Accepted", unsure: "Unsure", reject: "Rejected" };

  /* Name what was said in a few words. */
  const done = (page, verdict, replies) =>
    page.kind.name === "passage" ? PAST[verdict] : isSeveral(page) ? "Saved" : described(page, replies);

  /** @type {(page: ReviewPage, figures: [point: string, alpha: ReviewAlpha][]) => string} */
  function agreement(page, figures) {
    const shown = figures.map(([point, numbers]) => {
      const [value, low, high] = numbers.map((figure) => figure?.toFixed(2).replace("-", "−"));
      return `${isSeveral(page) ? `${point.replaceAll("_", " ")} ` : ""}α ${value}${low ? ` [${low}, ${high}]` : ""}`;
    });
    const items = figures[0][1][3];
    return `${shown.join(", ")} over ${items} ${items === 1 ? page.kind.noun : plural(page.kind)}`;
  }

  return { isSeveral, plural, described, done, agreement };
})();

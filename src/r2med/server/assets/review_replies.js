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

  const written = (value) => value.toFixed(2).replace("-", "−");

  /** @type {(page: ReviewPage, alphas: Record<string, ReviewAlpha>) => string} */
  function agreement(page, alphas) {
    const shown = Object.entries(alphas).map(([point, { value, low, high }]) => {
      const name = isSeveral(page) ? `${point.replaceAll("_", " ")} ` : "";
      return `${name}α ${written(value)}${low === null ? "" : ` [${written(low)}, ${written(high)}]`}`;
    });
    const [{ items }] = Object.values(alphas);
    return `${shown.join(", ")} over ${items} ${items === 1 ? page.kind.noun : plural(page.kind)}`;
  }

  return { isSeveral, plural, described, done, agreement };
})();

/* How numbers are written, on every page. Nothing here needs a document, so that node can test it. */
"use strict";

const formats = (() => {
  const UNKNOWN = "unknown";
  const number = new Intl.NumberFormat("en");

  /** @typedef {number | null | undefined} Known */

  /* "1,234" */
  const count = (value) => number.format(value);

  /* "1 query", "1,234 queries"; a plural that is not the noun with an s is given. */
  const counted = (value, noun, plural = `${noun}s`) => `${count(value)} ${value === 1 ? noun : plural}`;

  /**
   * A value between 0 and 1 as points, "27.59"; nothing known is a dash.
   * @param {Known} value
   */
  const points = (value, digits = 2) => (value === null || value === undefined ? "–" : (100 * value).toFixed(digits));

  /**
   * A time, "3.21 s"; nothing known is a dash.
   * @param {Known} value
   */
  function seconds(value) {
    if (value === null || value === undefined) return "–";
    if (value < 0.0005) return "< 1 ms";
    if (value < 1) return `${Math.round(1000 * value)} ms`;
    return `${value.toFixed(value < 10 ? 2 : 0)} s`;
  }

  /**
   * An amount that was paid, "$1.20"; below ten cents with the digits that tell one LLM from another.
   * @param {Known} value
   */
  function dollars(value) {
    if (value === null || value === undefined) return UNKNOWN;
    return `$${value.toFixed(value === 0 || value >= 0.1 ? 2 : value >= 0.01 ? 4 : 5)}`;
  }

  /**
   * What something would cost: as an amount, but nothing is "free".
   * @param {Known} value
   */
  const price = (value) => (value === 0 ? "free" : dollars(value));

  /* Two significant digits, for the ticks of an axis. */
  const short = (value) => Number(value.toPrecision(2)).toLocaleString("en", { maximumFractionDigits: 6 });

  /**
   * Parameters of a model in billions, "110M"; 0 means that there is no model.
   * @param {number} value
   */
  const parameters = (value) => (value === 0 ? "none" : value < 1 ? `${short(1000 * value)}M` : `${short(value)}B`);

  return { UNKNOWN, count, counted, points, seconds, dollars, price, short, parameters };
})();

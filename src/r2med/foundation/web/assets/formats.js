/* Formats of numbers on every page. The functions need no document, so that node can test them. */
"use strict";

const formats = (() => {
  const UNKNOWN = "unknown";
  const number = new Intl.NumberFormat("en");

  /** @typedef {number | null | undefined} Known */

  /* "1,234" */
  const count = (value) => number.format(value);

  /* "1 query", "1,234 queries". The default plural is the noun with an s. */
  const counted = (value, noun, plural = `${noun}s`) => `${count(value)} ${value === 1 ? noun : plural}`;

  /**
   * Return a value between 0 and 1 as points, "27.59". An unknown value is a dash.
   * @param {Known} value
   */
  const points = (value, digits = 2) => (value === null || value === undefined ? "–" : (100 * value).toFixed(digits));

  /**
   * Return a time, "3.21 s". An unknown value is a dash.
   * @param {Known} value
   */
  function seconds(value) {
    if (value === null || value === undefined) return "–";
    if (value < 0.0005) return "< 1 ms";
    if (value < 1) return `${Math.round(1000 * value)} ms`;
    return `${value.toFixed(value < 10 ? 2 : 0)} s`;
  }

  /**
   * Return an amount that was paid, "$1.20". Amounts below ten cents have more digits, so that LLMs can be compared,
   * and at least two significant ones.
   * @param {Known} value
   */
  function dollars(value) {
    if (value === null || value === undefined) return UNKNOWN;
    if (value === 0 || value >= 0.1) return `$${value.toFixed(2)}`;
    return `$${value.toFixed(value >= 0.01 ? 4 : Math.max(5, 1 - Math.floor(Math.log10(value))))}`;
  }

  /**
   * Return a price as an amount. A price of 0 is "free".
   * @param {Known} value
   */
  const price = (value) => (value === 0 ? "free" : dollars(value));

  /* Return two significant digits, for the ticks of an axis. */
  const short = (value) => Number(value.toPrecision(2)).toLocaleString("en", { maximumFractionDigits: 6 });

  /**
   * Return the parameters of a model, given in billions, as "110M". 0 means that there is no model.
   * @param {number} value
   */
  const parameters = (value) => (value === 0 ? "none" : value < 1 ? `${short(1000 * value)}M` : `${short(value)}B`);

  return { UNKNOWN, count, counted, points, seconds, dollars, price, short, parameters };
})();

/* The parts that all pages share: functions that build elements, the theme, the header. Text from data is never used as
   HTML. */
"use strict";

const shell = (() => {
  /* --- elements ------------------------------------------------------------------------------------------------ */

  const SVG = "http://www.w3.org/2000/svg";
  const SAFE_LINK = /^(#|https:\/\/)/; // data must not bring javascript: links

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "value" || name === "checked") element[name] = value;
      else if (name === "href" && !SAFE_LINK.test(value)) continue;
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(
      ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
    );
    return element;
  }

  /**
   * Return an element: h("a", {href: "#/x", onclick: f}, "text", node, [nodes]). svg(…) does the same for SVG.
   * @template {keyof HTMLElementTagNameMap} Tag
   * @param {Tag} tag
   * @param {Record<string, any> | null} [attributes]
   * @param {any[]} children
   * @returns {HTMLElementTagNameMap[Tag]}
   */
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  /**
   * @template {keyof SVGElementTagNameMap} Tag
   * @param {Tag} tag
   * @param {Record<string, any> | null} [attributes]
   * @param {any[]} children
   * @returns {SVGElementTagNameMap[Tag]}
   */
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // Characters that change the reading order, hide text or break lines are shown as escapes.
  // eslint-disable-next-line no-control-regex
  const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
  const visible = (text) =>
    String(text).replace(HIDDEN, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

  const PARTS = /(?<=[(,=/+])/; // where a long name may go on in the next line: bm25(scorer=lucene), demo/Biology

  /* Return a name or an id from data, isolated from the text around it and without hidden characters. */
  const named = (text) =>
    h(
      "bdi",
      { class: "name" },
      visible(text)
        .split(PARTS)
        .map((part, i) => (i ? [h("wbr"), part] : part)),
    );

  /**
   * Return an element of the HTML file.
   * @param {string} id
   */
  const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

  /* --- the theme ----------------------------------------------------------------------------------------------- */

  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function remembered(value) {
    try {
      // a browser may forbid storage, especially on file:// pages
      if (value) localStorage.setItem("r2med-theme", value);
      return localStorage.getItem("r2med-theme");
    } catch {
      return null;
    }
  }

  function applyTheme(chosen = remembered()) {
    document.documentElement.dataset.theme = chosen || (dark.matches ? "dark" : "light");
  }

  function switchTheme() {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remembered(next);
    applyTheme(next);
  }

  /* --- the header ---------------------------------------------------------------------------------------------- */

  const THEME_ICON = [
    svg("circle", { cx: 10, cy: 10, r: 7, fill: "none" }),
    svg("path", { d: "M10 3a7 7 0 0 1 0 14z", fill: "currentColor", stroke: "none" }),
  ];

  /* Add a button to the header. */
  function tool(id, label, icon, action) {
    const picture = svg(
      "svg",
      {
        viewBox: "0 0 20 20",
        width: 18,
        height: 18,
        "aria-hidden": "true",
        stroke: "currentColor",
        "stroke-width": 1.5,
      },
      icon,
    );
    document
      .querySelector(".top-tools")
      ?.append(
        h("button", { type: "button", class: "icon-button", id, "aria-label": label, onclick: action }, picture),
      );
  }

  /* Draw the header. <body data-word="board" data-home="#/leaderboard"> gives the word beside the wordmark and its link. */
  function header() {
    const { word, home } = document.body.dataset;
    const skip = h(
      "a",
      {
        class: "skip",
        href: "#main",
        onclick: (event) => {
          event.preventDefault(); // the address belongs to the page
          byId("main").focus();
        },
      },
      "Skip to content",
    );
    document.body.prepend(
      skip,
      h(
        "header",
        { class: "top" },
        h(
          "div",
          { class: "top-inner" },
          h(
            home ? "a" : "span",
            { class: "wordmark", href: home },
            h("span", { class: "wordmark-name" }, "r2med"),
            " ",
            h("span", { class: "wordmark-word" }, word),
          ),
          h("nav", { id: "nav", "aria-label": "Pages" }),
          h("div", { class: "top-tools" }),
        ),
      ),
    );
    byId("main").after(h("footer", { class: "foot" }, h("p", { id: "foot" })));
    tool("theme-switch", "Switch between light and dark", THEME_ICON, switchTheme);
  }

  applyTheme();
  dark.addEventListener("change", () => applyTheme());
  document.addEventListener("DOMContentLoaded", header);

  return { h, svg, visible, named, byId, switchTheme, tool };
})();

/* The frame of all pages: their addresses, data files and keys, and small parts that they share.
   Classic scripts only, since modules and fetch are blocked on file://. */
"use strict";

const pages = (() => {
  const { h, svg, visible, named, byId, switchTheme } = shell;
  /** @type {Map<string, Page>} */
  const added = new Map(); // the pages of the site, by name
  /** @typedef {{ promise: Promise<any>, resolve: Function, reject: Function, script?: HTMLElement }} LoadedFile */
  /** @type {Map<string, LoadedFile>} */
  const files = new Map(); // by the name of a data file
  const product = document.title; // the name of the site
  let current = null;
  let home = "leaderboard"; // the page for an empty address
  const LARGE = 2000; // a page with more elements is hidden first, because removing them is slow

  /* --- data files ---------------------------------------------------------------------------------------------- */

  /** @type {(name: string) => LoadedFile} */
  function file(name) {
    const known = files.get(name);
    if (known) return known;
    const entry = /** @type {any} */ ({});
    entry.promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
    entry.promise.catch(() => {});
    files.set(name, entry);
    return entry;
  }

  /* Data files call this. With JSON.parse, a key like __proto__ is an ordinary key. In a literal it would not be. */
  const data = (name, json) => file(name).resolve(JSON.parse(json));

  /**
   * Return a promise of the content of data/NAME.js. Each file is loaded once.
   * @template {string} Name
   * @param {Name} name
   * @returns {Promise<DataFile<Name>>}
   */
  function load(name) {
    const entry = file(name);
    if (!entry.script) {
      entry.script = h("script", { src: `data/${name}.js` });
      entry.script.addEventListener("error", () =>
        entry.reject(new Error(`data/${name}.js is missing: make the board again`)),
      );
      document.head.append(entry.script);
    }
    return entry.promise;
  }

  /* --- addresses: #/page?key=value ----------------------------------------------------------------------------- */

  function address() {
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
    const start = added.has(home) ? home : [...added.keys()][0]; // other sites have other pages
    return { page: added.has(path) ? path : start, params: new URLSearchParams(query) };
  }

  /* Return the address of a page. Parameters that are null, undefined or "" are left out. */
  function link(page, params = {}) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(params))
      if (value !== null && value !== undefined && value !== "") query.set(name, value);
    return `#/${page}${query.size ? `?${query}` : ""}`;
  }

  const go = (page, params) => {
    location.hash = link(page, params);
  };

  /* Change some parameters of the address, without a history entry and without drawing the page again. */
  function set(changes) {
    const { page, params } = address();
    history.replaceState(null, "", link(page, { ...Object.fromEntries(params), ...changes }));
  }

  /* Change some parameters of the address and of `params`, which were read from it. */
  function change(params, changes) {
    set(changes);
    for (const [name, value] of Object.entries(changes)) {
      if (value) params.set(name, value);
      else params.delete(name);
    }
  }

  /**
   * Add a page to the site.
   * @param {string} name
   * @param {Page} description
   */
  const page = (name, description) => {
    added.set(name, description);
  };

  async function show() {
    const site = await file("site").promise;
    const { page: name, params } = address();
    const main = h("div"); // a new element each time, because an earlier page may still write into its own
    const moved = current !== name;
    current = name;
    for (const anchor of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#nav a"))) {
      if (anchor.dataset.page === name) anchor.setAttribute("aria-current", "page");
      else anchor.removeAttribute("aria-current");
    }
    const shown = /** @type {Page} */ (added.get(name));
    document.title = `${shown.title} · ${product}`;
    const clear = supplant(byId("main").firstElementChild, main);
    try {
      await shown.show(main, params, site);
    } catch (error) {
      main.replaceChildren(h("p", { class: "empty" }, visible(error instanceof Error ? error.message : error)));
      throw error;
    } finally {
      clear();
    }
    if (moved) window.scrollTo(0, 0);
  }

  /* --- keys ---------------------------------------------------------------------------------------------------- */

  /** @type {PageKey[]} */
  const everywhere = [
    { key: "?", what: "this help", action: () => help() },
    {
      key: "/",
      what: "search",
      action: () => /** @type {HTMLElement} */ (document.querySelector("main input[type=search]"))?.focus(),
    },
    { key: "t", what: "light or dark", action: () => switchTheme() },
  ];

  /* Return the keys of the shown page. */
  const keysNow = () => {
    const { keys: own = [] } = added.get(current) ?? {};
    if (own === null) return []; // the person has turned shortcuts off
    return [...own, ...everywhere.filter(({ key }) => !own.some((taken) => taken.key === key))];
  };

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]"))
      return;
    const typing = event.target.closest("input, select, textarea");
    if (typing) {
      if (event.key === "Escape") typing.blur();
      return;
    }
    const bound = keysNow().find(({ key }) => key === event.key);
    if (!bound) return;
    if (bound.action(event) !== false) event.preventDefault();
  }

  const HELP_ICON = [
    svg("rect", { x: 1.75, y: 4.75, width: 16.5, height: 10.5, rx: 2, fill: "none" }),
    svg("path", { d: "M5 8h1M8 8h1M11 8h1M14 8h1M6 12h8", "stroke-linecap": "round" }),
  ];

  function help() {
    const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("help"));
    const rows = keysNow().map(({ key, what }) =>
      h("tr", null, h("td", null, h("kbd", null, key)), h("td", null, what)),
    );
    const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
    dialog.replaceChildren(h("h2", { id: "help-title" }, "Keys"), h("table", null, h("tbody", null, rows)), close);
    dialog.showModal();
  }

  /* --- lines and long pages ------------------------------------------------------------------------------------ */

  /* Select the next (1) or previous (-1) row with data-position after row `now`, and return its number. */
  function step(container, now, by) {
    const lines = [...container.querySelectorAll("tr[data-position]")];
    const next = Math.max(0, Math.min(lines.length - 1, now + by));
    lines.forEach((line, i) =>
      i === next ? line.setAttribute("aria-selected", "true") : line.removeAttribute("aria-selected"),
    );
    lines[next]?.scrollIntoView({ block: "nearest" });
    return lines.length ? next : -1;
  }

  /**
   * Return the keys of a page with lines: next, previous, details.
   * @param {string} noun
   * @param {() => { body: HTMLElement, selected: number }} current what is on the screen
   * @param {(position: number) => unknown} open
   * @returns {PageKey[]}
   */
  function lineKeys(noun, current, open) {
    const move = (by) => {
      const view = current();
      view.selected = step(view.body, view.selected, by);
    };
    const details = () => {
      if (current().selected >= 0) open(current().selected);
    };
    return [
      { key: "j", what: `next ${noun}`, action: () => move(1) },
      { key: "k", what: `previous ${noun}`, action: () => move(-1) },
      { key: "o", what: "open or close the details", action: details },
    ];
  }

  const afterFrame = (act) => requestAnimationFrame(() => setTimeout(act));

  const filling = new WeakMap(); // element -> the work that fills it

  /* Call slice(0) now, and one further slice in each of the next frames, up to `count`. Stop if the element is gone or
     is filled again. So a click is answered at once, even if the page is long. */
  function inTurn(element, count, slice) {
    filling.set(element, slice);
    const turn = (i) => {
      slice(i);
      element.setAttribute("aria-busy", String(i + 1 < count));
      if (i + 1 < count)
        afterFrame(() => {
          if (element.isConnected && filling.get(element) === slice) turn(i + 1);
        });
    };
    turn(0);
    return element;
  }

  /* Fill a list with `count` items made by `make(i)`. The first `size` items from `from` are made at once, the others
     later. Until then, empty items keep their places. */
  function fillInTurn(list, count, make, size, from = 0) {
    const items = Array.from({ length: count }, () => h("li"));
    const order = [...items.keys()];
    order.push(...order.splice(0, from));
    list.replaceChildren(...items);
    return inTurn(list, Math.ceil(count / size), (i) =>
      order.slice(i * size, (i + 1) * size).forEach((at) => items[at].replaceWith(make(at))),
    );
  }

  const GROUP = 12; // number of table rows that are drawn together

  /* Fill a table with rows made by `make(item, i)`, in groups. The first screen is filled at once, the rest later. */
  const fillTable = (table, items, make) =>
    inTurn(table, Math.ceil(items.length / GROUP), (i) =>
      table.append(
        h(
          "tbody",
          null,
          items.slice(i * GROUP, (i + 1) * GROUP).map((item, j) => make(item, i * GROUP + j)),
        ),
      ),
    );

  /* Replace an element by another. A large old element is only hidden at first. Call the returned function when the new
     element is filled. It removes the old element after the new one was shown. */
  function supplant(old, fresh) {
    if (old.getElementsByTagName("*").length < LARGE) {
      old.replaceWith(fresh);
      return () => {};
    }
    old.removeAttribute("id");
    old.classList.add("leaving");
    old.setAttribute("aria-busy", "true");
    old.before(fresh);
    return () => afterFrame(() => old.remove());
  }

  function download(name, text, type = "text/plain") {
    const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
    Object.assign(h("a", { download: name }), { href: url }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  /* --- the start ----------------------------------------------------------------------------------------------- */

  function start() {
    shell.tool("help-switch", "Keyboard help", HELP_ICON, help);
    document.body.append(h("dialog", { id: "help", "aria-labelledby": "help-title" }));
    document.addEventListener("keydown", press);
    file("site").promise.then((site) => {
      if (site.advice && !site.systems.length) home = "advice";
      byId("nav").append(
        ...[...added]
          .filter(([, made]) => made.label && (!made.when || made.when(site)))
          .map(([name, made]) => h("a", { href: link(name), "data-page": name }, made.label)),
      );
      byId("foot").textContent = site.foot;
    });
    window.addEventListener("hashchange", show);
    show();
  }

  document.addEventListener("DOMContentLoaded", start);

  return {
    h,
    svg,
    visible,
    named,
    data,
    load,
    page,
    link,
    go,
    set,
    change,
    help,
    lineKeys,
    afterFrame,
    fillInTurn,
    fillTable,
    supplant,
    download,
  };
})();

/* The parts that several pages draw alike: tables and their details, facts, chips, fields, switches, commands. */
"use strict";

const parts = (() => {
  const { h, visible, named, byId } = shell;

  /* --- notes to the person ------------------------------------------------------------------------------------- */

  let toastTimer = 0;

  function toast(text) {
    const element = byId("toast");
    element.textContent = text;
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => element.replaceChildren(), 2500);
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // no clipboard on some file:// pages
      const area = h("textarea", { class: "visually-hidden", value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    toast("Copied");
  }

  document.addEventListener("DOMContentLoaded", () =>
    document.body.append(h("div", { id: "toast", role: "status", "aria-live": "polite" })),
  );

  /* --- texts --------------------------------------------------------------------------------------------------- */

  /* Draw the head of a page. */
  const lede = (eyebrow, title, ...content) =>
    h("div", { class: "lede" }, h("p", { class: "eyebrow" }, eyebrow), h("h1", null, title), content);

  const section = (title, ...content) => h("section", { class: "section" }, h("h2", null, title), content);

  /* Draw a command with a button that copies it. */
  const command = (text) =>
    h(
      "div",
      { class: "command" },
      h("pre", null, h("code", null, visible(text))),
      h("button", { type: "button", onclick: () => copy(text) }, "Copy"),
    );

  /**
   * Draw facts as a list. A value that is a text is shown as a name from data.
   * @param {Fact[]} all
   */
  const facts = (all) =>
    h(
      "dl",
      { class: "facts" },
      all.map(({ name, value }) => [
        h("dt", null, visible(name)),
        h("dd", null, typeof value === "string" ? named(value) : value),
      ]),
    );

  /* Return facts of an object: its names and its values as texts. */
  /** @type {(values: Record<string, any>) => Fact[]} */
  const asFacts = (values) => Object.entries(values).map(([name, value]) => ({ name, value: String(value) }));

  /**
   * Draw the main figures of a page: each with a label and small notes.
   * @param {{ label: string, value: any, notes?: any[] }[]} all
   */
  const figures = (all) =>
    h(
      "dl",
      { class: "figures" },
      all.map(({ label, value, notes = [] }) =>
        h(
          "div",
          { class: "figure" },
          h("dt", null, label),
          h(
            "dd",
            null,
            value,
            notes.filter((note) => note !== null && note !== undefined).map((note) => h("small", null, note)),
          ),
        ),
      ),
    );

  /** @param {Chip} chip */
  const chip = ({ text, kind = "", title }) => h("span", { class: `chip ${kind}`, title }, text);

  /* --- tables -------------------------------------------------------------------------------------------------- */

  /* Wrap a table that may be wider than the screen, so that touch and the keyboard can scroll it. */
  const region = (label, table, kind = "") =>
    h("div", { class: `table-wrap ${kind}`, role: "region", tabindex: 0, "aria-label": visible(label) }, table);

  /** @param {TableColumn<any>} column */
  const cellClass = ({ num, kind }) => [num ? "num" : "", kind ?? ""].filter(Boolean).join(" ") || null;

  /** @param {TableColumn<any>[]} columns */
  const tableHead = (columns) =>
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        columns.map((column) => h("th", { scope: "col", class: cellClass(column) }, column.title)),
      ),
    );

  /**
   * @template Row
   * @param {TableColumn<Row>[]} columns
   * @param {Row} row
   * @param {number} position
   * @param {Record<string, any> | null} [attributes]
   */
  const tableRow = (columns, row, position, attributes = null) =>
    h(
      "tr",
      attributes,
      columns.map((column) => {
        const content = column.cell(row, position);
        if (content instanceof HTMLTableCellElement) return content;
        const scope = column.isHead ? "row" : null;
        return h(column.isHead ? "th" : "td", { scope, class: cellClass(column) }, content);
      }),
    );

  /**
   * Draw a table in a region that scrolls. Columns without any title have no head.
   * @template Row
   * @param {string} label
   * @param {TableColumn<Row>[]} columns
   * @param {Row[]} rows
   * @param {{ kind?: string, row?: Record<string, any> }} [classes] of the table, and the attributes of its rows
   */
  const table = (label, columns, rows, { kind, row: attributes } = {}) =>
    region(
      label,
      h(
        "table",
        { class: kind },
        columns.some(({ title }) => title) ? tableHead(columns) : null,
        h(
          "tbody",
          null,
          rows.map((row, i) => tableRow(columns, row, i, attributes)),
        ),
      ),
    );

  /* Draw the button that opens the details of a row. */
  const toggle = (name, action) =>
    h(
      "button",
      {
        type: "button",
        class: "plain toggle",
        "aria-expanded": "false",
        "aria-label": `Details of ${visible(name)}`,
        onclick: action,
      },
      "▸",
    );

  const detailsRow = (span, content) =>
    h("tr", { class: "details" }, h("td", { colspan: span }, h("div", { class: "details-inner" }, content)));

  /**
   * Open or close the details below a row. Return true if they are open now.
   * @param {HTMLElement} body contains the rows
   * @param {number} position of the row
   * @param {number} span number of columns
   * @param {(line: HTMLElement) => any} draw returns the content, or a promise of it
   */
  async function toggleDetails(body, position, span, draw) {
    const line = /** @type {HTMLElement | null} */ (body.querySelector(`tr[data-position="${position}"]`));
    const button = line?.querySelector(".toggle");
    if (!line || !button) return false; // the row is not drawn yet
    const isOpen = () => button.getAttribute("aria-expanded") === "true";
    const below = () => line.nextElementSibling?.classList.contains("details");
    button.setAttribute("aria-expanded", String(!isOpen()));
    if (below()) line.nextElementSibling?.remove();
    if (!isOpen()) return false;
    const content = await draw(line);
    if (isOpen() && !below()) line.after(detailsRow(span, content)); // otherwise it was closed or sorted meanwhile
    return isOpen();
  }

  /* --- fields -------------------------------------------------------------------------------------------------- */

  const field = (label, input, kind = "") => h("label", { class: `field ${kind}` }, h("span", null, label), input);

  /* Draw a field in which one searches. `change` gets the text. */
  const search = (label, placeholder, value, change) =>
    h("input", {
      type: "search",
      "aria-label": label,
      placeholder,
      value,
      oninput: (event) => change(event.target.value),
    });

  /**
   * Draw a select with its label.
   * @param {string} label
   * @param {Option[]} options
   * @param {string} chosen
   * @param {(value: string) => void} change
   */
  const select = (label, options, chosen, change) =>
    field(
      label,
      h(
        "select",
        { onchange: (event) => change(event.target.value) },
        options.map(({ value, label: text }) => h("option", { value, selected: value === chosen }, visible(text))),
      ),
    );

  /**
   * Draw a row of buttons. One of them is pressed.
   * @param {string} label
   * @param {Option[]} options
   * @param {string} chosen
   * @param {(value: string) => void} change
   */
  function segmented(label, options, chosen, change) {
    const group = h("div", { class: "segmented", role: "group", "aria-label": label });
    const draw = (now) =>
      group.replaceChildren(
        ...options.map(({ value, label: text }) =>
          h(
            "button",
            {
              type: "button",
              "aria-pressed": String(value === now),
              onclick: () => {
                draw(value);
                group.querySelectorAll("button")[options.findIndex((option) => option.value === value)].focus();
                change(value);
              },
            },
            text,
          ),
        ),
      );
    draw(chosen);
    return group;
  }

  /* Return options whose labels are their values. */
  const asOptions = (values) => values.map((value) => ({ value, label: value }));

  return {
    toast,
    copy,
    lede,
    section,
    command,
    facts,
    asFacts,
    figures,
    chip,
    region,
    table,
    toggle,
    toggleDetails,
    field,
    search,
    select,
    segmented,
    asOptions,
  };
})();

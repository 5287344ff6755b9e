/* The first page of the review: the name of the reviewer, and what is asked. */
"use strict";

/**
 * @param {HTMLElement} main
 * @param {Site} site
 * @param {{ post: Function, begin: (name: string) => void }} actions
 */
pages.reviewEnter = async (main, site, { post, begin }) => {
  const { h, visible } = pages;
  const { names } = (await post("names", {})).body;
  const kinds = site.kinds || [];

  const name = h("input", { type: "text", id: "name", maxlength: 60, autocomplete: "off", required: true });

  function enter(event) {
    event.preventDefault();
    const given = name.value.trim().normalize("NFC");
    if (given) begin(given);
  }

  const { field } = parts;
  const form = h(
    "form",
    { onsubmit: enter },
    field("Your name, which is saved with your verdicts", name),
    h("button", { type: "submit", class: "primary" }, "Begin"),
  );
  const known = names.length
    ? h(
        "p",
        { class: "row" },
        h("span", { class: "muted" }, "or continue as"),
        names.map((each) => h("button", { type: "button", onclick: () => begin(each) }, h("bdi", null, visible(each)))),
      )
    : null;
  const passages = [
    { name: "Accept", value: "The passage gives the answer, or a step of the reasoning that decides it." },
    { name: "Reject", value: "It does not, even if it shares many words with the question." },
  ];
  const isUnsurePossible = kinds.some(({ scale }) => scale.some(({ verdict }) => verdict === "unsure"));
  const facts = [
    ...(kinds.some((kind) => kind.name === "passage") ? passages : []),
    ...kinds
      .filter((kind) => kind.name !== "passage")
      .map((kind) => ({ name: kind.noun[0].toUpperCase() + kind.noun.slice(1), value: kind.task })),
    ...(isUnsurePossible ? [{ name: "Unsure", value: "You cannot decide. Write why, and continue." }] : []),
  ];
  main.replaceChildren(
    h(
      "div",
      { class: "enter" },
      h("h1", null, "Who reviews?"),
      h(
        "p",
        null,
        kinds.length === 1 && kinds[0].name === "passage"
          ? "You see a question with its answer, and one passage at a time."
          : "You see one item at a time.",
        " You do not see the opinions of models or other people.",
      ),
      parts.facts(facts),
      site.guideline
        ? h(
            "details",
            { class: "guideline panel", open: true },
            h("summary", null, "Guideline"),
            pages.guideline(site.guideline),
          )
        : null,
      form,
      known,
    ),
  );
  name.focus();
};

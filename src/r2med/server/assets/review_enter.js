/* The first page of the review: the name of the reviewer, the qualification, and what is asked. */
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
  const qualification = h("input", {
    type: "text",
    id: "qualification",
    maxlength: 60,
    autocomplete: "off",
    list: "qualifications",
  });
  const years = h("input", { type: "number", id: "years", min: 0, max: 80, step: 1, inputmode: "numeric" });

  async function introduce(event) {
    event.preventDefault();
    const given = name.value.trim().normalize("NFC");
    if (!given) return;
    const said = { qualification: qualification.value.trim(), years: years.value ? Number(years.value) : null };
    if (said.qualification || said.years !== null) await post("annotator", { name: given, ...said });
    begin(given);
  }

  const { field } = parts;
  const form = h(
    "form",
    { onsubmit: introduce },
    field("Your name, which is saved with your verdicts", name),
    h(
      "div",
      { class: "about-you" },
      field("Your qualification, such as physician (optional)", qualification),
      field("Years in it (optional)", years, "years"),
      h(
        "datalist",
        { id: "qualifications" },
        (site.qualifications || []).map((value) => h("option", { value: visible(value) })),
      ),
      h(
        "p",
        { class: "muted" },
        "Qualification and years are saved once, apart from your name. Only counts of them are published.",
      ),
    ),
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

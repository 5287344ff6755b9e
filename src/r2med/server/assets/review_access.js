/* Assistive technology: new items are announced, and one-key shortcuts can be turned off. */
"use strict";

/** @param {{ put: (key: string, text: string | null) => void, get: (key: string) => string | null }} storage */
pages.reviewAccess = ({ put, get }) => {
  const { h, visible } = pages;
  const KEYS = "r2med-review keys";
  const areKeysOn = () => get(KEYS) !== "off";
  const markKeys = (main) => main.classList.toggle("without-keys", !areKeysOn());

  /* Draw the switch of the shortcuts, which disturb people who dictate. Their choice stays in this browser. */
  function keySwitch(main) {
    const state = h("span", { "aria-hidden": "true" });
    const button = h(
      "button",
      {
        type: "button",
        class: "plain keys",
        role: "switch",
        onclick: () => {
          put(KEYS, areKeysOn() ? "off" : null);
          label();
        },
      },
      "Shortcuts",
      state,
    );
    function label() {
      button.setAttribute("aria-checked", String(areKeysOn()));
      state.textContent = areKeysOn() ? " on" : " off";
      markKeys(main);
    }
    label();
    return button;
  }

  /* The element must be there before its text, or screen readers do not notice the change. */
  const status = h("p", { id: "announced", class: "visually-hidden", role: "status", "aria-live": "polite" });
  document.body.append(status);

  /**
   * Say what the page shows now.
   * @param {ReviewPage} page
   * @param {ReviewAnswer} data
   */
  function announce({ kind, disputes }, { item, reviewed, open }) {
    if (!item) {
      status.textContent = disputes ? "Nothing to settle." : "Nothing is waiting for you.";
      return;
    }
    const text = item.sentences.length ? item.sentences[0].translation : item.main[item.main.length - 1].text;
    const start = text.length > 200 ? `${text.slice(0, 200)}…` : text;
    const place = disputes ? `${open} to settle` : item.verdict ? "reviewed before" : `${reviewed} reviewed so far`;
    const asked = kind.points.map((point) => point.text).join(" ");
    status.textContent = `New ${kind.noun}, ${place}: ${visible(start)} ${asked}`;
  }

  return { areKeysOn, keySwitch, markKeys, announce };
};

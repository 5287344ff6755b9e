/* The review page: it shows one candidate at a time and takes a verdict. Text from data is never used as HTML. */
"use strict";

(() => {
  const { h, visible } = board;
  const { readable } = marks;
  /** @type {[word: ReviewVerdict, key: string, label: string, done: string][]} */
  const VERDICTS = [
    ["accept", "a", "Accept", "Accepted"],
    ["unsure", "u", "Unsure", "Unsure"],
    ["reject", "r", "Reject", "Rejected"],
  ];
  /** @type {ReviewPage | null} */
  let shown = null; // the content of the page; null until the reviewer is known
  let busy = false;

  function notice(text) {
    if (shown) shown.notice.textContent = text;
  }

  const { storage, put, get, unsent, post, deliver } = board.reviewSending(notice);

  const draftKey = (page, token) => `r2med-review draft ${location.host} ${page.name} ${page.disputes} ${token}`;

  /* --- verdicts ------------------------------------------------------------------------------------------------ */

  /**
   * Run one action at a time. Keys are ignored while a verdict is being sent.
   * @param {(page: ReviewPage, data: ReviewAnswer) => Promise<unknown>} work
   */
  async function alone(work) {
    if (busy || !shown?.data) return;
    const page = shown;
    busy = true;
    setDisabled(page, true);
    try {
      await work(page, shown.data);
    } finally {
      busy = false;
      setDisabled(page, false);
    }
  }

  /** @type {(page: ReviewPage, disabled: boolean) => void} */
  function setDisabled(page, disabled) {
    for (const button of page.buttons) button.disabled = disabled;
  }

  /**
   * Send a verdict. Return true if it was saved.
   * @param {ReviewPage} page
   * @param {ReviewItem} item
   * @param {ReviewVerdict} verdict
   */
  async function said(page, item, verdict) {
    const comment = page.comment?.value.trim() ?? "";
    const { name, disputes } = page;
    const decision = { name, item: item.token, verdict, comment, seen: item.revision, disputes };
    const { status, body: answer } = await deliver(decision);
    if (status === 409) {
      Object.assign(item, { verdict: answer.verdict || null, revision: answer.revision });
      mark(page, item.verdict);
      notice(
        `Another tab saved this verdict: ${answer.verdict}${answer.comment ? `, “${visible(answer.comment)}”` : ""}. Give your verdict again to replace it.`,
      );
      return false;
    }
    if (status !== 200) {
      notice(`Not saved: ${visible(answer.detail)}`);
      return false;
    }
    put(draftKey(page, item.token), null);
    Object.assign(item, { verdict, comment, revision: answer.revision });
    return true;
  }

  const done = (verdict) => VERDICTS.find(([word]) => word === verdict)?.[3] ?? "";

  const decide = (verdict) =>
    alone(async (page, { item, on }) => {
      if (!item) return;
      const again = item.verdict !== null;
      const focused = page.buttons.findIndex((button) => button === document.activeElement);
      if (!(await said(page, item, verdict))) return;
      board.toast(done(verdict));
      await move(page, again && on ? { at: item.token, step: 1 } : {});
      if (focused >= 0) {
        setDisabled(page, false);
        page.buttons[focused]?.focus();
      }
    });

  /* Save the verdict again if its comment was changed. */
  const commented = () =>
    alone(async (page, { item }) => {
      if (item?.verdict && page.comment?.value.trim() !== item.comment && (await said(page, item, item.verdict)))
        board.toast("Comment saved");
    });

  const step = (by) =>
    alone(async (page, { item, back, on }) => {
      if (by < 0 ? back : on) await move(page, { at: item?.token || "", step: by });
    });

  /** @type {(page: ReviewPage, to: { at?: string, step?: number }) => Promise<void>} */
  async function move(page, { at = "", step: by = 0 }) {
    const { name, disputes } = page;
    const { status, body } = await post("view", { name, at, step: by, disputes });
    if (shown !== page) return; // another reviewer was chosen meanwhile
    if (status !== 200) throw new Error(body.detail);
    page.data = body;
    board.set({ name, at: body.item?.verdict ? body.item.token : "" });
    draw(page, body);
    window.scrollTo(0, 0);
  }

  /* --- the page ------------------------------------------------------------------------------------------------ */

  /** @type {(page: ReviewPage, verdict: ReviewVerdict | null) => void} */
  function mark(page, verdict) {
    page.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(VERDICTS[i][0] === verdict)));
  }

  const labelled = (label, text, kind) =>
    text
      ? h("section", null, h("h2", { class: "label" }, label), h("p", { class: `text ${kind}` }, readable(text)))
      : null;

  /** @param {ReviewItem} item */
  function provenance({ title, url, source }) {
    const parts = [
      title && readable(title),
      url && h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, visible(url)),
      source && visible(source),
    ].filter(Boolean);
    return h(
      "p",
      { class: "provenance" },
      parts.length ? parts.flatMap((part, i) => (i ? [" · ", part] : [part])) : "The source is not known.",
    );
  }

  /**
   * @param {ReviewPage} page
   * @param {ReviewAnswer} data
   */
  function bar(page, { reviewed, open, settled, alpha, annotators, back, on }) {
    const turn = (by, sign, label, may) =>
      h(
        "button",
        {
          type: "button",
          class: "plain turn",
          "aria-label": label,
          title: label,
          disabled: !may,
          onclick: () => step(by),
        },
        sign,
      );
    const count = page.disputes ? `${open} to settle · ${settled} settled` : `${reviewed} reviewed`;
    const [value, low, high] = (alpha || []).map((figure) => figure?.toFixed(2).replace("-", "−"));
    const interval = low ? ` [${low}, ${high}]` : "";
    const figure = alpha
      ? h("span", { class: "muted" }, `Agreement of ${annotators}: α ${value}${interval} over ${alpha[3]} passages`)
      : null;
    const leave = h(
      "button",
      {
        type: "button",
        class: "plain",
        onclick: () => {
          storage("tab", (kept) => kept.removeItem("r2med-review name"));
          location.hash = "#/review";
        },
      },
      "Change name",
    );
    return h(
      "div",
      { class: "desk-bar row spread" },
      h("span", null, h("b", null, h("bdi", null, visible(page.name))), ` · ${count}`),
      figure,
      h("span", { class: "row tools" }, leave, turn(-1, "‹", "Back (k)", back), turn(1, "›", "On (j)", on)),
    );
  }

  /** @param {NonNullable<ReviewItem["reviews"]>} reviews */
  function others(reviews) {
    return h(
      "section",
      { class: "others" },
      h("h2", { class: "label" }, "Verdicts so far"),
      h(
        "ul",
        { class: "said" },
        reviews.map(({ verdict, comment }) =>
          h(
            "li",
            null,
            h("b", { class: `is-${verdict}` }, done(verdict)),
            h("span", { class: "text" }, readable(comment) || h("span", { class: "muted" }, "no comment")),
          ),
        ),
      ),
    );
  }

  /** @type {(page: ReviewPage, item: ReviewItem) => HTMLTextAreaElement} */
  const commentField = (page, item) =>
    h("textarea", {
      id: "comment",
      maxlength: 5000,
      placeholder: "The reason, if it is not obvious",
      value: get(draftKey(page, item.token)) ?? item.comment,
      oninput: (event) => put(draftKey(page, item.token), event.target.value),
      onchange: commented,
    });

  /* Draw the question and its answer. On small screens the reasoning is folded. */
  function asked(item) {
    const isWide = window.matchMedia("(min-width: 60rem)").matches;
    return h(
      "div",
      { class: "asked" },
      labelled("Question", item.query, "question"),
      labelled("Answer", item.answer, "answer"),
      item.reasoning
        ? h(
            "details",
            { class: "reasoning", open: isWide },
            h("summary", { class: "label" }, "Reasoning"),
            h("p", { class: "text" }, readable(item.reasoning)),
          )
        : null,
    );
  }

  /** @type {(page: ReviewPage, item: ReviewItem) => HTMLElement} */
  function passage(page, item) {
    const title = page.disputes ? "The passage they disagree about" : "Is this passage evidence for the answer?";
    const frozen =
      "You have seen that others disagree with you here. A new verdict settles this. Your first verdict is kept.";
    return h(
      "div",
      { class: "shown" },
      h(
        "section",
        { class: "panel passage" },
        h("h2", { class: "label" }, title),
        h("p", { class: "text" }, readable(item.passage)),
        provenance(item),
      ),
      item.reviews ? others(item.reviews) : null,
      item.frozen ? h("p", { class: "muted frozen" }, frozen) : null,
      h(
        "div",
        { class: "comment" },
        h("label", { class: "label", for: "comment" }, "Comment ", h("kbd", null, "/")),
        page.comment,
      ),
    );
  }

  /** @type {(page: ReviewPage, data: ReviewAnswer) => void} */
  function draw(page, data) {
    const { item } = data;
    const heading = h("h1", { class: "visually-hidden" }, page.disputes ? "Disagreements" : "Review");
    page.notice = h("p", { class: "notice", role: "alert" });
    if (!item) {
      page.buttons = [];
      page.main.replaceChildren(heading, bar(page, data), nothing(page));
      return;
    }
    page.comment = commentField(page, item);
    page.buttons = VERDICTS.map(([word, key, label]) =>
      h("button", { type: "button", class: word, onclick: () => decide(word) }, label, h("kbd", null, key)),
    );
    mark(page, item.verdict);
    const verdicts = h("div", { class: "verdict-row", role: "group", "aria-label": "Verdict" }, page.buttons);
    page.main.replaceChildren(
      heading,
      bar(page, data),
      h(
        "div",
        { class: "desk" },
        asked(item),
        passage(page, item),
        h("div", { class: "verdicts" }, page.notice, verdicts),
      ),
    );
  }

  /** @param {ReviewPage} page */
  function nothing(page) {
    return h(
      "div",
      { class: "done" },
      h("h2", null, page.disputes ? "Nothing to settle." : "Nothing is waiting for you."),
      h(
        "p",
        null,
        page.disputes
          ? "There are no disagreements about passages that you may see."
          : "All your verdicts are saved. Go back with k to change one.",
      ),
    );
  }

  async function enter(main) {
    shown = null;
    const { names } = (await post("names", {})).body;
    const begin = (name) => {
      storage("tab", (kept) => kept.setItem("r2med-review name", name));
      board.go("review", { name });
    };
    const input = h("input", { type: "text", id: "name", maxlength: 60, autocomplete: "off", required: true });
    const form = h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          if (input.value.trim()) begin(input.value.trim().normalize("NFC"));
        },
      },
      h("label", { class: "field" }, h("span", null, "Your name, which is saved with your verdicts"), input),
      h("button", { type: "submit", class: "primary" }, "Begin"),
    );
    const known = names.length
      ? h(
          "p",
          { class: "row" },
          h("span", { class: "muted" }, "or continue as"),
          names.map((name) =>
            h("button", { type: "button", onclick: () => begin(name) }, h("bdi", null, visible(name))),
          ),
        )
      : null;
    main.replaceChildren(
      h(
        "div",
        { class: "enter" },
        h("h1", null, "Who reviews?"),
        h(
          "p",
          null,
          "You see a question with its answer, and one passage at a time. You do not see the opinions of models or other people.",
        ),
        h(
          "dl",
          { class: "facts" },
          h("dt", null, "Accept"),
          h("dd", null, "The passage gives the answer, or a step of the reasoning that decides it."),
          h("dt", null, "Reject"),
          h("dd", null, "It does not, even if it shares many words with the question."),
          h("dt", null, "Unsure"),
          h("dd", null, "You cannot decide. Write why, and continue."),
        ),
        form,
        known,
      ),
    );
    input.focus();
  }

  async function show(disputes, main, params) {
    const name = params.get("name") || storage("tab", (kept) => kept.getItem("r2med-review name"));
    if (!name) {
      await enter(main);
      return;
    }
    storage("tab", (kept) => kept.setItem("r2med-review name", name));
    const page = (shown = {
      name,
      disputes,
      main,
      data: null,
      buttons: [],
      comment: null,
      notice: h("p", { class: "notice", role: "alert" }),
    });
    main.replaceChildren(page.notice);
    for (const key of unsent(name)) {
      await deliver(JSON.parse(get(key)));
    }
    await move(page, { at: params.get("at") || "" });
  }

  /** @type {NonNullable<Page["keys"]>} */
  const keys = [
    ...VERDICTS.map(([word, key, label]) => /** @type {PageKey} */ ([key, label.toLowerCase(), () => decide(word)])),
    ["j", "on", () => step(1)],
    ["k", "back to your earlier verdicts", () => step(-1)],
    ["/", "write a comment; Escape leaves it", () => shown?.comment?.focus()],
  ];
  board.page("review", { title: "Review", label: "Review", keys, show: (main, params) => show(false, main, params) });
  board.page("disagreements", {
    title: "Disagreements",
    label: "Disagreements",
    keys,
    show: (main, params) => show(true, main, params),
  });
})();

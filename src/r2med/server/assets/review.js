/* Review: one candidate at a time, a verdict, the next. A verdict is kept in this browser until the server has it on
   its disk; so is a comment that is being written. Text from data goes in as text, never as HTML. */
"use strict";

(() => {
  const { h, visible } = board;
  const { readable } = marks;
  const VERDICTS = [
    ["accept", "a", "Accept", "Accepted"],
    ["unsure", "u", "Unsure", "Unsure"],
    ["reject", "r", "Reject", "Rejected"],
  ];
  const PAUSE = 1000; // milliseconds between two attempts
  let shown = null; // {name, disputes, main, data, buttons, comment, notice}: what is on the page
  let busy = false;

  /* --- what is kept in this browser ---------------------------------------------------------------------------- */

  function storage(kind, change) {
    try {
      return change(kind === "tab" ? sessionStorage : localStorage);
    } catch {
      return null;
    } // forbidden, perhaps
  }

  const draftKey = (token) => `r2med-review draft ${location.host} ${shown.name} ${shown.disputes} ${token}`;
  const unsentKey = (name) => `r2med-review unsent ${location.host} ${name} `;
  const put = (key, text) =>
    storage("browser", (kept) => (text === null ? kept.removeItem(key) : kept.setItem(key, text)));
  const get = (key) => storage("browser", (kept) => kept.getItem(key));
  const unsent = (name) =>
    storage("browser", (kept) => Object.keys(kept).filter((key) => key.startsWith(unsentKey(name)))) || [];

  /* --- the server ---------------------------------------------------------------------------------------------- */

  const later = () =>
    new Promise((resolve) => {
      setTimeout(resolve, PAUSE);
    });

  function notice(text) {
    if (shown?.notice) shown.notice.textContent = text;
  }

  /* Send until the server answers; it may have crashed, and be started again. */
  async function post(path, body) {
    for (;;) {
      const answer = await fetch(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      })
        .then(async (response) => ({ status: response.status, body: await response.json() }))
        .catch(() => null);
      if (answer && answer.status < 500) {
        notice("");
        return answer;
      }
      notice("The server does not answer. Nothing is lost: your verdict is kept here and sent as soon as it does.");
      await later();
    }
  }

  /* Return the answer to a verdict; until there is one, it outlives this page. */
  async function deliver(body) {
    const key = unsentKey(body.name) + body.item + body.disputes;
    put(key, JSON.stringify(body));
    const answer = await post("decide", body);
    put(key, null);
    return answer;
  }

  /* --- verdicts ------------------------------------------------------------------------------------------------ */

  /* Run one thing at a time: a key pressed while a verdict is on its way means nothing. */
  async function alone(work) {
    if (busy || !shown?.data) return;
    busy = true;
    shown.buttons.forEach((button) => {
      button.disabled = true;
    });
    try {
      await work();
    } finally {
      busy = false;
      shown.buttons.forEach((button) => {
        button.disabled = false;
      });
    }
  }

  async function said(verdict) {
    const { item } = shown.data;
    const comment = shown.comment.value.trim();
    const body = {
      name: shown.name,
      item: item.token,
      verdict,
      comment,
      seen: item.revision,
      disputes: shown.disputes,
    };
    const { status, body: answer } = await deliver(body);
    if (status === 409) {
      Object.assign(item, { verdict: answer.verdict || null, revision: answer.revision });
      mark(item.verdict);
      notice(
        `In another tab this was said already: ${answer.verdict}${answer.comment ? `, “${visible(answer.comment)}”` : ""}. Say it again to replace that.`,
      );
      return false;
    }
    if (status !== 200) {
      notice(`Not saved: ${visible(answer.detail)}`);
      return false;
    }
    put(draftKey(item.token), null);
    Object.assign(item, { verdict, comment, revision: answer.revision });
    return true;
  }

  const decide = (verdict) =>
    alone(async () => {
      if (!shown.data.item) return;
      const again = shown.data.item.verdict !== null;
      const focused = shown.buttons.indexOf(document.activeElement);
      if (!(await said(verdict))) return;
      board.toast(VERDICTS.find(([word]) => word === verdict)[3]);
      await move(again && shown.data.on ? { at: shown.data.item.token, step: 1 } : {});
      if (focused >= 0) {
        shown.buttons.forEach((button) => {
          button.disabled = false;
        });
        shown.buttons[focused]?.focus();
      }
    });

  /* A comment that is changed after the verdict is saved with it. */
  const commented = () =>
    alone(async () => {
      const { item } = shown.data;
      if (item?.verdict && shown.comment.value.trim() !== item.comment && (await said(item.verdict)))
        board.toast("Comment saved");
    });

  const step = (by) =>
    alone(async () => {
      const { item, back, on } = shown.data;
      if (by < 0 ? back : on) await move({ at: item?.token || "", step: by });
    });

  async function move({ at = "", step: by = 0 }) {
    const { status, body } = await post("view", { name: shown.name, at, step: by, disputes: shown.disputes });
    if (status !== 200) throw new Error(body.detail);
    shown.data = body;
    const going = body.item?.verdict ? body.item.token : "";
    board.set({ name: shown.name, at: going });
    draw();
    window.scrollTo(0, 0);
  }

  /* --- the page ------------------------------------------------------------------------------------------------ */

  function mark(verdict) {
    shown.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(VERDICTS[i][0] === verdict)));
  }

  const labelled = (label, text, kind) =>
    text
      ? h("section", null, h("h2", { class: "label" }, label), h("p", { class: `text ${kind}` }, readable(text)))
      : null;

  function provenance({ title, url, source }) {
    const parts = [
      title && readable(title),
      url && h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, visible(url)),
      source && visible(source),
    ].filter(Boolean);
    return h(
      "p",
      { class: "provenance" },
      parts.length ? parts.flatMap((part, i) => (i ? [" · ", part] : [part])) : "No source is known.",
    );
  }

  function bar({ reviewed, open, settled, alpha, annotators, back, on }) {
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
    const count = shown.disputes ? `${open} to settle · ${settled} settled` : `${reviewed} reviewed`;
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
      h("span", null, h("b", null, h("bdi", null, visible(shown.name))), ` · ${count}`),
      figure,
      h("span", { class: "row tools" }, leave, turn(-1, "‹", "Back (k)", back), turn(1, "›", "On (j)", on)),
    );
  }

  function others(reviews) {
    return h(
      "section",
      { class: "others" },
      h("h2", { class: "label" }, "What was said"),
      h(
        "ul",
        { class: "said" },
        reviews.map(({ verdict, comment }) =>
          h(
            "li",
            null,
            h("b", { class: `is-${verdict}` }, VERDICTS.find(([word]) => word === verdict)[3]),
            h("span", { class: "text" }, readable(comment) || h("span", { class: "muted" }, "no comment")),
          ),
        ),
      ),
    );
  }

  function draw() {
    const { item } = shown.data;
    const { main, disputes } = shown;
    const heading = h("h1", { class: "visually-hidden" }, disputes ? "Disagreements" : "Review");
    shown.notice = h("p", { class: "notice", role: "alert" });
    if (!item) {
      shown.buttons = [];
      main.replaceChildren(heading, bar(shown.data), nothing());
      return;
    }
    const wide = window.matchMedia("(min-width: 60rem)").matches;
    shown.comment = h("textarea", {
      id: "comment",
      maxlength: 5000,
      placeholder: "Why, if it is not plain",
      value: get(draftKey(item.token)) ?? item.comment,
      oninput: (event) => put(draftKey(item.token), event.target.value),
      onchange: commented,
    });
    shown.buttons = VERDICTS.map(([word, key, label]) =>
      h("button", { type: "button", class: word, onclick: () => decide(word) }, label, h("kbd", null, key)),
    );
    mark(item.verdict);
    const reasoning = item.reasoning
      ? h(
          "details",
          { class: "reasoning", open: wide },
          h("summary", { class: "label" }, "Reasoning"),
          h("p", { class: "text" }, readable(item.reasoning)),
        )
      : null;
    main.replaceChildren(
      heading,
      bar(shown.data),
      h(
        "div",
        { class: "desk" },
        h(
          "div",
          { class: "asked" },
          labelled("Question", item.query, "question"),
          labelled("Answer", item.answer, "answer"),
          reasoning,
        ),
        h(
          "div",
          { class: "shown" },
          h(
            "section",
            { class: "panel passage" },
            h(
              "h2",
              { class: "label" },
              disputes ? "The passage they disagree about" : "Is this passage evidence for the answer?",
            ),
            h("p", { class: "text" }, readable(item.passage)),
            provenance(item),
          ),
          item.reviews ? others(item.reviews) : null,
          item.frozen
            ? h(
                "p",
                { class: "muted frozen" },
                "You have seen that others disagree with you here. Another verdict settles it; your first one is kept.",
              )
            : null,
          h(
            "div",
            { class: "comment" },
            h("label", { class: "label", for: "comment" }, "Comment ", h("kbd", null, "/")),
            shown.comment,
          ),
        ),
        h(
          "div",
          { class: "verdicts" },
          shown.notice,
          h("div", { class: "verdict-row", role: "group", "aria-label": "Verdict" }, shown.buttons),
        ),
      ),
    );
  }

  function nothing() {
    return h(
      "div",
      { class: "done" },
      h("h2", null, shown.disputes ? "Nothing to settle." : "Nothing is waiting for you."),
      h(
        "p",
        null,
        shown.disputes
          ? "Nobody disagrees about a passage that you may see."
          : "Every verdict you gave is saved. You may go back with k and change your mind.",
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
      h("label", { class: "field" }, h("span", null, "Your name, as it will stand beside your verdicts"), input),
      h("button", { type: "submit", class: "primary" }, "Begin"),
    );
    const known = names.length
      ? h(
          "p",
          { class: "row" },
          h("span", { class: "muted" }, "or go on as"),
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
          "You are shown a question with its answer, and one passage at a time. Nobody’s opinion is shown, neither a model’s nor another person’s.",
        ),
        h(
          "dl",
          { class: "facts" },
          h("dt", null, "Accept"),
          h("dd", null, "The passage gives the answer, or a step of the reasoning that decides it."),
          h("dt", null, "Reject"),
          h("dd", null, "It does not, however many words it shares with the question."),
          h("dt", null, "Unsure"),
          h("dd", null, "You cannot tell. Say why, and go on."),
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
    shown = {
      name,
      disputes,
      main,
      data: null,
      buttons: [],
      comment: null,
      notice: h("p", { class: "notice", role: "alert" }),
    };
    main.replaceChildren(shown.notice);
    for (const key of unsent(name)) {
      await deliver(JSON.parse(get(key)));
    }
    await move({ at: params.get("at") || "" });
  }

  /** @type {Page["keys"]} */
  const keys = [
    ...VERDICTS.map(
      ([word, key, label]) => /** @type {Page["keys"][0]} */ ([key, label.toLowerCase(), () => decide(word)]),
    ),
    ["j", "on", () => step(1)],
    ["k", "back to what you said", () => step(-1)],
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

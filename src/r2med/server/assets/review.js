/* The review page: it shows one item at a time and takes a verdict, or an answer to each of several points. Text from
   data is never used as HTML. */
"use strict";

(() => {
  const { h, visible } = pages;
  const { readable } = marks;
  const { isSeveral, plural, described, done, agreement } = pages.reviewReplies;
  const { asked, texts, provenance } = pages.reviewTexts;
  /** @type {ReviewPage | null} */
  let shown = null; // the content of the page; null until the reviewer is known
  let busy = false;
  let isGuidelineOpen = false;

  function notice(text) {
    if (shown) shown.notice.textContent = text;
  }

  const { storage, put, get, unsent, post, deliver } = pages.reviewSending(notice);

  const { areKeysOn, keySwitch, markKeys, announce } = pages.reviewAccess({ put, get });

  const draftKey = (page, token) => `r2med-review draft ${location.host} ${page.name} ${page.disputes} ${token}`;
  const correctionKey = (page, token) => `${draftKey(page, token)} correction`;
  const repliesKey = (page, token) => `${draftKey(page, token)} replies`;

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
   * Send the answers of the page. Return true if they were saved.
   * @param {ReviewPage} page
   * @param {ReviewItem} item
   */
  async function send(page, item) {
    const comment = page.comment?.value.trim() ?? "";
    const { name, disputes, kind, replies } = page;
    const verdict = kind.scale.find(({ word }) => word === replies[kind.points[0].name])?.verdict;
    const said = { answers: replies, comment, correction: corrected(page, item) };
    const decision = { name, kind: kind.name, item: item.token, ...said, seen: item.revision, disputes };
    const { status, body: answer } = await deliver(decision);
    put(repliesKey(page, item.token), null);
    if (status === 409) {
      const answers = answer.answers ?? {};
      const { correction = "" } = answer;
      Object.assign(item, { verdict: answer.verdict || null, answers, correction, revision: answer.revision });
      mark(page, { ...answers });
      const words = described(page, answers).toLowerCase();
      notice(
        `Another tab saved this verdict: ${words}${answer.comment ? `, “${visible(answer.comment)}”` : ""}${correction ? `, with the text “${visible(correction)}”` : ""}. Give your verdict again to replace it.`,
      );
      return false;
    }
    if (status !== 200) {
      if (!isSeveral(page)) mark(page, { ...item.answers });
      notice(`Not saved: ${visible(answer.detail)}`);
      return false;
    }
    put(draftKey(page, item.token), null);
    put(correctionKey(page, item.token), null);
    Object.assign(item, { verdict: verdict ?? "accept", ...said, revision: answer.revision });
    return true;
  }

  /**
   * Answer a point, or the current one. The item is sent when all points are answered.
   * @param {ReviewReply} reply
   * @param {string} [point]
   */
  const decide = (reply, point) =>
    alone(async (page, { item, on }) => {
      if (!item) return;
      const again = item.verdict !== null;
      const focused = page.buttons.findIndex((button) => button === document.activeElement);
      const { points } = page.kind;
      const at = points.findIndex(({ name }) => name === (point ?? page.current));
      mark(page, { ...page.replies, [points[at].name]: reply });
      if (isSeveral(page)) {
        put(repliesKey(page, item.token), JSON.stringify(page.replies));
        const later = [...points.slice(at + 1), ...points.slice(0, at)];
        const next = again ? points[at + 1] : later.find(({ name }) => !page.replies[name]);
        setCurrent(page, (next ?? points[0]).name);
        if (!again && next) {
          refocus(page, focused, points.indexOf(next));
          return;
        }
      }
      if (!(await send(page, item))) return;
      parts.toast(done(page, item.verdict, page.replies));
      if (again && isSeveral(page)) {
        refocus(
          page,
          focused,
          points.findIndex(({ name }) => name === page.current),
        );
        return;
      }
      await move(page, again && on ? { at: item.token, step: 1 } : {});
      refocus(page, focused, 0);
    });

  /* Focus the same answer of a point if an answer had the focus before. Disabled buttons lose it. */
  function refocus(page, focused, point) {
    if (focused < 0) return;
    setDisabled(page, false);
    const { length } = page.kind.scale;
    page.buttons[point * length + (focused % length)]?.focus();
  }

  /* Save the verdict again if its comment or its correction was changed. */
  const commented = () =>
    alone(async (page, { item }) => {
      if (!item?.verdict) return;
      const isCorrected = corrected(page, item) !== item.correction;
      if (!isCorrected && page.comment?.value.trim() === item.comment) return;
      page.replies = { ...item.answers };
      if (await send(page, item)) parts.toast(isCorrected ? "Correction saved" : "Comment saved");
    });

  /* Return the corrected text; empty if it is the text of the item. */
  function corrected(page, item) {
    const text = page.correction?.value.trim() ?? "";
    return text === item.correctable?.text.trim() ? "" : text;
  }

  const step = (by) =>
    alone(async (page, { item, back, on }) => {
      if (by < 0 ? back : on) await move(page, { at: item?.token || "", step: by });
    });

  /** @type {(page: ReviewPage, to: { at?: string, step?: number }) => Promise<void>} */
  async function move(page, { at = "", step: by = 0 }) {
    const { name, disputes, kind } = page;
    const { status, body } = await post("view", { name, kind: kind.name, at, step: by, disputes });
    if (shown !== page) return; // another reviewer was chosen meanwhile
    if (status !== 200) throw new Error(body.detail);
    page.data = body;
    pages.set({ name, at: body.item?.verdict ? body.item.token : "" });
    draw(page, body);
    page.main.querySelector(".kinds [aria-pressed='true']")?.scrollIntoView({ inline: "center" }); // on a phone
    window.scrollTo(0, 0);
  }

  /* --- the page ------------------------------------------------------------------------------------------------ */

  /** @type {(page: ReviewPage, replies: ReviewReplies) => void} */
  function mark(page, replies) {
    page.replies = replies;
    page.buttons.forEach((button) =>
      button.setAttribute("aria-pressed", String(replies[button.dataset.point ?? ""] === button.dataset.reply)),
    );
  }

  /** @type {(page: ReviewPage, point: string) => void} */
  function setCurrent(page, point) {
    page.current = point;
    for (const row of page.rows) row.classList.toggle("current", row.dataset.point === point);
  }

  /**
   * @param {ReviewPage} page
   * @param {ReviewAnswer} data
   */
  function bar(page, { reviewed, finished, open, settled, alpha, annotators, back, on }) {
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
    const mine = finished === undefined ? `${reviewed} reviewed` : `${reviewed} reviewed · ${finished} finished`;
    const count = page.disputes ? `${open} to settle · ${settled} settled` : mine;
    const isKnown = Object.keys(alpha ?? {}).length > 0;
    const figure = isKnown
      ? h("span", { class: "muted" }, `Agreement of ${annotators}: ${agreement(page, alpha ?? {})}`)
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
      h(
        "span",
        { class: "row tools" },
        keySwitch(page.main),
        leave,
        turn(-1, "‹", "Back (k)", back),
        turn(1, "›", "On (j)", on),
      ),
    );
  }

  /* Draw the choice of a kind. */
  function kinds(page) {
    const all = page.site.kinds;
    if (all.length < 2) return null;
    const options = all.map((kind) => ({
      value: kind.name,
      label: plural(kind)[0].toUpperCase() + plural(kind).slice(1),
    }));
    const change = (kind) => pages.go(page.disputes ? "disagreements" : "review", { name: page.name, kind });
    const group = parts.segmented("What to review", options, page.kind.name, change);
    group.classList.add("kinds");
    return group;
  }

  function guideline(page) {
    if (!page.site.guideline) return null;
    const fold = h(
      "details",
      { class: "guideline panel", open: isGuidelineOpen },
      h("summary", null, "Guideline ", h("kbd", null, "g")),
      pages.guideline(page.site.guideline),
    );
    fold.addEventListener("toggle", () => {
      isGuidelineOpen = fold.open;
    });
    return fold;
  }

  /** @type {(page: ReviewPage, reviews: NonNullable<ReviewItem["reviews"]>) => HTMLElement} */
  function others(page, reviews) {
    return h(
      "section",
      { class: "others" },
      h("h2", { class: "label" }, "Verdicts so far"),
      h(
        "ul",
        { class: "said" },
        reviews.map(({ verdict, answers, comment, correction }) =>
          h(
            "li",
            { class: isSeveral(page) ? "points" : null },
            isSeveral(page)
              ? h("span", null, described(page, answers))
              : h("b", { class: `is-${verdict}` }, done(page, verdict, answers)),
            h("span", { class: "text" }, readable(comment) || h("span", { class: "muted" }, "no comment")),
            correction ? proposal(page, correction) : null,
          ),
        ),
      ),
    );
  }

  /* Draw a text that somebody corrected, with a button that takes it over. */
  function proposal(page, text) {
    const take = () => {
      page.correction.value = text;
      page.correction.dispatchEvent(new Event("input"));
      page.correction.closest("details").open = true;
      page.correction.focus();
    };
    return h(
      "div",
      { class: "proposal" },
      h("p", { class: "text", dir: "auto" }, h("span", { class: "muted" }, "Corrected: "), readable(text)),
      h("button", { type: "button", onclick: take }, "Use this text"),
    );
  }

  /* Draw the field in which a person corrects the text. It is closed until somebody needs it. */
  function correctionField(page, item) {
    const draft = get(correctionKey(page, item.token));
    page.correction = h("textarea", {
      id: "correction",
      dir: "auto",
      maxlength: 20000,
      value: draft ?? (item.correction || item.correctable.text),
      oninput: (event) => put(correctionKey(page, item.token), event.target.value),
      onchange: commented,
    });
    return h(
      "details",
      { class: "comment correction", open: Boolean(draft ?? item.correction) },
      h("summary", { class: "label" }, "Correct the text"),
      h(
        "label",
        { class: "muted", for: "correction" },
        "The original is kept. Your answers are about the corrected text.",
      ),
      page.correction,
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

  /** @type {(page: ReviewPage, item: ReviewItem) => HTMLElement} */
  function reviewed(page, item) {
    const question = isSeveral(page) ? page.kind.task : page.kind.points[0].text;
    const title = page.disputes ? `The ${page.kind.noun} they disagree about` : question;
    const frozen =
      "You have seen that others disagree with you here. A new verdict settles this. Your first verdict is kept.";
    return h(
      "div",
      { class: "shown" },
      h(
        "section",
        { class: "panel passage" },
        h("h2", { class: "label" }, title),
        texts(item),
        item.origin ? provenance(item.origin) : null,
      ),
      item.reviews ? others(page, item.reviews) : null,
      item.frozen ? h("p", { class: "muted frozen" }, frozen) : null,
      item.correctable ? correctionField(page, item) : null,
      h(
        "div",
        { class: "comment" },
        h("label", { class: "label", for: "comment" }, "Comment ", h("kbd", null, "/")),
        page.comment,
      ),
    );
  }

  /* Draw the buttons of one point. A kind with several points shows the question beside them. */
  function pointRow(page, { name, text }) {
    const buttons = page.kind.scale.map(({ word, label, key, verdict }) =>
      h(
        "button",
        { type: "button", class: verdict, "data-point": name, "data-reply": word, onclick: () => decide(word, name) },
        label,
        h("kbd", null, key),
      ),
    );
    page.buttons.push(...buttons);
    const label = isSeveral(page) ? text : "Verdict";
    const columns = buttons.length > 3 ? "verdict-row four" : "verdict-row";
    const group = h("div", { class: columns, role: "group", "aria-label": label }, buttons);
    return isSeveral(page) ? h("div", { class: "point", "data-point": name }, h("p", null, text), group) : group;
  }

  /* Return the answers to show: those that are saved, and over them those that this browser keeps. */
  function startingReplies(page, item) {
    const draft = isSeveral(page) ? get(repliesKey(page, item.token)) : null;
    return { ...item.answers, ...(draft ? JSON.parse(draft) : {}) };
  }

  /** @type {(page: ReviewPage, data: ReviewAnswer) => void} */
  function draw(page, data) {
    const { item } = data;
    const heading = h("h1", { class: "visually-hidden" }, page.disputes ? "Disagreements" : "Review");
    page.notice = h("p", { class: "notice", role: "alert" });
    page.buttons = [];
    page.correction = null;
    markKeys(page.main);
    announce(page, data);
    const top = [heading, kinds(page), bar(page, data), guideline(page)].filter((part) => part !== null);
    if (!item) {
      page.main.replaceChildren(...top, nothing(page, data));
      return;
    }
    page.comment = commentField(page, item);
    page.rows = page.kind.points.map((point) => pointRow(page, point));
    mark(page, startingReplies(page, item));
    setCurrent(page, (page.kind.points.find(({ name }) => !page.replies[name]) ?? page.kind.points[0]).name);
    const isBeside = item.beside.length > 0 && !item.sentences.length;
    page.main.replaceChildren(
      ...top,
      h(
        "div",
        { class: isBeside ? "desk" : "desk alone" },
        isBeside ? asked(item) : null,
        reviewed(page, item),
        h("div", { class: isSeveral(page) ? "verdicts several" : "verdicts" }, page.notice, page.rows),
      ),
    );
  }

  /** @type {(page: ReviewPage, data: ReviewAnswer) => HTMLElement} */
  function nothing(page, { finished }) {
    const others = finished === undefined ? "" : " All other items have enough reviewers.";
    return h(
      "div",
      { class: "done" },
      h("h2", null, page.disputes ? "Nothing to settle." : "Nothing is waiting for you."),
      h(
        "p",
        null,
        page.disputes
          ? `There are no disagreements about ${plural(page.kind)} that you may see.`
          : `All your verdicts are saved. Go back with k to change one.${others}`,
      ),
    );
  }

  async function enter(main, site) {
    shown = null;
    const begin = (name) => {
      storage("tab", (kept) => kept.setItem("r2med-review name", name));
      pages.go("review", { name });
    };
    await pages.reviewEnter(main, site, { post, begin });
  }

  /* Return the kind of the address, else the one that this tab showed last, else the first. */
  function chosenKind(params, site) {
    const wanted = params.get("kind") || storage("tab", (kept) => kept.getItem("r2med-review kind"));
    const kind = site.kinds.find(({ name }) => name === wanted) ?? site.kinds[0];
    storage("tab", (kept) => kept.setItem("r2med-review kind", kind.name));
    return kind;
  }

  async function show(disputes, main, params, site) {
    const name = params.get("name") || storage("tab", (kept) => kept.getItem("r2med-review name"));
    if (!name) {
      await enter(main, site);
      return;
    }
    storage("tab", (kept) => kept.setItem("r2med-review name", name));
    const page = (shown = {
      name,
      disputes,
      main,
      site,
      kind: chosenKind(params, site),
      data: null,
      replies: {},
      current: "",
      buttons: [],
      rows: [],
      comment: null,
      correction: null,
      notice: h("p", { class: "notice", role: "alert" }),
    });
    main.replaceChildren(page.notice);
    for (const key of unsent(name)) {
      await deliver(JSON.parse(get(key)));
    }
    await move(page, { at: params.get("at") || "" });
  }

  function toggleGuideline() {
    const fold = /** @type {HTMLDetailsElement | null} */ (document.querySelector("main .guideline"));
    if (fold) fold.open = !fold.open;
  }

  /**
   * Return the keys of the page: those of the scale, and those of all kinds.
   * @returns {NonNullable<Page["keys"]>}
   */
  const keysNow = () => [
    ...(shown?.kind.scale ?? []).map(({ key, label, word }) => ({
      key,
      what: label.toLowerCase(),
      action: () => decide(word),
    })),
    { key: "j", what: "on", action: () => step(1) },
    { key: "k", what: "back to your earlier verdicts", action: () => step(-1) },
    { key: "g", what: "open or close the guideline", action: () => toggleGuideline() },
    { key: "/", what: "write a comment; Escape leaves it", action: () => shown?.comment?.focus() },
  ];
  for (const { name, title, disputes } of [
    { name: "review", title: "Review", disputes: false },
    { name: "disagreements", title: "Disagreements", disputes: true },
  ])
    pages.page(name, {
      title,
      label: title,
      get keys() {
        return areKeysOn() ? keysNow() : null;
      },
      show: (main, params, site) => show(disputes, main, params, site),
    });
})();

/* The search page: a question, the passages of one or two systems, the texts of their LLMs, the cost of each stage.
   It is one page in the frame of all pages. */
"use strict";

(() => {
  const { h, visible, named } = shell;
  const { count, counted, seconds, dollars } = formats;
  /** @type {(id: string) => any} */
  const $ = shell.byId;

  /* --- the cost of each stage ------------------------------------------------------------------------------------ */

  const orDash = (value) => (value ? count(value) : "–");

  /** @param {SearchStage[]} stages */
  function stageTable(stages) {
    const asks = stages.some((stage) => stage.calls);
    const failed = (status) => [" ", parts.chip({ text: status, kind: "bad" })];
    const price = (text) =>
      h("td", { class: "num", title: text === formats.UNKNOWN ? "the price of this LLM is not known" : null }, text);
    /** @type {TableColumn<SearchStage>[]} */
    const columns = [
      { title: "Stage", cell: ({ name, status }) => [named(name), status === "ok" ? null : failed(status)] },
      { title: "Time", num: true, cell: (stage) => seconds(stage.seconds) },
    ];
    /** @type {TableColumn<SearchStage>[]} */
    const ofLLM = [
      { title: "Calls", num: true, cell: ({ calls }) => orDash(calls) },
      { title: "Tokens in", num: true, cell: (stage) => orDash(stage.prompt_tokens) },
      { title: "out", num: true, cell: (stage) => orDash(stage.completion_tokens) },
      { title: "Cost", num: true, cell: (stage) => price(dollars(stage.dollars)) },
    ];
    return parts.table("Cost of each stage", asks ? [...columns, ...ofLLM] : columns, stages);
  }

  /* --- texts of the LLM ------------------------------------------------------------------------------------------ */

  function wrote(answer) {
    const texts = answer.generated.map((text) => h("p", null, text));
    const turns = answer.turns.map((turn) =>
      h(
        "p",
        null,
        turn.text.trim(),
        turn.query
          ? h(
              "span",
              { class: "searched" },
              "\n→ searched: ",
              visible(turn.query),
              turn.documents.length ? ` (${counted(turn.documents.length, "document")})` : "",
            )
          : null,
        turn.notice ? h("span", { class: "searched" }, `\n→ notice: ${visible(turn.notice)}`) : null,
      ),
    );
    const terms = answer.terms.length
      ? h(
          "p",
          { class: "searched" },
          answer.terms.map(({ term, weight }) => `${visible(term)} ${weight.toFixed(3)}`).join(" · "),
        )
      : null;
    return [
      turns.length
        ? h(
            "details",
            { class: "wrote" },
            h("summary", null, `Steps of the agent, ${counted(turns.length, "turn")}`),
            turns,
          )
        : null,
      texts.length
        ? h(
            "details",
            { class: "wrote", open: true },
            h("summary", null, texts.length > 1 ? `Texts of the LLM, ${texts.length}` : "Text that the search used"),
            texts,
          )
        : null,
      terms
        ? h("details", { class: "wrote" }, h("summary", null, "Words of the search with their weights"), terms)
        : null,
    ];
  }

  /* --- passages -------------------------------------------------------------------------------------------------- */

  /**
   * @param {SearchPassage} document
   * @param {number} index
   */
  function passage(document, index) {
    const at = marks.units(document.text);
    const words = document.marks.map(({ start, stop, kind }) => ({
      start: at(start),
      stop: at(stop),
      kind,
      common: false,
    }));
    const window = { start: at(document.window.start), stop: at(document.window.stop) };
    const after = document.cut ? "⋯ the document is longer ⋯" : "";
    const { body, more } = marks.excerpt(document.text, words, window, { after });
    const moved =
      document.before && document.before !== index + 1
        ? parts.chip({ text: `was ${document.before}`, title: "rank before the rerankers" })
        : null;
    return h(
      "li",
      { "data-id": document.id },
      h("span", { class: "rank" }, index + 1),
      h(
        "div",
        null,
        h(
          "div",
          { class: "facts-line" },
          named(document.id),
          `score ${Number(document.score.toPrecision(4))}`,
          moved,
          h("span", { class: "chip other", hidden: true }),
          more,
        ),
        body,
      ),
    );
  }

  /* Show at each passage of one answer its rank in the other. */
  function compare(shown) {
    if (shown.length < 2 || shown.some((answer) => !answer)) return;
    shown.forEach((answer, side) => {
      const ranks = new Map(shown[1 - side].passages.map((document, index) => [document.id, index + 1]));
      for (const item of $("answers").children[side].querySelectorAll("li[data-id]")) {
        const chip = item.querySelector(".chip.other");
        const rank = ranks.get(item.dataset.id);
        chip.textContent = rank ? `rank ${rank} there` : "only here";
        chip.hidden = false;
      }
    });
  }

  /* --- asking ---------------------------------------------------------------------------------------------------- */

  let asking = null; // stops the running questions

  async function post(body, signal) {
    const response = await fetch("search", {
      method: "POST",
      signal,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.detail || `the server answered ${response.status}`);
    return answer;
  }

  function panel(system, side) {
    return h(
      "section",
      { class: `answer ${side ? "two" : "one"}`, "aria-busy": "true" },
      h("header", null, h("h2", null, named(system))),
      h("p", { class: "waiting" }, "Searching …"),
    );
  }

  function fill(section, content) {
    section.setAttribute("aria-busy", "false");
    section.replaceChildren(section.firstElementChild, ...content.flat().filter(Boolean));
  }

  const problem = (text) => h("p", { class: "note problem", role: "alert" }, visible(text));

  function answered(section, answer, tookSeconds) {
    section.firstElementChild.append(
      h("span", { class: "muted" }, `${counted(answer.passages.length, "passage")} in ${seconds(tookSeconds)}`),
    );
    if (answer.generated.length || answer.terms.length) $("legend-generated").hidden = false;
    const failed = answer.stages.filter((stage) => stage.status !== "ok");
    const bare = (stage) => stage.stage === "expand" && stage.status === "failed";
    const told = failed.map((stage) =>
      problem(
        `${stage.name}: ${(bare(stage) ? ["no text was generated, so the search used your question alone", ...stage.notices.slice(1)] : stage.notices).join("; ")}`,
      ),
    );
    fill(section, [
      answer.status === "failed" ? problem(answer.problem) : null,
      told,
      answer.stages.length ? stageTable(answer.stages) : null,
      wrote(answer),
      answer.passages.length
        ? h("ol", { class: "passages" }, answer.passages.map(passage))
        : answer.status === "failed"
          ? null
          : h("p", { class: "empty" }, answer.problem),
    ]);
    if (answer.budget !== null) $("foot").textContent = `${dollars(answer.spent)} of $${answer.budget} spent.`;
  }

  async function ask(event) {
    event.preventDefault();
    const question = $("question").value;
    if (!question.trim()) return;
    asking?.abort();
    const mine = (asking = new AbortController());
    const systems = [$("first").value, $("second").value].filter(Boolean);
    const sections = systems.map(panel);
    const shown = systems.map(() => null);
    $("answers").className = systems.length > 1 ? "answers two-up" : "answers";
    $("answers").replaceChildren(...sections);
    $("legend").hidden = false;
    $("legend-generated").hidden = true;
    await Promise.all(
      systems.map(async (system, side) => {
        const started = performance.now();
        try {
          shown[side] = await post({ question, system, k: Number($("count").value) }, mine.signal);
          answered(sections[side], shown[side], (performance.now() - started) / 1000);
        } catch (error) {
          if (!mine.signal.aborted) fill(sections[side], [problem(/** @type {Error} */ (error).message)]);
        }
      }),
    );
    if (!mine.signal.aborted) compare(shown);
  }

  /* --- the start ------------------------------------------------------------------------------------------------- */

  const content = [...$("main").children]; // what the HTML file has: the form, the legend and a place for answers

  /**
   * @param {HTMLElement} main
   * @param {URLSearchParams} params
   * @param {any} here the answer of GET /systems
   */
  function show(main, params, here) {
    main.append(...content);
    $("nav").replaceWith(
      h("span", { class: "eyebrow" }, named(here.dataset), ` · ${counted(here.documents, "document")}`),
    );
    document.title = `${visible(here.dataset)} · r2med search`;
    $("foot").replaceChildren("Keys: ", key("/"), " question, ", key("↵"), " search, ", key("?"), " all keys.");
    const systems = here.systems.map((system) => ({
      value: system.name,
      label: `${visible(system.name)}${system.asks ? " (asks an LLM)" : ""}`,
    }));
    fillSelect("first", systems, 0);
    fillSelect("second", [{ value: "", label: "nothing" }, ...systems], systems.length < 2 ? 0 : 2);
    if (here.questions.length) offerExamples(here.questions);
    $("question").focus();
  }

  const key = (text) => h("kbd", null, text);

  /** @type {(id: string, options: Option[], chosen: number) => void} */
  const fillSelect = (id, options, chosen) =>
    $(id).append(...options.map(({ value, label }, i) => h("option", { value, selected: i === chosen }, label)));

  function offerExamples(questions) {
    let next = 0;
    $("example").hidden = false;
    $("example").addEventListener("click", () => {
      $("question").value = questions[next++ % questions.length];
      $("ask").requestSubmit();
    });
  }

  $("ask").addEventListener("submit", ask);
  $("question").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $("ask").requestSubmit();
  });

  pages.page("search", {
    title: "Search",
    keys: [
      { key: "/", what: "write a question; Enter searches, Escape leaves it", action: () => $("question").focus() },
    ],
    show,
  });

  async function start() {
    const response = await fetch("systems");
    if (!response.ok) throw new Error(`it answered ${response.status}`);
    pages.data("site", await response.text());
  }

  start().catch((error) => {
    $("answers").replaceChildren(problem(`The server cannot be reached: ${error.message}`));
  });
})();

/* The search page: a question, the passages of one or two systems, the texts of their LLMs, the cost of each stage.
   It uses the shell of the board. */
"use strict";

(() => {
  const { h, visible, named } = shell;
  const { count, counted, seconds, dollars } = formats;
  /** @type {(id: string) => any} */
  const $ = shell.byId;

  /* --- the cost of each stage ------------------------------------------------------------------------------------ */

  const orDash = (value) => (value ? count(value) : "–");

  function stageTable(stages) {
    const asks = stages.some((stage) => stage.calls);
    const head = ["Stage", "Time", ...(asks ? ["Calls", "Tokens in", "out", "Cost"] : [])];
    const rows = stages.map((stage) =>
      h(
        "tr",
        null,
        h(
          "td",
          null,
          named(stage.name),
          stage.status === "ok" ? null : [" ", h("span", { class: "chip bad" }, stage.status)],
        ),
        [
          seconds(stage.seconds),
          ...(asks
            ? [
                orDash(stage.calls),
                orDash(stage.prompt_tokens),
                orDash(stage.completion_tokens),
                dollars(stage.dollars),
              ]
            : []),
        ].map((text) =>
          h(
            "td",
            { class: "num", title: text === formats.UNKNOWN ? "the price of this LLM is not known" : null },
            text,
          ),
        ),
      ),
    );
    return h(
      "div",
      { class: "table-wrap", role: "region", tabindex: 0, "aria-label": "Stages" },
      h(
        "table",
        null,
        h("caption", { class: "visually-hidden" }, "Cost of each stage"),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            head.map((text, index) => h("th", { scope: "col", class: index ? "num" : null }, text)),
          ),
        ),
        h("tbody", null, rows),
      ),
    );
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
          answer.terms.map(([term, weight]) => `${visible(term)} ${weight.toFixed(3)}`).join(" · "),
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

  function passage(document, index) {
    const at = marks.units(document.text);
    const [start, stop] = document.window.map(at);
    const words = document.marks.map(([from, to, kind]) => ({ start: at(from), stop: at(to), kind, common: false }));
    const all = start === 0 && stop >= document.text.length;
    const text = h("div", { class: "text" });
    let whole = false;
    const more = h("button", {
      type: "button",
      class: "more",
      onclick: () => {
        whole = !whole;
        draw();
      },
    });
    function draw() {
      const [from, to] = whole ? [0, document.text.length] : [start, stop];
      text.replaceChildren(
        from ? "… " : "",
        ...marks.draw(document.text, words, [from, to]),
        to < document.text.length || document.cut ? " …" : "",
      );
      more.textContent = whole ? "less" : "whole passage";
      more.setAttribute("aria-expanded", String(whole));
    }
    draw();
    const moved =
      document.before && document.before !== index + 1
        ? h("span", { class: "chip", title: "rank before the rerankers" }, `was ${document.before}`)
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
          all ? null : more,
        ),
        text,
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
    if (answer.generated.length) $("legend-generated").hidden = false;
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

  async function start() {
    const here = await (await fetch("systems")).json();
    $("nav").replaceWith(
      h("span", { class: "eyebrow" }, named(here.dataset), ` · ${counted(here.documents, "document")}`),
    );
    document.title = `${visible(here.dataset)} · r2med search`;
    const options = here.systems.map((system) => [
      system.name,
      `${visible(system.name)}${system.asks ? " (asks an LLM)" : ""}`,
    ]);
    const option = ([value, text], selected) => h("option", { value, selected }, text);
    $("first").append(...options.map((each, index) => option(each, index === 0)));
    $("second").append(
      option(["", "nothing"], options.length < 2),
      ...options.map((each, index) => option(each, index === 1)),
    );
    if (!here.questions.length) return;
    $("example").hidden = false;
    let next = 0;
    $("example").addEventListener("click", () => {
      $("question").value = here.questions[next++ % here.questions.length];
      $("ask").requestSubmit();
    });
  }

  $("ask").addEventListener("submit", ask);
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (target === $("question")) {
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        $("ask").requestSubmit();
      }
      if (event.key === "Escape") target.blur();
    } else if (!target.closest("input, select, textarea")) {
      if (event.key === "/") {
        event.preventDefault();
        $("question").focus();
      }
      if (event.key === "t") shell.switchTheme();
    }
  });
  document.addEventListener("DOMContentLoaded", () => {
    $("foot").append(
      "Keys: ",
      h("kbd", null, "/"),
      " question, ",
      h("kbd", null, "↵"),
      " search, ",
      h("kbd", null, "t"),
      " light or dark.",
    );
    start().catch((error) => {
      $("answers").replaceChildren(problem(`The server cannot be reached: ${error.message}`));
    });
  });
})();

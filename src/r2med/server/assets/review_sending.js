/* Send the verdicts of the review page. This browser keeps a verdict, and an unfinished comment, until the server has
   saved it. */
"use strict";

/** @param {(text: string) => void} notice shows the person the state of sending */
pages.reviewSending = (notice) => {
  const PAUSE = 1000; // milliseconds between two attempts

  /* --- storage in this browser --------------------------------------------------------------------------------- */

  function storage(kind, change) {
    try {
      return change(kind === "tab" ? sessionStorage : localStorage);
    } catch {
      return null;
    } // the browser may forbid storage
  }

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

  /**
   * Send until the server answers. It may have crashed and may be started again.
   * @returns {Promise<{ status: number, body: any }>}
   */
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
      notice(
        "The server does not answer. Nothing is lost: your verdict is kept here and will be sent when the server answers.",
      );
      await later();
    }
  }

  /**
   * Return the answer to a verdict. Until there is an answer, the verdict stays in this browser.
   * @param {ReviewDecision} body
   * @returns {Promise<{ status: number, body: DecisionAnswer }>}
   */
  async function deliver(body) {
    const key = unsentKey(body.name) + body.item + body.disputes;
    put(key, JSON.stringify(body));
    const answer = await post("decide", body);
    put(key, null);
    return answer;
  }

  return { storage, put, get, unsent, post, deliver };
};

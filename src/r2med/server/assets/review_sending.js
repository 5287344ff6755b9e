/* What the review page sends. A verdict is kept in this browser until the server has it on its disk; so is a comment that
   is being written. */
"use strict";

/** @param {(text: string) => void} notice what tells the person how sending goes */
board.reviewSending = (notice) => {
  const PAUSE = 1000; // milliseconds between two attempts

  /* --- what is kept in this browser ---------------------------------------------------------------------------- */

  function storage(kind, change) {
    try {
      return change(kind === "tab" ? sessionStorage : localStorage);
    } catch {
      return null;
    } // forbidden, perhaps
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
   * Send until the server answers; it may have crashed, and be started again.
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
      notice("The server does not answer. Nothing is lost: your verdict is kept here and sent as soon as it does.");
      await later();
    }
  }

  /**
   * Return the answer to a verdict; until there is one, it outlives this page.
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

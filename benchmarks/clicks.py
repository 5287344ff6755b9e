"""How long every kind of click takes on a board's pages, in a real Chromium, from disk.

    python benchmarks/site.py --keep DIR && python benchmarks/clicks.py DIR/board
    python benchmarks/clicks.py DIR/board --times 20 --only explorer

From the click to the first frame with its result: the wall clock, and the time of cores that the page's main thread
took, which other processes on the machine distort less. What is filled in below the screen afterwards does not count.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WALL, CORE = "ts", "tts"  # microseconds of a mark in a trace

SCRIPT = """
window.all = (selector) => [...document.querySelectorAll(selector)];
window.pick = (selector, i) => all(selector)[i % all(selector).length];
window.press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
window.choose = (label) => { // the next option of the select with this label
  const select = all("label").find((each) => each.firstChild.textContent === label).querySelector("select");
  select.focus();
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  select.dispatchEvent(new Event("change", { bubbles: true }));
};
window.type = (text) => {
  const input = document.querySelector("main input[type=search]");
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
};
window.settled = async () => {
  for (let quiet = 0; quiet < 3; quiet = document.querySelector("[aria-busy=true]") ? 0 : quiet + 1) {
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
};
window.timed = (watched, act) => new Promise((resolve) => {
  const done = setTimeout(() => { observer.disconnect(); resolve(false); }, 3000);
  const observer = new MutationObserver((changes) => {
    const drawn = ({ addedNodes, type }) => addedNodes.length || type === "attributes";
    if (!changes.some((change) => change.target.closest?.(watched) && drawn(change))) return;
    clearTimeout(done);
    observer.disconnect();
    const shown = () => { performance.mark("shown"); resolve(true); };
    requestAnimationFrame(() => scheduler.postTask(shown, { priority: "user-blocking" })); // the first after the frame
  });
  observer.observe(document.body, { subtree: true, childList: true, attributeFilter: ["aria-selected"] });
  performance.mark("click");
  act();
});
"""

BOARD = "#/leaderboard"
ALONE = "#/explorer?data={}"
PAIR = "#/explorer?data={}&order=tau"

LEADERBOARD = [
    ("sort by a column", "main div", "pick('thead th button', 1 + i).click()"),
    ("choose a filter", "main div", "choose('Kind')"),
    ("a letter of a search", "main div", "type('system-09'.slice(0, i % 9))"),
    ("row below (j)", "tbody tr", "press('j')"),
    ("details of a row", "tbody", "pick('.toggle', 2 * i).click()"),
    ("another measure", "main div", "choose('Measure')"),
    ("open a system", "main div", "pick('.ours a', i).click()", "history.back()"),
    ("quality against cost", "main div", "pick('[aria-label=View] button', 1 + i).click()"),
    ("to the explorer", ".query-view", "pick('#nav a', 1).click()", "history.back()"),
]
CHART = [("another axis", "main div", "pick('[aria-label=Against] button', 1 + i).click()")]
EXPLORER = [
    ("next query (j)", ".query-view", "press('j')"),
    ("open from the list", ".query-view", "pick('.entry', 7 * i + 9).click()"),
    ("another system (])", ".query-view", "press(']')"),
    ("a letter of a search", ".entries", "type(`q_PMC000000${i % 8}`)"),
    ("another measure", ".query-view", "choose('Measure')"),
    ("more of a document", ".hit-body", "pick('.hit .more', i).click()"),
    ("a relevant document", ".gold-text", "pick('.gold-row:not(.gold-axis)', i).click()", "press('j')"),
    ("to the leaderboard", "main div", "pick('#nav a', 0).click()", "history.back()"),
]
PAIRED = [
    ("next query (j)", ".query-view", "press('j')"),
    ("another system (})", ".query-view", "press('}')"),
    ("swap A and B (x)", ".query-view", "press('x')"),
    ("compare or stop (c)", ".query-view", "press('c')"),
    ("another order", ".query-view", "choose('Queries')"),
]
PAGES: list[tuple[str, str, list[Any]]] = [
    ("leaderboard", BOARD, LEADERBOARD),
    ("chart", f"{BOARD}?view=chart", CHART),
    ("system", "#/system?name=system-000 → bm25", [("next system (])", "main div", "press(i % 2 ? '[' : ']')")]),
    *((f"explorer, {data}", ALONE.format(data), EXPLORER) for data in ("Biology", "IIYi-Clinical")),
    *((f"explorer, two systems, {data}", PAIR.format(data), PAIRED) for data in ("Biology", "IIYi-Clinical")),
]


def measured(
    browser: Any, site: Path, address: str, click: tuple[str, ...], times: int
) -> Iterator[tuple[float, float]]:
    """Yield the milliseconds of each click: of the wall clock, and of the main thread."""
    _, watched, act, *after = click
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.add_init_script(SCRIPT)
    page.goto(f"{site.resolve().as_uri()}/index.html{address}")
    page.wait_for_selector("h1")
    browser.start_tracing(page=page, categories=["blink.user_timing"])
    for number in range(times):
        page.evaluate("settled()")
        page.evaluate(f"timed({json.dumps(watched)}, () => {{ const i = {number}; {act}; }})")
        for step in after:
            page.evaluate(step)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    marks = sorted((event for event in events if event["name"] in ("click", "shown")), key=lambda event: event["ts"])
    for start, end in pairwise(marks):
        if (start["name"], end["name"]) == ("click", "shown"):
            yield (end[WALL] - start[WALL]) / 1000, (end[CORE] - start[CORE]) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--only", default="", help="pages or clicks with this in their name")
    given = parser.parse_args()
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    print("| ms | median | worst | main thread, median | worst |\n|---|---|---|---|---|")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for title, address, clicks in PAGES:
            for click in clicks:
                if given.only in (name := f"{title}: {click[0]}"):
                    columns = zip(*measured(browser, given.site, address, click, given.times), strict=True)
                    figures = [f"{summary(column):.0f}" for column in columns for summary in (median, max)]
                    print(f"| {name} | {' | '.join(figures)} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()

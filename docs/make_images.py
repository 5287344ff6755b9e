"""Take the pictures of docs/images that show the board and a datasheet: python docs/make_images.py BOARD DATASHEET.

BOARD is the folder of a board with the results of `r2med run` and of the tutorial's `r2med advise mine`, made where
minilm is installed. DATASHEET is the datasheet.html of the example `exam`. Both are opened
in a browser, in both themes.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
PAIR = "data=demo%2FBiology&q=1&a=bm25&b=hyde%28author%29+%E2%86%92+bm25"
VIEWS = {
    "leaderboard": ("#/leaderboard?set=R2MED", "tr[data-position]", (1400, 900)),
    "explorer": (f"#/explorer?{PAIR}", "text=Two rankings", (1100, 980)),
    "advice": ("#/advice", ".ladder", (1100, 1180)),
}
"""Name of a picture -> address in the board, what to wait for, and the size."""


def main(board: Path, datasheet: Path) -> None:
    """Take every picture, light as NAME.png and dark as NAME-dark.png."""
    views = {
        name: (f"{(board / 'index.html').resolve().as_uri()}{view}", *rest) for name, (view, *rest) in VIEWS.items()
    }
    views["datasheet"] = (datasheet.resolve().as_uri(), "h2", (1100, 760))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, view in views.items():
            for theme, ending in (("light", ""), ("dark", "-dark")):
                _take(browser, *view, theme, IMAGES / f"{name}{ending}.png")
        browser.close()


def _take(browser: Any, address: str, wait_for: str, size: tuple[int, int], theme: str, target: Path) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page.goto(address)
    page.wait_for_selector(wait_for)
    page.wait_for_timeout(500)
    page.screenshot(path=str(target))
    page.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

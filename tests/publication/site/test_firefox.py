"""The board in a real Firefox, from disk."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from support.firefox import firefox

from .conftest import SYSTEMS


@pytest.mark.slow
def test_the_board_opens_from_disk_in_firefox(site: Path, tmp_path: Path) -> None:
    with firefox(tmp_path / "profile") as browser:
        browser.open(f"file://{site}/index.html")
        browser.wait_for("document.querySelectorAll('main tbody tr').length >= 3")
        assert browser.evaluate("document.querySelector('.wordmark').textContent") == "r2med board"
        browser.evaluate(f"location.hash = '#/explorer?a={quote(SYSTEMS[2])}&b=bm25'")
        browser.wait_for("document.querySelectorAll('.pair .hit').length > 20")
        first = browser.evaluate("location.hash")
        browser.press("j")
        browser.wait_for("document.querySelector('.query-steps span')?.textContent.startsWith('2 of')")
        assert browser.evaluate("location.hash") != first
        browser.press("t")
        theme = browser.evaluate("document.documentElement.dataset.theme")
        browser.open(f"file://{site}/index.html#/system?name=bm25")
        browser.wait_for("document.querySelector('.command')")
        assert browser.evaluate("document.documentElement.dataset.theme") == theme
        assert browser.evaluate("window.harmed") is None
        assert browser.faults == []
        assert [url for url in browser.requests if not url.startswith((f"file://{site}/", "data:"))] == []

"""`r2med board --serve`: the site on loopback, made again when records change."""

from __future__ import annotations

import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from r2med.board import make_board
from r2med.board.live_preview import Preview


def fetch(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return str(answer.read().decode())


@pytest.fixture
def preview(records: Path, tmp_path: Path) -> Iterator[Preview]:
    shutil.copytree(records, tmp_path / "results")
    make = partial(make_board, [tmp_path / "results"], tmp_path / "board")
    running = Preview(make, tmp_path / "board", [tmp_path / "results"])
    thread = threading.Thread(target=running.run)
    thread.start()
    yield running
    running.stop()
    thread.join()


def test_the_page_asks_for_changes_and_gets_them(preview: Preview, tmp_path: Path) -> None:
    assert "assets/live.js" in fetch(preview.url)
    assert "assets/live.js" not in (tmp_path / "board" / "index.html").read_text()
    before = fetch(f"{preview.url}version.js?1")
    assert "hostile" not in before
    next((tmp_path / "results").rglob("hostile-*.json")).unlink()
    preview.refresh()
    assert fetch(f"{preview.url}version.js?2") != before
    assert "window.harmed" not in fetch(f"{preview.url}data/site.js")


def test_records_that_cannot_be_shown_leave_the_board_as_it_was(preview: Preview, tmp_path: Path) -> None:
    before = fetch(f"{preview.url}data/site.js")
    next((tmp_path / "results").rglob("hostile-*.json")).write_text("cut off")
    preview.refresh()
    assert fetch(f"{preview.url}data/site.js") == before


@pytest.mark.parametrize(
    ("path", "host", "code"), [("", "elsewhere.example:80", 403), ("data/", "", 404), ("../results/", "", 404)]
)
def test_only_files_of_the_board_are_served_and_only_to_this_machine(
    preview: Preview, path: str, host: str, code: int
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(preview.url + path, **({"Host": host} if host else {}))
    assert refused.value.code == code

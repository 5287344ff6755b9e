"""`r2med board --serve`: the site on loopback, made again when records change."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.store import Store
from r2med.publication.site import make_board
from r2med.publication.site.live_preview import LiveBoard
from r2med.server.http_server import GuardedServer, bind
from r2med.server.limits import Limits
from r2med.server.preview_app import create_preview_app, serve_preview


def fetch(url: str, method: str = "GET", **headers: str) -> str:
    asked = urllib.request.Request(url, headers=headers, method=method)
    with urllib.request.urlopen(asked, timeout=600) as answer:
        return str(answer.read().decode())


@dataclass
class Shown:
    """A preview, and where it is served."""

    preview: LiveBoard
    url: str


@pytest.fixture
def preview(tmp_path: Path) -> Iterator[Shown]:
    store = Store(tmp_path / "store")
    for system in ("bm25", "bm25(k1=2)"):
        evaluate(system, "demo/Biology", tmp_path / "results", store=store)
    make = partial(make_board, [tmp_path / "results"], tmp_path / "board")
    shown = LiveBoard(make, tmp_path / "board", [tmp_path / "results"])
    listener = bind("127.0.0.1", 0, None)
    listener.listen()
    server = GuardedServer(create_preview_app(shown), Limits(), lambda: None)
    thread = threading.Thread(target=serve_preview, args=(shown, listener, server))
    thread.start()
    yield Shown(shown, f"{listener.url}/")
    server.should_exit = True
    thread.join()


def test_the_page_asks_for_changes_and_gets_them(preview: Shown, tmp_path: Path) -> None:
    assert "assets/live.js" in fetch(preview.url)
    assert "assets/live.js" not in (tmp_path / "board" / "index.html").read_text()
    before = fetch(f"{preview.url}version.js?1")
    assert "k1=2" in fetch(f"{preview.url}data/site.js")
    next((tmp_path / "results").rglob("*k1=2*.json")).unlink()
    preview.preview.refresh()
    assert fetch(f"{preview.url}version.js?2") != before
    assert "k1=2" not in fetch(f"{preview.url}data/site.js")


def test_threads_that_refresh_at_once_make_the_board_once(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text("{}")
    inside, most, made = [0], [0], [0]

    def make() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        made[0] += 1
        inside[0] -= 1

    board = LiveBoard(make, tmp_path / "board", [record])
    record.write_text('{"changed": true}')
    threads = [threading.Thread(target=board.refresh) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, made) == ([1], [2])  # once at the start, once for the change


def test_records_that_cannot_be_shown_leave_the_board_as_it_was(preview: Shown, tmp_path: Path) -> None:
    before = fetch(f"{preview.url}data/site.js")
    next((tmp_path / "results").rglob("*k1=2*.json")).write_text("cut off")
    preview.preview.refresh()
    assert fetch(f"{preview.url}data/site.js") == before


def test_only_files_of_the_board_are_served_and_only_to_this_machine(preview: Shown, tmp_path: Path) -> None:
    (tmp_path / "board/notes.txt").write_text("stays, and is not served")
    asked = [("", "elsewhere.example:80"), ("data/", ""), ("../results/", ""), ("notes.txt", "")]
    codes = {}
    for path, host in asked:
        for method in ("GET", "HEAD"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                fetch(preview.url + path, method, **({"Host": host} if host else {}))
            codes[path, method] = refused.value.code
    assert codes == {(path, method): 403 if host else 404 for path, host in asked for method in ("GET", "HEAD")}

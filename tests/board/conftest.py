"""A board of the demo, and a real browser that looks at it from disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from r2med.results import Record, evaluate
from r2med.results.collection import collect
from r2med.store import Store
from support.browser import launched

SYSTEMS = ("bm25", "bm25(scorer=lucene)", "hyde(author) → bm25")
DATASETS = ("demo/Biology", "demo/MedQA-Diag", "demo/PMC-Clinical")

HOSTILE = "<script>window.harmed = 1</script>\u202e __proto__ javascript:alert(1)"

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three systems on three datasets of the demo, and one of a hostile name, judged by its own LLM, on one of them."""
    folder = tmp_path_factory.mktemp("records")
    store = Store(folder / "store")
    for system in SYSTEMS:
        for dataset in DATASETS:
            record = evaluate(system, dataset, folder / "results", store=store)
    judged = record.dataset.model_copy(update={"judges": ("author",)})
    settings = {**record.settings, HOSTILE: HOSTILE}
    renamed = record.model_copy(update={"system": HOSTILE, "dataset": judged, "settings": settings})
    renamed.write(folder / "results" / f"hostile-{record.key[:10]}.json")
    return folder / "results"


@pytest.fixture(scope="module")
def site(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from r2med.board import make_board

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("R2MED_HOME", str(tmp_path_factory.mktemp("home")))
        return make_board([records], tmp_path_factory.mktemp("site") / "board").parent


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def open_page(chromium: Any, site: Path) -> Iterator[Open]:
    """Open an address of the board: `open_page("#/leaderboard", color_scheme="dark")`.

    At the end nothing may have been wrong: no error in the console, and no request for anything but the board's files.
    """
    faults: list[str] = []
    contexts = []

    def watched(request: Any) -> None:
        if not request.url.startswith((f"file://{site}/", "blob:", "data:")):
            faults.append(f"request for {request.url}")

    def open_it(address: str = "", **settings: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("request", watched)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None
        )
        page.goto(f"file://{site}/index.html{address}")
        page.wait_for_selector("main h1")
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert faults == []


def whole(page: Any) -> None:
    """Wait for what is drawn after the first screen."""
    page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")


@cache
def read(records: Path, system: str, dataset: str) -> Record:
    """Return the record of a system on a dataset."""
    kept = collect([records]).cell(system, dataset)
    assert kept is not None
    return kept.record

"""A board of the demo, and a real browser that looks at it from disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.store import Store
from support.browser import launched

SYSTEMS = ("bm25", "bm25(scorer=lucene)", "hyde(author) → bm25")
DATASETS = ("demo/Biology", "demo/MedQA-Diag", "demo/PMC-Clinical")

HOSTILE = "<script>window.harmed = 1</script>\u202e __proto__ javascript:alert(1)"

SCREEN = {"width": 1280, "height": 900}

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three systems on three datasets of the demo; one of a hostile name, judged by its own LLM."""
    folder = tmp_path_factory.mktemp("records")
    store = Store(folder / "store")
    for system in SYSTEMS:
        for dataset in DATASETS:
            record = evaluate(system, dataset, folder / "results", store=store)
    judged = record.dataset.model_copy(update={"judges": ("author",)})
    settings = {**record.settings, HOSTILE: HOSTILE}
    told = {"details": {"a sentence of its own": 1.0}}
    stages = tuple(stage.model_copy(update=told) for stage in record.stages[-1:])
    renamed = record.model_copy(update={"system": HOSTILE, "dataset": judged, "settings": settings, "stages": stages})
    renamed.write(folder / "results" / f"hostile-{record.key[:10]}.json")
    return folder / "results"


@pytest.fixture(scope="module")
def site(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from r2med.publication.site import make_board

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("R2MED_HOME", str(tmp_path_factory.mktemp("home")))
        return make_board([records], tmp_path_factory.mktemp("site") / "board").parent


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@dataclass
class Tabs:
    """At most two tabs for all tests of a module, since a new one takes longer than most tests; and their faults."""

    context: Any
    site: Path
    tabs: list[Any] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def tab(self, number: int) -> Any:
        """Return one of the two, empty."""
        if number == len(self.tabs):
            self.tabs.append(self._new_tab())
        self.tabs[number].goto("about:blank")
        return self.tabs[number]

    def forget(self) -> None:
        """Empty them, and what the board remembers."""
        for tab in self.tabs:
            tab.evaluate("() => { if (location.protocol === 'file:') localStorage.clear(); }")
            tab.goto("about:blank")
        self.faults.clear()

    def _new_tab(self) -> Any:
        page = self.context.new_page()
        page.on("request", self._watch)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on(
            "console",
            lambda message: self.faults.append(message.text) if message.type in ("error", "warning") else None,
        )
        return page

    def _watch(self, request: Any) -> None:
        if not request.url.startswith((f"file://{self.site}/", "blob:", "data:", "about:blank")):
            self.faults.append(f"request for {request.url}")


@pytest.fixture(scope="module")
def tabs(chromium: Any, site: Path) -> Iterator[Tabs]:
    context = chromium.new_context()
    yield Tabs(context, site)
    context.close()


@pytest.fixture
def open_page(tabs: Tabs) -> Iterator[Open]:
    """Open an address of the board: `open_page("#/leaderboard", color_scheme="dark")`; a third takes the first's tab.

    At the end nothing may have been wrong: no error in the console, and no request for anything but the board's files.
    """
    numbers = cycle((0, 1))

    def open_it(address: str = "", viewport: dict[str, int] = SCREEN, color_scheme: str = "light") -> Any:
        page = tabs.tab(next(numbers))
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme)
        page.goto(f"file://{tabs.site}/index.html{address}")
        page.wait_for_selector("main h1")
        return page

    yield open_it
    faults = list(tabs.faults)
    tabs.forget()
    assert faults == []


def whole(page: Any) -> None:
    """Wait for what is drawn after the first screen."""
    page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")


UNREACHED = """() => {
  const hidden = (each) => {
    each.scrollIntoView({ block: 'center', inline: 'nearest' }); // as the focus does
    const { left, right, top, bottom, width } = each.getBoundingClientRect();
    if (!width || left < 0 || right > innerWidth) return true;
    if (!each.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2))) return true;
    const scrolled = each.closest('.table-wrap');
    return !each.matches('a') && scrolled && scrolled.tabIndex !== 0;
  };
  if (document.documentElement.scrollWidth > innerWidth) return ['the page'];
  const all = [...document.querySelectorAll('main thead th[scope=col], #nav a, .segmented button')];
  return all.filter(hidden).map((each) => each.textContent);
}"""


def unreached(page: Any, width: int) -> list[str]:
    """Return the tabs and the heads of columns that touch and keyboard cannot bring onto a screen of this width.

    A table scrolls inside its region, which takes the focus. The page itself never scrolls sideways.
    """
    page.set_viewport_size({"width": width, "height": 844})
    whole(page)
    return list(page.evaluate(UNREACHED))


@cache
def read(records: Path, system: str, dataset: str) -> Record:
    """Return the record of a system on a dataset."""
    kept = collect([records]).cell(system, dataset)
    assert kept is not None
    return kept.record

"""The functions that serve until Ctrl-C: systems that search, and the review page.

FastAPI and uvicorn are imported when a function is called, so that other commands start without them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from r2med.assessment.review.label_reviews import REVIEWED_QUERIES
from r2med.data.loading import load
from r2med.foundation.core.errors import UserError, check_installed, unknown
from r2med.foundation.core.flags import as_list
from r2med.foundation.engine.reporting import announcing, steps_ended
from r2med.foundation.runtime.runtime import running
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.assessment.review.review_desk import ReviewDesk
    from r2med.data.dataset import Dataset
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
    from r2med.server.served_corpus import ServedCorpus, ServedData
    from r2med.systems.system.system import LiveSystem

LOOPBACK = "127.0.0.1"


def print_line(line: str, file: TextIO | None = None) -> None:
    """Print a line at once."""
    print(printable(line), file=file, flush=True)


def serve_systems(
    dataset: Dataset | str | Path,
    systems: str | Sequence[str] = (),
    setup: Setup | Runtime | None = None,
    *,
    retriever: str = "",
    host: str = LOOPBACK,
    port: int = 8000,
    access_log: bool = False,
    mcp: str = "",
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a search page, POST /search and POST /retrieve until Ctrl-C; `r2med.serve` explains the arguments.

    If a search does not end within 5 seconds after Ctrl-C, the process ends without waiting for it. Raises
    UserError if the server would be open to other machines and R2MED_SERVE_TOKEN is not set.
    """
    if mcp not in ("", "stdio", "http"):
        raise unknown("MCP transport", mcp, ["stdio", "http"])
    from r2med.server import limits
    from r2med.server.http_app import create_app
    from r2med.server.http_server import TOKEN, bind, serve_app

    if mcp:
        check_installed(f"r2med serve --mcp {mcp}", ["mcp"])
        from r2med.server.mcp_server import add_mcp, serve_stdio, stdout_to_stderr

    token = os.environ.get(TOKEN, "").strip() or None
    with running(setup) as runtime:
        patient = runtime.with_settings(deadline=limits.ANSWER_SECONDS)
        if mcp == "stdio":
            with stdout_to_stderr():
                data, leave = _opened(dataset, as_list(systems), retriever, patient)
            say = ready or partial(print_line, file=sys.stderr)
            say(f"MCP on stdin and stdout searches with {_about(data)} · Ctrl-C stops")
            try:
                serve_stdio(data, leave)
            finally:
                leave()
            return
        listener = bind(host, port, token)
        data, leave = _opened(dataset, as_list(systems), retriever, patient)
        app = create_app(data, token)
        if mcp:
            add_mcp(app, data)
        agents = f"agents: POST {listener.url}/retrieve" + (f" · MCP: {listener.url}/mcp" if mcp else "")
        line = f"{listener.url}/ searches with {_about(data)} · {agents} · Ctrl-C stops"
        try:
            serve_app(app, listener, partial(ready or print_line, line), access_log=access_log, leave=leave)
        finally:
            leave()  # a process may go on after the server, and must not keep what was asked


def _opened(
    dataset: Dataset | str | Path,
    systems: Sequence[str],
    retriever: str,
    runtime: Runtime,
) -> tuple[ServedData, Callable[[], None]]:
    """Return the corpus and the systems, ready to search, and a function that removes what is kept for questions."""
    from r2med.server.served_corpus import ServedData, open_served
    from r2med.systems.system.system import System

    for spec in filter(None, [*systems, retriever]):
        System.parse(spec, runtime).check_installed()
    store = runtime.store.with_policy("live")
    named = str(dataset) if isinstance(dataset, str | Path) else dataset.name
    announcing(1)(" · ".join(filter(None, [named, *systems, retriever])))

    def opened() -> tuple[ServedCorpus, Sequence[LiveSystem]]:
        loaded = load(dataset, store) if isinstance(dataset, str | Path) else dataset
        return open_served(loaded, systems, retriever, runtime, store)

    data = ServedData(*opened(), opened if isinstance(dataset, str | Path) else None)
    steps_ended()
    return data, store.close


def _about(data: ServedData) -> str:
    served, names = data.corpus, ", ".join(system.name for system in data.systems)
    return f"{names} · {served.dataset}, {counted(len(served.corpus), 'document')}, {served.retriever}"


def serve_items(
    source: str | Path,
    sample: int = 0,
    port: int = 8070,
    ready: Callable[[str], None] = print_line,
    kind: str = "passage",
    reviews_per_item: int | None = None,
) -> None:
    """Serve a page on which people review passages or texts of questions until Ctrl-C.

    `source` is the folder of a build or a table. `kind` is passage, question, answer, reasoning, translation, page or
    all, or the TOML file of a rubric of your own. With a `sample` only that many items of a kind are shown. An item is
    shown until it has `reviews_per_item` reviews; with 0 everybody sees every item. Without it, the number in the plan
    of the build counts; a plan without one, and a table, mean 0. Port 0 picks a free port. `ready` gets one line with
    the address when the server accepts connections.
    """
    from r2med.assessment.review.kinds import PASSAGE
    from r2med.assessment.review.review_book import ReviewBook, reviews_file
    from r2med.assessment.review.review_desk import ReviewDesk
    from r2med.construction.review_items import items_by_kind, planned_reviews, read_guideline, review_rubrics

    path = Path(source)
    items, (asked, rubrics) = items_by_kind(path, kind, sample), review_rubrics(kind)
    rules = "\n\n".join(rubric.guideline for rubric in asked if rubric.rules or any(w.means for w in rubric.words))
    wanted = planned_reviews(path) if reviews_per_item is None else reviews_per_item
    nouns = {name: "candidate" if name == PASSAGE else rubrics[name].noun for name in items}
    counts = ", ".join(counted(len(each), nouns[name]) for name, each in items.items())
    with ReviewBook(reviews_file(path), rubrics) as book:
        desks = {name: ReviewDesk(each, book, wanted) for name, each in items.items()}
        finished = f", {sum(desk.finished for desk in desks.values())} finished" if wanted else ""
        _serve_desks(path, desks, port, f"{path}, {counts}{finished}", ready, read_guideline(path) or rules)


def serve_labels(
    overlay: str | Path,
    results: str | Path = "results",
    data: Sequence[str] = (),
    sample: int = REVIEWED_QUERIES,
    port: int = 8070,
    ready: Callable[[str], None] = print_line,
    reviews_per_item: int = 0,
) -> None:
    """Serve a page on which people label what judges labelled, until Ctrl-C.

    People label the whole pool of the first `sample` queries of each dataset, in the order of their ids. The datasets
    are those of the records in `results`. `data` are their folders, or names that restrict them. The other arguments
    are those of `serve_items`.
    """
    from r2med.assessment.review.label_reviews import RELEVANCE, label_items, noted, pairs_to_label
    from r2med.assessment.review.review_book import ReviewBook, reviews_file
    from r2med.assessment.review.review_desk import ReviewDesk
    from r2med.assessment.rubrics.rubric import RUBRICS
    from r2med.construction.review_items import read_guideline
    from r2med.data.overlays import Overlay
    from r2med.evaluation.records.collection import collect
    from r2med.evaluation.records.relabelled import recorded_datasets

    path = Path(overlay)
    labels = Overlay.read(path)
    collection = collect(results=results)
    known = recorded_datasets(collection, list(data))
    datasets = {name: known[name] for name in labels.datasets if name in known}
    items = label_items(pairs_to_label(labels, datasets, sample), datasets)
    if not items:
        names = ", ".join(labels.datasets)
        raise UserError(f"{path}: no label of a judge can be reviewed: {results} needs records of systems on {names}")
    queries = len({(pair.dataset, pair.query) for pair, _ in items})
    with ReviewBook(reviews_file(path)) as book:
        desks = {RELEVANCE: ReviewDesk(noted(book, items), book, reviews_per_item, in_order=True)}
        what = f"{path}, {counted(len(items), 'passage')} of {counted(queries, 'query', 'queries')}"
        # People follow the rules of the judges, unless the project has its own.
        _serve_desks(path, desks, port, what, ready, read_guideline(path) or RUBRICS[RELEVANCE].guideline)


def serve_nuggets(
    file: str | Path,
    dataset: Dataset,
    port: int = 8070,
    ready: Callable[[str], None] = print_line,
    reviews_per_item: int = 0,
) -> None:
    """Serve a page on which people check nuggets, until Ctrl-C.

    `dataset` is that of the nuggets. The other arguments are those of `serve_items`.
    """
    from r2med.assessment.review.nugget_reviews import NUGGET, nugget_items
    from r2med.assessment.review.review_book import ReviewBook, reviews_file
    from r2med.assessment.review.review_desk import ReviewDesk
    from r2med.assessment.rubrics.rubric import RUBRICS
    from r2med.construction.review_items import read_guideline
    from r2med.data.nuggets_file import read_nuggets

    path = Path(file)
    items = [item for _, item in nugget_items(read_nuggets(path, dataset), dataset)]
    with ReviewBook(reviews_file(path)) as book:
        desks = {NUGGET: ReviewDesk(items, book, reviews_per_item, in_order=True)}
        what = f"{path}, {counted(len(items), 'nugget')} of {dataset.name}"
        _serve_desks(path, desks, port, what, ready, read_guideline(path) or RUBRICS[NUGGET].guideline)


def _serve_desks(
    path: Path,
    desks: dict[str, ReviewDesk],
    port: int,
    what: str,
    ready: Callable[[str], None],
    guideline: str,
) -> None:
    """Serve review desks until Ctrl-C. `path` is a build, a table or an overlay."""
    from r2med.server.http_server import AppServer, bind
    from r2med.server.review_app import create_review_app

    listener = bind(LOOPBACK, port, None)
    app = create_review_app(desks, path.resolve().name, guideline)
    line = f"{listener.url}/ · {what} · Ctrl-C stops"
    AppServer(app, partial(ready, line)).serve_at(listener)

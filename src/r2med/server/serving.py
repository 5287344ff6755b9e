"""The three functions that serve until Ctrl-C: systems that search, the review page, and a board that follows records.

FastAPI and uvicorn are an extra. They are imported when a function is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.core.errors import MissingExtraError
from r2med.data.loading import load
from r2med.records.collection import MAX_FAILURES
from r2med.runtime.runtime import running
from r2med.server.refusals import ANSWER_SECONDS
from r2med.text.plurals import counted
from r2med.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.data.dataset import Dataset
    from r2med.runtime.runtime import Runtime
    from r2med.runtime.setup import Setup

LOOPBACK = "127.0.0.1"


def _print_line(line: str) -> None:
    print(printable(line), flush=True)


@contextmanager
def needing_server(command: str) -> Iterator[None]:
    """Import the packages of the server. Raises MissingExtraError if the extra is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("fastapi", "starlette", "uvicorn"):
            raise
        raise MissingExtraError(command, "serve") from None


def serve(
    dataset: Dataset | str | Path,
    systems: Sequence[str] = (),
    setup: Setup | Runtime | None = None,
    *,
    retriever: str = "",
    host: str = LOOPBACK,
    port: int = 8000,
    limits: str | Path | None = None,
    timeout: float = ANSWER_SECONDS,
    access_log: bool = False,
    opening: AbstractContextManager[object] | None = None,
    ready: Callable[[str], None] = _print_line,
) -> None:
    """Serve a search page, POST /search and POST /retrieve until Ctrl-C, like `r2med serve`.

    `systems` answer on the page and at /search, each within `timeout` seconds. `retriever` answers at /retrieve; by
    default it is the retriever of the first system, or bm25. Port 0 picks a free port. `limits` is a TOML file. The
    corpus and the models are opened inside the block `opening`, which can show progress. `ready` gets one line with the
    address when the server accepts connections.

    If a search does not end within the limit `grace` after Ctrl-C, the process ends without waiting for it. Raises
    UserError if the server would be open to other machines and R2MED_SERVE_TOKEN is not set.
    """
    with needing_server("r2med serve"):
        from r2med.server.http_app import create_app
        from r2med.server.http_server import TOKEN, bind, serve_app
        from r2med.server.limits import Limits, read_limits
        from r2med.server.served_corpus import open_served

    allowed = read_limits(Path(limits)) if limits is not None else Limits()
    token = os.environ.get(TOKEN, "").strip() or None
    with running(setup) as runtime:
        store = runtime.store.with_policy("live")
        patient = runtime.with_settings(deadline=timeout)
        listener = bind(host, port, token)
        with opening or nullcontext():
            loaded = load(dataset, store) if isinstance(dataset, str | Path) else dataset
            served, opened = open_served(loaded, systems, retriever, patient, store)
        app = create_app(served, allowed, token, opened, timeout)
        about = f"{served.dataset}, {counted(len(served.corpus), 'document')}, {served.retriever}"
        names = ", ".join(each.name for each in opened)
        agents = f"agents: POST {listener.url}/retrieve"
        line = f"{listener.url}/ searches with {names} · {about} · {agents} · Ctrl-C stops"
        serve_app(app, listener, partial(ready, line), access_log=access_log, leave=store.close)


def review(source: str | Path, sample: int = 0, port: int = 8070, ready: Callable[[str], None] = _print_line) -> None:
    """Serve a page on which people accept or reject candidates until Ctrl-C, like `r2med review`.

    `source` is the folder of a build or a table of candidates. With a `sample` only that many candidates are shown.
    Port 0 picks a free port. `ready` gets one line with the address when the server accepts connections.
    """
    from r2med.construction.review.review_book import ReviewBook
    from r2med.construction.review.review_desk import ReviewDesk
    from r2med.construction.review.review_items import review_items, reviews_file

    with needing_server("r2med review"):
        from r2med.server.http_server import GuardedServer, bind
        from r2med.server.limits import Limits
        from r2med.server.review_app import create_review_app

    path = Path(source)
    items = review_items(path, sample)
    listener = bind(LOOPBACK, port, None)
    line = f"{listener.url}/ · {path}, {counted(len(items), 'candidate')} · Ctrl-C stops"
    with ReviewBook(reviews_file(path)) as book:
        app = create_review_app(ReviewDesk(items, book), path.resolve().name)
        GuardedServer(app, Limits(), partial(ready, line)).serve_at(listener)


def serve_board(
    sources: Sequence[str | Path] = (),
    out: str | Path = "board",
    data: Sequence[str] = (),
    entries: Path | None = None,
    max_failures: float = MAX_FAILURES,
    texts: bool = True,
    port: int = 8080,
    ready: Callable[[str], None] = _print_line,
) -> None:
    """Make a board, serve it on this machine until Ctrl-C, and make it again when a record changes.

    This is `r2med board --serve`; the first six arguments are those of `board`. Port 0 picks a free port. `ready` gets
    one line with the address when the server accepts connections.
    """
    from r2med.site.live_preview import LiveBoard
    from r2med.site.site import board

    with needing_server("r2med board --serve"):
        from r2med.server.http_server import GuardedServer, bind
        from r2med.server.limits import Limits
        from r2med.server.preview_app import create_preview_app, serve_preview

    watched = [*map(Path, sources or ([] if entries else ["results"])), *([entries] if entries else [])]
    listener = bind(LOOPBACK, port, None)
    preview = LiveBoard(partial(board, sources, out, data, entries, max_failures, texts), Path(out), watched)
    line = f"{listener.url}/ · Ctrl-C stops"
    server = GuardedServer(create_preview_app(preview), Limits(), partial(ready, line))
    serve_preview(preview, listener, server)

"""`r2med serve`: systems behind HTTP, for agents and for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.server.refusals import DEADLINE

if TYPE_CHECKING:
    from r2med.runtime.runtime import Runtime


@flags.with_runtime(
    *flags.WEIGHTS, "depth", "recorded", "generations", "llm", "base_url", "llm_backend", "prompts", "budget"
)
def serve(
    dataset: Annotated[str, typer.Argument(help="What to search: a dataset, demo/NAME or a folder.")],
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYSTEM",
            help="What answers on the page and at /search, e.g. 'hyde(o3-mini) → bm25'; may be repeated.",
            show_default=False,
            autocompletion=completion.systems,
        ),
    ] = None,
    retriever: Annotated[
        str,
        typer.Option(
            help="What searches at /retrieve, e.g. bm25+minilm. Default: the first system's, else bm25.",
            show_default=False,
        ),
    ] = "",
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine needs R2MED_SERVE_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the server. 0 picks a free one.")] = 8000,
    limits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file of other limits of requests and connections, such as `topk = 50`; see docs/serve.md.",
            show_default=False,
        ),
    ] = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line for each request.")] = False,
    deadline: Annotated[
        float, typer.Option(help="Seconds after which an answer is given up.", rich_help_panel=flags.LLMS)
    ] = DEADLINE,
    *,
    runtime: Runtime,
) -> None:
    """Serve a page to search with, its POST /search, and POST /retrieve in the protocol of Search-R1."""
    import os

    from r2med.cli.progress import steps
    from r2med.data import load
    from r2med.store import LiveStore
    from r2med.text.terminal_text import printable

    with flags.needing_server("r2med serve"):
        from r2med.server.http_app import create_app
        from r2med.server.http_server import TOKEN, bind
        from r2med.server.http_server import serve as serve_at
        from r2med.server.limits import Limits, read_limits
        from r2med.server.served_corpus import open_served

    allowed = read_limits(limits) if limits else Limits()
    store = LiveStore.of(runtime.store)
    runtime = runtime.with_settings(deadline=deadline)
    token = os.environ.get(TOKEN, "").strip() or None
    listener = bind(host, port, token)
    with steps(1) as step:
        step(f"{dataset} · {' · '.join([*(system or []), retriever])}".rstrip(" ·"))
        served, systems = open_served(load(dataset, store), system or [], retriever, runtime, store)
    app = create_app(served, allowed, token, systems, deadline)

    def ready() -> None:
        about = f"{served.dataset}, {len(served.corpus):,} documents, {served.retriever}"
        names = ", ".join(each.name for each in systems)
        agents = f"agents: POST {listener.url}/retrieve"
        print(printable(f"{listener.url}/ searches with {names} · {about} · {agents} · Ctrl-C stops"), flush=True)

    serve_at(app, listener, ready, access_log=access_log, leave=store.close)

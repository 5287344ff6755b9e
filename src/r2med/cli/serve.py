"""`r2med serve`: systems behind HTTP, for agents and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.server.request_limits import DEADLINE, GRACE, Limits

if TYPE_CHECKING:
    from r2med.runtime.setup import Setup

LIMITS = Limits()


@flags.with_setup(
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
    max_body: Annotated[int, typer.Option(help="Bytes of a request.")] = LIMITS.body,
    max_queries: Annotated[int, typer.Option(help="Queries of a request.")] = LIMITS.queries,
    max_characters: Annotated[int, typer.Option(help="Characters of a query.")] = LIMITS.characters,
    max_topk: Annotated[int, typer.Option(help="Documents for a query.")] = LIMITS.topk,
    max_documents: Annotated[int, typer.Option(help="Documents of an answer: queries × topk.")] = LIMITS.documents,
    max_waiting: Annotated[int, typer.Option(help="Requests that may wait; one more gets 503.")] = LIMITS.waiting,
    batch: Annotated[int, typer.Option(help="Queries of waiting requests searched together.")] = LIMITS.batch,
    max_answers: Annotated[int, typer.Option(help="Questions answered at a time at /search.")] = LIMITS.answers,
    max_seconds: Annotated[int, typer.Option(help="Seconds that a request may take to arrive.")] = LIMITS.seconds,
    max_connections: Annotated[
        int, typer.Option(help="Open connections; one more closes an idle one.")
    ] = LIMITS.connections,
    grace: Annotated[int, typer.Option(min=0, help="Seconds that a running search has to finish at a stop.")] = GRACE,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line for each request.")] = False,
    deadline: Annotated[
        float, typer.Option(help="Seconds after which an answer is given up.", rich_help_panel=flags.LLMS)
    ] = DEADLINE,
    *,
    setup: Setup,
) -> None:
    """Serve a page to search with, its POST /search, and POST /retrieve in the protocol of Search-R1."""
    import os
    from dataclasses import replace

    from r2med.cli.progress import steps
    from r2med.data import load
    from r2med.store import LiveStore, default_store
    from r2med.text.terminal_text import printable

    with flags.needing_server("r2med serve"):
        from r2med.server.http_app import create_app
        from r2med.server.http_server import TOKEN, bind
        from r2med.server.http_server import serve as serve_at
        from r2med.server.served_corpus import open_served

    limits = Limits(
        body=max_body,
        queries=max_queries,
        characters=max_characters,
        topk=max_topk,
        documents=max_documents,
        waiting=max_waiting,
        batch=batch,
        answers=max_answers,
        seconds=max_seconds,
        connections=max_connections,
    )
    store = LiveStore.of(default_store())
    setup = replace(setup, deadline=deadline, store=store)
    token = os.environ.get(TOKEN, "").strip() or None
    listener = bind(host, port, token)
    with steps(1) as step:
        step(f"{dataset} · {' · '.join([*(system or []), retriever])}".rstrip(" ·"))
        served, systems = open_served(load(dataset, store), system or [], retriever, setup, store)
    app = create_app(served, limits, token, systems, deadline)

    def ready() -> None:
        about = f"{served.dataset}, {len(served.corpus):,} documents, {served.retriever}"
        names = ", ".join(each.name for each in systems)
        agents = f"agents: POST {listener.url}/retrieve"
        print(printable(f"{listener.url}/ searches with {names} · {about} · {agents} · Ctrl-C stops"), flush=True)

    serve_at(app, listener, ready, grace=grace, access_log=access_log, leave=store.close)

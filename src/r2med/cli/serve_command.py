"""`r2med serve`: serve systems over HTTP, for agents and for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.server.refusals import ANSWER_SECONDS

if TYPE_CHECKING:
    from r2med.foundation.runtime.runtime import Runtime


@flags.with_runtime(
    *flags.WEIGHTS,
    "depth",
    "recorded",
    "generations",
    "llm",
    "base_url",
    "llm_backend",
    "prompts",
    "budget",
    *flags.TRACE,
)
def serve(
    dataset: Annotated[str, typer.Argument(help="The corpus to search: a dataset, demo/NAME or a folder.")],
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
        str, typer.Option(help="Address to listen on. An address beyond this machine needs R2MED_SERVE_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the server. 0 picks a free one.")] = 8000,
    limits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file of limits of requests and connections, such as `topk = 50`; see docs/serve-others.md.",
            show_default=False,
        ),
    ] = None,
    mcp: Annotated[
        Literal["stdio", "http"] | None,
        typer.Option(
            metavar="stdio|http",
            help="Let assistants search by the Model Context Protocol: stdio speaks on stdin and stdout instead of "
            "HTTP, http adds the address /mcp.",
            show_default=False,
        ),
    ] = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line for each request.")] = False,
    timeout: Annotated[
        float, typer.Option(help="Seconds that the answer to one question may take.", rich_help_panel=flags.LLMS)
    ] = ANSWER_SECONDS,
    *,
    runtime: Runtime,
) -> None:
    """Serve a search page, POST /search, POST /retrieve in the protocol of Search-R1, and MCP for assistants."""
    from r2med.server.serving import serve as serve_systems

    serve_systems(
        dataset,
        system or [],
        runtime,
        retriever=retriever,
        host=host,
        port=port,
        limits=limits,
        timeout=timeout,
        access_log=access_log,
        mcp=mcp or "",
        opening=_progress(f"{dataset} · {' · '.join([*(system or []), retriever])}".rstrip(" ·")),
    )


@contextmanager
def _progress(title: str) -> Iterator[None]:
    from r2med.cli.progress import steps

    with steps(1) as step:
        step(title)
        yield

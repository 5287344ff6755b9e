"""The flags about running models, shared by every verb that runs one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from r2med.setup import Setup
    from r2med.system import System

ModelPaths = Annotated[
    list[str] | None, typer.Option("--model-path", metavar="NAME=DIR", help="Where a model's weights lie.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
DType = Annotated[str, typer.Option(help="auto, float32, bfloat16, float16.")]
Backend = Annotated[str, typer.Option(help="torch, openvino or onnx.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run the code that a model's repository brings along.")
]
Memory = Annotated[str, typer.Option(help="Memory for blocks of vectors, such as 512M or 4G.")]
Budget = Annotated[float | None, typer.Option(help="Dollars that API calls may cost.", show_default=False)]

LLMs = Annotated[
    list[str] | None, typer.Option("--llm", metavar="NAME", help="The LLM of what needs one; may be repeated.")
]
LLMBackend = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Where LLMs run: openai (an endpoint), vllm or local (in this process). Default: as the card says.",
        show_default=False,
    ),
]
BaseURL = Annotated[str, typer.Option(help="An OpenAI-compatible endpoint for any model.", show_default=False)]
Generations = Annotated[Path | None, typer.Option(help="Where recorded generations lie.", show_default=False)]
Samples = Annotated[int, typer.Option(help="Texts for each query.")]
Prompts = Annotated[Path | None, typer.Option(help="A folder of your own prompt templates.", show_default=False)]
Rerankers = Annotated[
    list[str] | None, typer.Option("--rerank", metavar="NAME", help="Rerank what was found: bge-reranker, groupwise, …")
]
Depth = Annotated[int, typer.Option(help="Candidates that a reranker looks at; NAME@DEPTH says it for one.")]
Candidates = Annotated[
    Path | None, typer.Option(help="A TREC run to rerank, or a folder with one per dataset.", show_default=False)
]
Concurrency = Annotated[int, typer.Option(help="LLM requests at once.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print calls, tokens, cost and three prompts; ask and evaluate nothing.")
]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_bytes(text: str) -> int:
    """Read 512M, 4G or a number of bytes."""
    from r2med.errors import UserError

    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].isalpha() else (text, "")
    try:
        size = int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size < 1 << 20:
        raise UserError(f"--memory takes a size of at least 1M, such as 512M or 4G, not {text!r}")
    return size


def make_setup(
    *, model_path: list[str] | None = None, memory: str = "2G", budget: float | None = None, **settings: Any
) -> Setup:
    """Return what the flags say; `settings` are fields of Setup as they are."""
    from r2med.errors import UserError
    from r2med.net.budget import Budget as Dollars
    from r2med.setup import Setup

    if budget is not None and not 0 <= budget < float("inf"):
        raise UserError(f"--budget takes dollars, 0 or more, not {budget}")
    paths = tuple(map(Setup.parse_path, model_path or ()))
    return Setup(model_paths=paths, memory=parse_bytes(memory), budget=Dollars(budget), **settings)


def expanded(
    specs: list[str], methods: list[str] | None, llms: list[str] | None, samples: int, llms_used: bool = False
) -> list[str]:
    """Return every method × LLM × system, or the systems themselves where no method was named.

    `llms_used` tells that a system takes the LLMs in any case, as a reranker does.
    """
    from r2med.errors import UserError
    from r2med.expand.typed import expansions
    from r2med.spec import ARROW

    if not methods:
        if llms and not llms_used:
            raise UserError("--llm needs a method: --expand hyde, query2doc or lamer")
        if samples != 1:
            where = f"in a system it is written 'hyde(LLM, samples={samples}){ARROW}bm25'"
            raise UserError(f"--samples goes with --expand; {where}")
        return specs
    calls = expansions(methods, llms or [], samples, llms_used=llms_used)
    return [f"{call}{ARROW}{spec}" for call in calls for spec in specs]


def check_used(systems: Iterable[System], given: Mapping[str, object]) -> None:
    """Raise for flags about texts and LLMs where no system has a stage that they could change."""
    from r2med.errors import UserError

    names = [flag for flag, value in given.items() if value]
    if names and not any(system.expander or system.rerankers for system in systems):
        raise UserError(f"{names[0]} is about texts of an LLM, and no system uses any: add --expand hyde --llm NAME")


def reranked(specs: list[str], rerankers: list[str] | None) -> list[str]:
    """Return every system with every reranker after it, or the systems themselves where none was named."""
    from r2med.spec import ARROW

    return [f"{spec}{ARROW}{reranker}" for spec in specs for reranker in rerankers or ()] or specs


def with_llms(specs: list[str], llms: list[str] | None) -> tuple[list[str], bool]:
    """Return the systems, those that need an LLM and name none once for each of --llm; and whether any was used."""
    from r2med.expand.typed import checked_llms
    from r2med.system.assembly import wants_llm, with_llm

    found: list[str] = []
    names, used = checked_llms(llms or ()), False
    for spec in specs:
        wanting = bool(names) and wants_llm(spec)
        used |= wanting
        found += [with_llm(spec, llm) for llm in names] if wanting else [spec]
    return found, used


def datasets(data: list[str] | None) -> list[str]:
    """Return the names that --data means, each once: commas join several unless a path has them."""
    from r2med.data import names
    from r2med.errors import UserError

    entries = [[entry] if entry and Path(entry).exists() else entry.split(",") for entry in data or ["demo"]]
    words = [word.strip() for entry in entries for word in entry if word.strip()]
    if not words:
        raise UserError("--data names no dataset: r2med data list shows all")
    return list(dict.fromkeys(name for word in words for name in names(word)))

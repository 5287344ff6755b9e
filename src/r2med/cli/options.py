"""The flags that several verbs share, in the panels in which help shows them."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.cli import completion

if TYPE_CHECKING:
    from r2med.runtime.setup import Setup

WHAT, DATA, MODELS, LLMS, OUTPUT = "What to run", "Data", "Models", "LLMs", "Output"

Data = Annotated[
    list[str] | None,
    typer.Option(
        help="A dataset, a group (R2MED, demo, …) or a folder; several with commas or repeated.",
        autocompletion=completion.datasets,
        rich_help_panel=DATA,
    ),
]
Candidates = Annotated[
    Path | None,
    typer.Option(
        help="A TREC run to rerank, or a folder with one per dataset.", show_default=False, rich_help_panel=DATA
    ),
]
Generations = Annotated[
    Path | None, typer.Option(help="Where recorded generations lie.", show_default=False, rich_help_panel=DATA)
]
Recorded = Annotated[
    bool, typer.Option("--recorded", help="Use recorded generations; no LLM is asked.", rich_help_panel=DATA)
]

Rerankers = Annotated[
    list[str] | None,
    typer.Option(
        "--rerank",
        metavar="NAME",
        help="Rerank what was found: bge-reranker, groupwise, …; may be repeated.",
        autocompletion=completion.rerankers,
        rich_help_panel=WHAT,
    ),
]
Expansions = Annotated[
    list[str] | None,
    typer.Option(
        "--expand",
        metavar="METHOD",
        help="Expand queries first: hyde, query2doc, lamer, rm3, …; may be repeated.",
        autocompletion=completion.expansions,
        rich_help_panel=WHAT,
    ),
]
Depth = Annotated[
    int, typer.Option(help="Candidates that a reranker looks at; NAME@DEPTH says it for one.", rich_help_panel=WHAT)
]
Samples = Annotated[int, typer.Option(help="Texts for each query.", rich_help_panel=WHAT)]

ModelPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--model-path",
        metavar="NAME=PATH",
        help="Where the weights of a model or an LLM lie: a folder, or a GGUF file.",
        rich_help_panel=MODELS,
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel=MODELS)]
DType = Annotated[str, typer.Option(help="auto, float32, bfloat16, float16.", rich_help_panel=MODELS)]
Backend = Annotated[
    str, typer.Option(help="Library that runs transformers: torch or openvino.", rich_help_panel=MODELS)
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code", help="Run the code that a model's repository brings along.", rich_help_panel=MODELS
    ),
]
Memory = Annotated[str, typer.Option(help="Memory for blocks of vectors, such as 512M or 4G.", rich_help_panel=MODELS)]
BatchTokens = Annotated[
    int, typer.Option(help="Tokens that an encoder reads at once; 0: as the device allows.", rich_help_panel=MODELS)
]

LLMs = Annotated[
    list[str] | None,
    typer.Option(
        "--llm",
        metavar="NAME",
        help="The LLM of what needs one; may be repeated.",
        autocompletion=completion.llms,
        rich_help_panel=LLMS,
    ),
]
BaseURL = Annotated[
    str | None,
    typer.Option(
        help="An OpenAI-compatible endpoint for any LLM. Embedding APIs: OPENAI_BASE_URL, VOYAGE_BASE_URL.",
        show_default=False,
        rich_help_panel=LLMS,
    ),
]
LLMBackend = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Where LLMs run: openai (an endpoint) or local (llama.cpp in this process). Default: as the card says.",
        show_default=False,
        rich_help_panel=LLMS,
    ),
]
Prompts = Annotated[
    str,
    typer.Option(
        metavar="NAME|DIR",
        help="A set of prompt templates (r2med list prompts) for all stages that ask an LLM.",
        show_default=False,
        rich_help_panel=LLMS,
    ),
]
Concurrency = Annotated[int, typer.Option(help="LLM requests at once.", rich_help_panel=LLMS)]
Deadline = Annotated[
    float, typer.Option(help="Seconds that all attempts of one request may take.", rich_help_panel=LLMS)
]
Idle = Annotated[
    float, typer.Option(help="Seconds without a byte after which a request is tried again.", rich_help_panel=LLMS)
]
AskAgain = Annotated[
    bool,
    typer.Option("--ask-again", help="Ask again where an answer could not be used.", rich_help_panel=LLMS),
]
Budget = Annotated[
    float | None,
    typer.Option(
        help="Dollars that this command may spend on embeddings and LLMs together.",
        show_default=False,
        rich_help_panel=LLMS,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--plan",
        help="Print the stages, what is kept, to fetch and missing, calls, cost and three prompts; do nothing.",
        rich_help_panel=OUTPUT,
    ),
]

OneLLM = Annotated[
    str,
    typer.Option(
        "--llm",
        metavar="NAME",
        help="The LLM of what needs one and names none.",
        show_default=False,
        autocompletion=completion.llms,
        rich_help_panel=LLMS,
    ),
]

AsJSON = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ComparedSystems = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SYSTEM|RECORD|FOLDER",
        help="Names of systems, record files or folders of them. Default: all of --results.",
        show_default=False,
    ),
]
ComparedData = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="NAME",
        help="Only these datasets or groups (R2MED, demo, …), several with commas or repeated. "
        "Default: all that the systems share, without the demo if there are others.",
        autocompletion=completion.datasets,
        show_default=False,
    ),
]
Results = Annotated[Path, typer.Option(help="Where the records of systems lie.")]
OneMeasure = Annotated[str, typer.Option(help="nDCG@10, MRR, R@100, …: any that the records hold.")]
Baseline = Annotated[
    str,
    typer.Option(metavar="SYSTEM", help="Compare each system with this one, not all with each other."),
]
Resamples = Annotated[int, typer.Option(min=1, help="Sign flips, and draws of the bootstrap.")]
MaxFailures = Annotated[
    float, typer.Option(help="The share of failed calls or queries above which a record is refused.")
]

Engine = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Where models and indexing run: threads, ray (this machine, or RAY_ADDRESS) or ray://HOST:PORT.",
        rich_help_panel=MODELS,
    ),
]
Offline = Annotated[
    bool,
    typer.Option(
        "--offline",
        help="Refuse every address that is not this machine's; also R2MED_OFFLINE=1.",
        rich_help_panel=MODELS,
    ),
]

_SETUP: Mapping[str, tuple[Any, Any]] = {
    "device": (Device, "auto"),
    "dtype": (DType, "auto"),
    "backend": (Backend, "torch"),
    "model_path": (ModelPaths, None),
    "memory": (Memory, "2G"),
    "batch_tokens": (BatchTokens, 0),
    "trust_remote_code": (TrustRemoteCode, False),
    "engine": (Engine, "threads"),
    "offline": (Offline, False),
    "llm": (OneLLM, ""),
    "base_url": (BaseURL, None),
    "llm_backend": (LLMBackend, ""),
    "budget": (Budget, None),
    "prompts": (Prompts, ""),
    "concurrency": (Concurrency, 16),
    "deadline": (Deadline, 900.0),
    "idle": (Idle, 180.0),
    "ask_again": (AskAgain, False),
    "depth": (Depth, 100),
    "recorded": (Recorded, False),
    "generations": (Generations, None),
    "candidates": (Candidates, None),
}
"""The flags that make a Setup, with their defaults."""
WEIGHTS = ("device", "dtype", "backend", "model_path", "memory", "batch_tokens", "trust_remote_code", "offline")
ASKING = ("base_url", "llm_backend", "budget", "prompts", "concurrency", "deadline", "idle", "ask_again")

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_bytes(text: str) -> int:
    """Read 512M, 4G or a number of bytes."""
    from r2med.core.errors import UserError

    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].isalpha() else (text, "")
    try:
        size = int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size < 1 << 20:
        raise UserError(f"--memory takes a size of at least 1M, such as 512M or 4G, not {text!r}")
    return size


def with_setup(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add flags to a command, which gets the Setup that they make as `setup`."""

    def added(command: Callable[..., None]) -> Callable[..., None]:
        command.__annotations__.pop("setup")  # the type is imported by type checkers alone
        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "setup"]
        flags = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=flag, default=default)
            for name, (flag, default) in _SETUP.items()
            if name in names
        ]

        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            setup = make_setup(**{name: given.pop(name) for name in names})
            command(**given, setup=setup)

        wrapped.__signature__ = signature.replace(parameters=[*own, *flags])  # type: ignore[attr-defined]
        return wrapped

    return added


def make_setup(
    *,
    model_path: list[str] | None = None,
    memory: str = "2G",
    batch_tokens: int = 0,
    budget: float | None = None,
    base_url: str | None = None,
    make: Callable[..., Setup] | None = None,
    **settings: Any,
) -> Setup:
    """Return what the flags say; `settings` are fields of Setup, `make` is what makes one of them."""
    from r2med.core.errors import UserError
    from r2med.net.budget import Budget as Dollars
    from r2med.net.offline import go_offline
    from r2med.runtime.setup import Setup

    if budget is not None and not 0 <= budget < float("inf"):
        raise UserError(f"--budget takes dollars, 0 or more, not {budget}")
    if base_url is not None and not base_url.strip():
        raise UserError("--base-url is empty: give the address of an endpoint, such as http://localhost:8000/v1")
    if settings.get("offline"):
        go_offline()  # the process is this command's
    return (make or Setup)(
        model_paths=tuple(map(Setup.parse_path, model_path or ())),
        memory=parse_bytes(memory),
        tokens_per_batch=batch_tokens,
        budget=Dollars(budget),
        base_url=(base_url or "").strip(),
        **settings,
    )


def dataset_names(data: list[str] | None) -> list[str]:
    """Return the names that --data means, each once: commas join several unless a path has them."""
    from r2med.core.errors import UserError
    from r2med.data import names

    entries = [[entry] if entry and Path(entry).exists() else entry.split(",") for entry in data or ["demo"]]
    words = [word.strip() for entry in entries for word in entry if word.strip()]
    if not words:
        raise UserError("--data names no dataset: r2med data list shows all")
    return list(dict.fromkeys(name for word in words for name in names(word)))


def comma_separated(given: list[str] | None) -> list[str]:
    """Return the names of a flag that may be repeated, and that may hold several with commas."""
    return [name.strip() for entry in given or [] for name in entry.split(",") if name.strip()]


@contextlib.contextmanager
def needing_server(command: str) -> Iterator[None]:
    """Import what a command serves pages with. Raises MissingExtraError if the extra is not installed."""
    from r2med.core.errors import MissingExtraError

    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("fastapi", "starlette", "uvicorn"):
            raise
        raise MissingExtraError(command, "serve") from None


def check_writable(out: Path) -> None:
    """Raise UserError if a folder cannot be written to: before the work is done, not after it."""
    import os
    import tempfile

    from r2med.core.errors import UserError

    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"cannot write results to {out} ({reason}): choose another folder with --out") from None

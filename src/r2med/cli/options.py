"""The flags that several commands share, with their panels in the help pages."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from r2med.cli import completion
from r2med.cli.rare_flags import with_help_all
from r2med.evaluation.records.answer_words import CONDITIONS
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.flags import DATA, LLMS, MODELS, OUTPUT, WHAT, Flag
from r2med.foundation.runtime.setup import Setup, printed_bytes
from r2med.public.shared_flags import ASKING, TRACE, WEIGHTS

__all__ = ["ASKING", "DATA", "LLMS", "MODELS", "OUTPUT", "TRACE", "WEIGHTS", "WHAT"]


def choices(words: Iterable[str]) -> str:
    """Return the words of a closed set for a help text: a, 'b c' or d."""
    *others, last = (f"'{word}'" if " " in word else word for word in words)
    return f"{', '.join(others)} or {last}" if others else last


Data = Annotated[
    list[str] | None,
    typer.Option(
        help="A dataset, a group (R2MED, demo, …) or a folder. May be repeated, or hold several with commas.",
        autocompletion=completion.datasets,
        rich_help_panel=DATA,
    ),
]
Rerankers = Annotated[
    list[str] | None,
    typer.Option(
        "--rerank",
        metavar="NAME",
        help="Rerank the retrieved documents with bge-reranker, groupwise, …. May be repeated.",
        autocompletion=completion.rerankers,
        rich_help_panel=WHAT,
    ),
]
Expansions = Annotated[
    list[str] | None,
    typer.Option(
        "--expand",
        metavar="METHOD",
        help="Expand queries first with hyde, query2doc, lamer, rm3, …. May be repeated.",
        autocompletion=completion.expansions,
        rich_help_panel=WHAT,
    ),
]
TopK = Annotated[int, typer.Option("-k", "--k", help="Documents returned for each query.", rich_help_panel=WHAT)]
Samples = Annotated[int, typer.Option(help="Number of texts that the LLM writes for each query.", rich_help_panel=WHAT)]

LLMs = Annotated[
    list[str] | None,
    typer.Option(
        "--llm",
        metavar="NAME",
        help="The LLM of stages that need one. May be repeated.",
        autocompletion=completion.llms,
        rich_help_panel=LLMS,
    ),
]


def begin_plan(context: typer.Context, plan: bool) -> bool:
    """Let a command name addresses of other machines while it plans, also offline. `callback` of every flag --plan."""
    if plan:
        from r2med.foundation.net.offline import planning

        context.with_resource(planning())
    return plan


DryRun = Annotated[
    bool,
    typer.Option(
        "--plan",
        callback=begin_plan,
        help="Print the stages, what is kept, missing or to be downloaded, the GPU memory, calls, hours and dollars of "
        "each system, and three prompts. Run nothing.",
        rich_help_panel=OUTPUT,
    ),
]

Lock = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Do what this file of r2med lock decided, and refuse anything else. Records carry its digest.",
        show_default=False,
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
Overlays = Annotated[
    list[Path] | None,
    typer.Option(
        "--overlay",
        metavar="FILE",
        help="Score with the labels of this overlay too. May be repeated: later labels replace earlier ones.",
        show_default=False,
    ),
]
Results = Annotated[Path, typer.Option(help="Folder with the records of systems.")]
OneMeasure = Annotated[str, typer.Option(help="A measure of the records: nDCG@10, MRR, R@100, ….")]
ComparedMeasure = Annotated[
    str,
    typer.Option(
        help="A measure of the records: nDCG@10, MRR, R@100, …. Default: nDCG@10, that of the lock, or the accuracy of "
        "answers.",
        show_default=False,
    ),
]
Baseline = Annotated[
    str,
    typer.Option(metavar="SYSTEM", help="Compare each system with this one only."),
]
Answers = Annotated[
    bool,
    typer.Option(
        "--answers", help="Use the records of `r2med answer`: each system with each reader, by accuracy or --measure."
    ),
]
AnswerCondition = Annotated[
    str,
    typer.Option(
        "--condition",
        metavar="NAME",
        help=f"With --answers: what was read. {choices(CONDITIONS)}.",
    ),
]
Resamples = Annotated[int, typer.Option(min=1, help="Number of random sign flips and of bootstrap samples.")]
MaxFailures = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Largest share of failed calls or queries, from 0 to 1. Other records are left out with a note.",
    ),
]


def with_runtime(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the flags of some fields of Setup to a command, which gets the Runtime of that Setup as `runtime`."""

    def added(command: Callable[..., None]) -> Callable[..., None]:
        def run(settings: dict[str, Any], **given: Any) -> None:
            from r2med.foundation.runtime.runtime import Runtime

            with Runtime(make_setup(**settings)) as runtime:
                command(**given, runtime=runtime)

        return _with_flags(command, run, "runtime", names)

    return added


def with_settings(*names: str, **helps: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the flags of some fields of Setup to a command, which gets them as `settings`; `helps` replace help texts."""
    return lambda command: _with_flags(command, command, "settings", names, helps)


def _with_flags(
    command: Callable[..., None],
    run: Callable[..., None],
    replaced: str,
    names: Sequence[str],
    helps: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., None]:
    """Return a command with the flags of fields in place of one parameter; `run` gets their values as `settings`."""
    command.__annotations__.pop(replaced)  # the type is imported by type checkers alone
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != replaced]
    flags = [setup_parameter(field, helps.get(field.name, "")) for field in fields(Setup) if field.name in names]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        given.pop("help_all", None)
        settings = {name: given.pop(name) for name in names}
        run(settings=settings, **given)

    wrapped.__signature__ = signature.replace(parameters=with_help_all([*own, *flags]))  # type: ignore[attr-defined]
    return wrapped


def setup_parameter(field: Field[Any], help: str = "") -> inspect.Parameter:
    """Return the parameter of a command that sets a field of Setup, with the field's help and default."""
    flag: Flag = field.metadata["flag"]
    option = typer.Option(
        *flag_names(field.name),
        metavar=flag.metavar or None,
        help=help or flag.help,
        show_default=flag.show_default,
        rich_help_panel=flag.panel,
        autocompletion=getattr(completion, flag.completion) if flag.completion else None,
        hidden=flag.is_rare,
    )
    kind: Any = list[str] if flag.is_list else flag.kind or type(field.default)
    default: Any = field.default
    default = printed_bytes(default) if field.name == "memory" else default
    if default in ("", (), None):  # None means that a flag was not typed; an empty text was typed
        kind, default = kind | None, None
    typed: Any = Annotated[kind, option]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, annotation=typed, default=default)


def flag_names(name: str) -> tuple[str, ...]:
    """Return the flags of a field of Setup."""
    declared: dict[str, Flag] = {field.name: field.metadata["flag"] for field in fields(Setup)}
    return declared[name].names or (f"--{name.replace('_', '-')}",)


def make_setup(make: Callable[..., Setup] = Setup, **settings: Any) -> Setup:
    """Return the Setup of the flags. `settings` are fields of Setup as typed; None means that a flag was not typed."""
    return make(**given_settings(settings))


def given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of Setup that were typed."""
    given = {name: value for name, value in settings.items() if value is not None}
    if "base_url" in given:
        given["base_url"] = given["base_url"].strip()
        if not given["base_url"]:
            raise UserError("--base-url is empty: give the address of an endpoint, such as http://localhost:8000/v1")
    return given


def dataset_names(data: list[str] | None) -> list[str]:
    """Return the datasets that --data names, each once. Commas separate several, unless a path contains them."""
    from r2med.data import names

    entries = [[entry] if entry and Path(entry).exists() else entry.split(",") for entry in data or ["demo"]]
    words = [word.strip() for entry in entries for word in entry if word.strip()]
    if not words:
        raise UserError("--data names no dataset: r2med list datasets shows all")
    return list(dict.fromkeys(name for word in words for name in names(word)))


def comma_separated(given: list[str] | None) -> list[str]:
    """Return the names of a flag that may be repeated and may hold several with commas."""
    return [name.strip() for entry in given or [] for name in entry.split(",") if name.strip()]


def check_writable(out: Path) -> None:
    """Raise UserError if a folder cannot be written to, before any work is done."""
    from r2med.foundation.store import writable

    writable.check_writable(out, "--out")

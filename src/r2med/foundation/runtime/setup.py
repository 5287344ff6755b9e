"""Setup: everything that a spec does not contain: how models run, how LLMs are called, where texts are, the budget.

Each field carries its help text and, if it can be typed, its flag: the command line is made from these fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from r2med.foundation.core.errors import UserError, expected_type, unknown
from r2med.foundation.core.flags import DATA, LLMS, MODELS, WHAT, Flag, as_list
from r2med.foundation.core.spec import typed_path

if TYPE_CHECKING:
    from r2med.foundation.engine.work import Engine
    from r2med.foundation.net.request_loop import Policy
    from r2med.foundation.store import Store
else:
    Engine = Store = Any  # a list of flags must not load them

MOST_REPEATS = 1000
"""More runs of one system are taken for a mistake."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class SettingError(UserError):
    """A field of Setup with a value that it cannot have."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        flag, typed = flag_of(name), flag_names(name)[0]
        text = f"{value:g}" if isinstance(value, float) else str(value)
        super().__init__(f"{name} ({typed} {quote(text)}): {reason}" if flag.panel else f"{name}={text}: {reason}")


def _size(size: int | str) -> int:
    """Return a number of bytes, typed as such or as 512M or 4G. Raises UserError if it is less than 1M."""
    text = str(size)
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].isalpha() else (text, "")
    try:
        count = int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        count = 0
    if count < _UNITS["M"]:
        raise SettingError("memory", text, "it must be a size of at least 1M, such as 512M or 4G")
    return count


def _weights(given: Any) -> tuple[tuple[str, Path], ...]:
    """Return weights by name: from a mapping, from NAME=PATH as one types it, or from pairs."""
    pairs = given.items() if isinstance(given, Mapping) else map(_name_and_path, as_list(given))
    return tuple((name, typed_path(str(path))) for name, path in pairs)


def _name_and_path(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, str):
        return pair[0], pair[1]
    name, equals, path = pair.partition("=")
    if not equals or not name or not path:
        raise SettingError("model_paths", pair, "it must be NAME=FOLDER or NAME=FILE.gguf")
    return name, path


def _path(given: Any) -> Any:
    return typed_path(given) if isinstance(given, str) else given


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise SettingError("generations", path, "there is no such folder")
    return path


def _address(typed: str) -> str:
    """Return a typed address. Raises UserError if it is empty: in Python, that means that no address is given."""
    if not typed.strip():
        raise SettingError("base_url", typed, "give the address of an endpoint, such as http://localhost:8000/v1")
    return typed.strip()


# Types of settings: how a typed value is read, and what it must be.
Count = Annotated[int, Field(ge=1, description="a whole number, 1 or more")]
Repeat = Annotated[int, Field(ge=0, lt=MOST_REPEATS, description=f"a whole number from 0 to {MOST_REPEATS - 1}")]
Seconds = Annotated[float, Field(gt=0, description="a number of seconds above 0")]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Size = Annotated[int, BeforeValidator(_size)]
Weights = Annotated[tuple[tuple[str, Path], ...], BeforeValidator(_weights)]
TypedPath = Annotated[Path, BeforeValidator(_path)]
ExistingFolder = Annotated[TypedPath, AfterValidator(_folder)]


class Setup(BaseModel):
    """One flat value for all systems of a run, from flags or from keywords in Python. Making one has no effect."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    device: Annotated[
        str, Flag("Device of models: auto (all GPUs there are), cpu, cuda, cuda:1 or mps.", MODELS, metavar="NAME")
    ] = "auto"
    dtype: Annotated[
        str, Flag("Precision of models: auto (float32 on a CPU), float32, bfloat16 or float16.", MODELS, metavar="NAME")
    ] = "auto"
    backend: Annotated[
        str, Flag("Library that runs transformers: torch or openvino.", MODELS, metavar="NAME", is_rare=True)
    ] = "torch"
    model_paths: Annotated[
        Weights,
        Flag(
            "Path of the weights of a model or an LLM: a folder, or a GGUF file.",
            MODELS,
            ("--model-path",),
            metavar="NAME=PATH",
            is_list=True,
        ),
    ] = ()
    memory: Annotated[
        Size, Flag("Memory for blocks of vectors, such as 512M or 4G.", MODELS, metavar="SIZE", kind=str, is_rare=True)
    ] = 2 << 30
    tokens_per_batch: Annotated[
        int, Flag("Tokens that an encoder reads at once. 0 is as many as the device allows.")
    ] = 0
    trust_remote_code: Annotated[
        bool, Flag("Run the code that a model's repository contains.", MODELS, is_rare=True)
    ] = False
    engine: Annotated[
        str | Engine,
        Flag(
            "Where models and indexing run: threads, ray (this machine, or RAY_ADDRESS) or ray://HOST:PORT.",
            MODELS,
            metavar="NAME",
            is_rare=True,
        ),
    ] = "threads"
    offline: Annotated[
        bool,
        Flag("Refuse every address that is not this machine's. R2MED_OFFLINE=1 does the same.", MODELS, ("--offline",)),
    ] = False
    models_kept: Annotated[int, Flag("Models that stay in memory.")] = 3

    llm: Annotated[
        str,
        Flag(
            "The LLM of stages that need one and name none.",
            LLMS,
            metavar="NAME",
            show_default=False,
            completion="llms",
        ),
    ] = ""
    base_url: Annotated[
        str,
        Flag(
            "An OpenAI-compatible endpoint for any LLM, and the server of vllm:MODEL and tei:MODEL. Embedding APIs: "
            "OPENAI_BASE_URL and the like.",
            LLMS,
            metavar="URL",
            show_default=False,
            read=_address,
        ),
    ] = ""
    llm_backend: Annotated[
        str,
        Flag(
            "Where LLMs run: openai (an endpoint) or local (llama.cpp in this process). Default: as the card says.",
            LLMS,
            metavar="NAME",
            show_default=False,
            is_rare=True,
        ),
    ] = ""
    budget: Annotated[
        Dollars | None,
        Field(description="a number of dollars, 0 or more"),
        Flag(
            "Dollars that embeddings and LLMs may cost together. Work stops before the next request would exceed them.",
            LLMS,
            metavar="DOLLARS",
            show_default=False,
            kind=float,
        ),
    ] = None
    prompts: Annotated[
        str,
        Flag(
            "A set of prompt templates (r2med list prompts) for all stages that ask an LLM.",
            LLMS,
            metavar="NAME|DIR",
            show_default=False,
        ),
    ] = ""
    concurrency: Annotated[Count, Flag("Requests that are sent at once.", LLMS, is_rare=True)] = 16
    deadline: Annotated[Seconds, Flag("Seconds that all attempts of one request may take.", LLMS, is_rare=True)] = 900.0
    idle: Annotated[Seconds, Flag("Seconds without a byte after which a request is tried again.")] = 180.0
    ask_again: Annotated[
        bool, Flag("Ask LLMs again where an answer of an earlier run could not be used.", LLMS, is_rare=True)
    ] = False
    threads: Annotated[int, Flag("CPU threads of an LLM that runs in this process. 0 is all free cores.")] = 0
    endpoints: Annotated[
        tuple[tuple[str, str], ...], Flag("(provider, URL) of embedding and rerank APIs at another address.")
    ] = ()
    attempts: Annotated[Count, Flag("Times that a request is sent if its failures may pass.")] = 6
    first_wait: Annotated[
        Seconds, Flag("Seconds at most before the second attempt, twice as many before each next one.")
    ] = 2.0

    depth: Annotated[Count, Flag("Candidates that a reranker looks at. NAME@DEPTH sets it for one reranker.", WHAT)] = (
        100
    )
    recorded: Annotated[bool, Flag("Use recorded generations; no LLM is asked for an expansion.", DATA)] = False
    generations: Annotated[
        ExistingFolder | None,
        Flag(
            "Folder of recorded generations. Default: beside the dataset.",
            DATA,
            metavar="DIR",
            show_default=False,
            kind=Path,
        ),
    ] = None
    candidates: Annotated[
        TypedPath | None,
        Flag("A TREC run to rerank, or a folder with one per dataset.", DATA, show_default=False, kind=Path),
    ] = None
    repeat: Annotated[
        Repeat, Flag("Number of the repeat, from 0. LLMs are asked anew and shuffles made anew in each repeat.")
    ] = 0
    store: Annotated[Store | None, Flag("Where artefacts are kept. None is R2MED_HOME.")] = None

    def __init__(self, **settings: Any) -> None:
        if settings.get("generations") is not None:
            settings["recorded"] = True
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise _explained(error) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setup) and self.values_without(*OF_NO_RESULT) == other.values_without(*OF_NO_RESULT)

    def __hash__(self) -> int:
        return hash(self.values_without(*OF_NO_RESULT))

    def values_without(self, *names: str) -> tuple[Any, ...]:
        """Return the values of all settings but these, to tell setups apart."""
        return tuple(value for name, value in self if name not in names)

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        for name, value in self:
            if name not in OF_THIS_PROCESS and value != type(self).model_fields[name].default:
                yield name, value

    def __reduce__(self) -> tuple[Callable[[], Setup], tuple[()]]:
        # As it arrives on another machine: with the store of that one, without a budget, and with threads.
        left = (*OF_THIS_PROCESS, *OF_THIS_MACHINE)
        return partial(Setup, **{name: value for name, value in self if name not in left}), ()

    def with_settings(self, **settings: Any) -> Setup:
        """Return this setup with other values."""
        return Setup(**{**dict(self), **settings})

    @property
    def policy(self) -> Policy:
        """Return the retries and time limits of requests."""
        from r2med.foundation.net.request_loop import Policy

        return Policy(self.concurrency, self.attempts, self.first_wait, self.deadline, self.idle)

    def path_of(self, name: str) -> Path | None:
        """Return the path of weights that the user provided: from `model_paths`, or else R2MED_MODELS/NAME."""
        for known, path in self.model_paths:
            if known == name:
                if not path.exists():
                    raise SettingError("model_paths", f"{name}={path}", "there is no such file or folder")
                return path
        for folder in filter(None, os.environ.get("R2MED_MODELS", "").split(os.pathsep)):
            path = typed_path(folder) / name
            if path.is_dir():
                return path
            if (file := path.with_name(f"{path.name}.gguf")).is_file():
                return file
        return None


OF_THIS_PROCESS = ("budget", "store", "engine")
"""Fields that are not sent to another process."""
OF_NO_RESULT = (*OF_THIS_PROCESS, "models_kept")
"""Fields that change no result. Setups that differ in nothing else are equal."""
OF_THIS_MACHINE = ("generations", "candidates")
"""Files that only this process reads: nodes of a cluster encode and index, and need not have them."""


def flag_of(name: str) -> Flag:
    """Return how a setting is typed."""
    return next(mark for mark in Setup.model_fields[name].metadata if isinstance(mark, Flag))


def flag_names(name: str) -> tuple[str, ...]:
    """Return the flags of a setting."""
    return flag_of(name).names or (f"--{name.replace('_', '-')}",)


def _explained(error: ValidationError) -> UserError:
    """Return one line about the first fault: a setting that does not exist, or what its value must be."""
    faults = error.errors()
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return unknown("setting", name, Setup.model_fields)
    wanted = Setup.model_fields[name].description or expected_type(fault["type"])
    return SettingError(name, fault["input"], f"it must be {wanted}" if wanted else fault["msg"])


def printed_bytes(count: int) -> str:
    """Return a number of bytes as one types it, such as 2G."""
    unit = next(unit for unit in ("T", "G", "M", "K", "") if count % _UNITS[unit] == 0)
    return f"{count // _UNITS[unit]}{unit}"

"""Setup: everything that a spec does not contain: how models run, how LLMs are called, where texts are, the budget.

Each field carries its help text and, if it can be typed, its flag: the command line is made from these fields.
"""

# ruff: noqa: RUF009 - `_setting` returns a field of the dataclass
from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Self

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.flags import DATA, LLMS, MODELS, WHAT, Flag, as_list
from r2med.foundation.core.spec import typed_path

if TYPE_CHECKING:
    from r2med.foundation.engine.work import Engine
    from r2med.foundation.net.retry import Policy
    from r2med.foundation.store import Store

MOST_REPEATS = 1000
"""More runs of one system are taken for a mistake."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class SettingError(UserError):
    """A field of Setup with a value that it cannot have."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        flag = next(each.metadata["flag"] for each in fields(Setup) if each.name == name)
        typed = next(iter(flag.names), f"--{name.replace('_', '-')}")
        super().__init__(
            f"{name} ({typed} {quote(str(value))}): {reason}" if flag.panel else f"{name}={value}: {reason}"
        )


def _setting(default: Any, help: str, panel: str = "", *names: str, compare: bool = True, **more: Any) -> Any:
    return field(default=default, compare=compare, metadata={"flag": Flag(help, panel, names, **more)})


@dataclass(frozen=True)
class Setup:
    """One flat value for all systems of a run, from flags or from keywords in Python. Making one has no effect."""

    device: str = _setting(
        "auto", "Device of models: auto (all GPUs there are), cpu, cuda, cuda:1 or mps.", MODELS, metavar="NAME"
    )
    dtype: str = _setting(
        "auto", "Precision of models: auto (float32 on a CPU), float32, bfloat16 or float16.", MODELS, metavar="NAME"
    )
    backend: str = _setting(
        "torch", "Library that runs transformers: torch or openvino.", MODELS, metavar="NAME", is_rare=True
    )
    model_paths: tuple[tuple[str, Path], ...] = _setting(
        (),
        "Path of the weights of a model or an LLM: a folder, or a GGUF file.",
        MODELS,
        "--model-path",
        metavar="NAME=PATH",
        is_list=True,
    )
    memory: int = _setting(
        2 << 30, "Memory for blocks of vectors, such as 512M or 4G.", MODELS, metavar="SIZE", kind=str, is_rare=True
    )
    tokens_per_batch: int = _setting(0, "Tokens that an encoder reads at once. 0 is as many as the device allows.")
    trust_remote_code: bool = _setting(False, "Run the code that a model's repository contains.", MODELS, is_rare=True)
    engine: str | Engine = _setting(
        "threads",
        "Where models and indexing run: threads, ray (this machine, or RAY_ADDRESS) or ray://HOST:PORT.",
        MODELS,
        metavar="NAME",
        compare=False,
        is_rare=True,
    )
    offline: bool = _setting(
        False, "Refuse every address that is not this machine's. R2MED_OFFLINE=1 does the same.", MODELS, "--offline"
    )
    models_kept: int = _setting(3, "Models that stay in memory.", compare=False)

    llm: str = _setting(
        "",
        "The LLM of stages that need one and name none.",
        LLMS,
        metavar="NAME",
        show_default=False,
        completion="llms",
    )
    base_url: str = _setting(
        "",
        "An OpenAI-compatible endpoint for any LLM, and the server of vllm:MODEL and tei:MODEL. Embedding APIs: "
        "OPENAI_BASE_URL and the like.",
        LLMS,
        metavar="URL",
        show_default=False,
    )
    llm_backend: str = _setting(
        "",
        "Where LLMs run: openai (an endpoint) or local (llama.cpp in this process). Default: as the card says.",
        LLMS,
        metavar="NAME",
        show_default=False,
        is_rare=True,
    )
    budget: float | None = _setting(
        None,
        "Dollars that embeddings and LLMs may cost together. Work stops before the next request would exceed them.",
        LLMS,
        metavar="DOLLARS",
        show_default=False,
        kind=float,
        compare=False,
    )
    prompts: str = _setting(
        "",
        "A set of prompt templates (r2med list prompts) for all stages that ask an LLM.",
        LLMS,
        metavar="NAME|DIR",
        show_default=False,
    )
    concurrency: int = _setting(16, "Requests that are sent at once.", LLMS, is_rare=True)
    deadline: float = _setting(900.0, "Seconds that all attempts of one request may take.", LLMS, is_rare=True)
    idle: float = _setting(180.0, "Seconds without a byte after which a request is tried again.")
    ask_again: bool = _setting(
        False, "Ask LLMs again where an answer of an earlier run could not be used.", LLMS, is_rare=True
    )
    threads: int = _setting(0, "CPU threads of an LLM that runs in this process. 0 is all free cores.")
    endpoints: tuple[tuple[str, str], ...] = _setting(
        (), "(provider, URL) of embedding and rerank APIs at another address."
    )
    attempts: int = _setting(6, "Times that a request is sent if its failures may pass.")
    first_wait: float = _setting(2.0, "Seconds at most before the second attempt, twice as many before each next one.")

    depth: int = _setting(100, "Candidates that a reranker looks at. NAME@DEPTH sets it for one reranker.", WHAT)
    recorded: bool = _setting(False, "Use recorded generations; no LLM is asked for an expansion.", DATA)
    generations: Path | None = _setting(
        None,
        "Folder of recorded generations. Default: beside the dataset.",
        DATA,
        metavar="DIR",
        show_default=False,
        kind=Path,
    )
    candidates: Path | None = _setting(
        None, "A TREC run to rerank, or a folder with one per dataset.", DATA, show_default=False, kind=Path
    )
    repeat: int = _setting(
        0, "Number of the repeat, from 0. LLMs are asked anew and shuffles made anew in each repeat."
    )
    store: Store | None = _setting(None, "Where artefacts are kept. None is R2MED_HOME.", compare=False)

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Raise UserError for a setting that does not exist, with the nearest one that does."""
        known = [each.name for each in fields(cls)]
        for name in settings:
            if name not in known:
                raise unknown("setting", name, known)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, read in _READERS.items():
            object.__setattr__(self, name, read(getattr(self, name)))
        for name in ("depth", "concurrency", "attempts"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise SettingError(name, getattr(self, name), "it must be a whole number, 1 or more")
        if not isinstance(self.repeat, int) or not 0 <= self.repeat < MOST_REPEATS:
            raise SettingError("repeat", self.repeat, f"it must be a whole number from 0 to {MOST_REPEATS - 1}")
        for name in ("deadline", "idle", "first_wait"):
            if not getattr(self, name) > 0:
                raise SettingError(name, f"{getattr(self, name):g}", "it must be a number of seconds above 0")
        if self.budget is not None and (not math.isfinite(self.budget) or self.budget < 0):
            raise SettingError("budget", self.budget, "it must be a number of dollars, 0 or more")
        if self.generations is not None and not self.generations.is_dir():
            raise SettingError("generations", self.generations, "there is no such folder")
        if self.generations is not None:
            object.__setattr__(self, "recorded", True)  # a folder was named, so its texts are read

    def __repr__(self) -> str:
        plain = {each.name: each.default for each in fields(self) if each.name not in OF_THIS_PROCESS}
        changed = [f"{name}={getattr(self, name)!r}" for name, value in plain.items() if getattr(self, name) != value]
        return f"Setup({', '.join(changed)})"

    def __reduce__(self) -> tuple[Callable[[], Setup], tuple[()]]:
        # As it arrives on another machine: with the store of that one, without a budget, and with threads.
        left = (*OF_THIS_PROCESS, *OF_THIS_MACHINE)
        return partial(
            Setup, **{each.name: getattr(self, each.name) for each in fields(self) if each.name not in left}
        ), ()

    @property
    def policy(self) -> Policy:
        """Return the retries and time limits of requests."""
        from r2med.foundation.net.retry import Policy

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
OF_THIS_MACHINE = ("generations", "candidates")
"""Files that only this process reads: nodes of a cluster encode and index, and need not have them."""


def parse_bytes(size: int | str) -> int:
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


def printed_bytes(count: int) -> str:
    """Return a number of bytes as one types it, such as 2G."""
    unit = next(unit for unit in ("T", "G", "M", "K", "") if count % _UNITS[unit] == 0)
    return f"{count // _UNITS[unit]}{unit}"


def _model_paths(given: Any) -> tuple[tuple[str, Path], ...]:
    """Return weights by name: from a mapping, from NAME=PATH as one types it, or from pairs."""
    pairs = given.items() if isinstance(given, Mapping) else [_split(each) for each in as_list(given)]
    return tuple((name, typed_path(str(path))) for name, path in pairs)


def _split(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, str):
        return pair[0], pair[1]
    name, equals, path = pair.partition("=")
    if not equals or not name or not path:
        raise SettingError("model_paths", pair, "it must be NAME=FOLDER or NAME=FILE.gguf")
    return name, path


def _path(given: Any) -> Path | None:
    return typed_path(given) if isinstance(given, str) else given


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "memory": parse_bytes,
    "model_paths": _model_paths,
    "generations": _path,
    "candidates": _path,
}
"""What reads a field as one types it: in Python, or on the command line."""

"""Setup: what a spec does not say. How models run, how LLMs are asked, where texts lie, what may be spent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from r2med.core.errors import UserError, unknown
from r2med.core.spec import typed_path
from r2med.engine.engine_names import open_engine
from r2med.engine.work import THREADS, Engine
from r2med.net.budget import Budget
from r2med.net.offline import is_offline, offline
from r2med.store import Store, default_store

if TYPE_CHECKING:
    from r2med.net.retry import Policy


OF_THIS_PROCESS = ("budget", "store", "engine")
"""Fields that mean nothing to another process."""


@dataclass(frozen=True)
class Setup:
    """One flat value for all systems of a run, from flags or from keywords in Python."""

    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps; auto takes all GPUs there are."""
    dtype: str = "auto"
    """auto: float32 on a CPU, bfloat16 (or float16) on a GPU."""
    backend: str = "torch"
    """What runs transformers: torch or openvino."""
    trust_remote_code: bool = False
    """Whether code that a model's repository brings along may run."""
    model_paths: tuple[tuple[str, Path], ...] = ()
    """Weights given by hand: (name of a model or an LLM, folder or file)."""
    memory: int = 2 << 30
    """Bytes that blocks of vectors and batches may take."""
    models_kept: int = field(default=3, compare=False)
    """Models that stay in memory; the default: two towers of one and another, or the dense parts of a fusion."""
    tokens_per_batch: int = 0
    """Tokens that an encoder reads at once; 0: as the device allows."""

    offline: bool = False
    """Refuse every address that is not this machine's own while a system with this setup works."""
    llm: str = ""
    """The LLM of stages that need one and do not name it."""
    llm_backend: str = ""
    """Where LLMs run: openai (an endpoint) or local (llama.cpp in this process); empty: as the card says."""
    threads: int = 0
    """CPU threads of an LLM that runs in this process; 0: as many as there are free cores."""
    base_url: str = ""
    """An OpenAI-compatible endpoint for LLMs; empty: the card's, else OPENAI_BASE_URL, else OpenAI's own."""
    endpoints: tuple[tuple[str, str], ...] = ()
    """(provider, URL) of embedding APIs that are not at their usual address."""
    ask_again: bool = False
    """Ask LLMs again for answers of earlier runs that could not be used: empty, refused, without their marker."""
    concurrency: int = 16
    """Requests at once."""
    deadline: float = 900.0
    """Seconds that the attempts and waits of one request may take together."""
    idle: float = 180.0
    """Seconds without a byte after which a request counts as stalled; some APIs are silent while they reason."""
    attempts: int = 6
    """How often a request is sent, if its failures may pass."""
    first_wait: float = 2.0
    """Seconds at most before the second attempt; twice as many before each further one."""
    budget: Budget = field(default_factory=Budget, compare=False)
    """What everything that costs money may cost together."""

    recorded: bool = False
    """Read generated texts from files and ask no LLM for an expansion."""
    generations: Path | None = None
    """Where recorded texts lie; None: beside the dataset."""
    prompts: str = ""
    """The set of prompt templates, by name or folder, of stages that do not name theirs; empty: those built in."""

    depth: int = 100
    """Candidates that a reranker looks at where its name does not say."""
    candidates: Path | None = None
    """A run for rerankers that are named without a retriever."""
    store: Store = field(default_factory=default_store, compare=False)
    engine: Engine = field(default=THREADS, compare=False)
    """Where models and indexing run: threads of this process, or `ray`, `ray://HOST:PORT`."""

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Raise UserError for a setting that does not exist, with the nearest one that does."""
        known = [each.name for each in fields(cls)]
        for name in settings:
            if name not in known:
                raise unknown("setting", name, known)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        # As one types them in Python: a number of dollars, paths as strings, weights by name.
        if not isinstance(self.budget, Budget):
            object.__setattr__(self, "budget", Budget(self.budget))
        if isinstance(self.engine, str):
            object.__setattr__(self, "engine", open_engine(self.engine, local_only=self.offline or is_offline()))
        if isinstance(self.model_paths, Mapping):
            paths = tuple((name, typed_path(str(path))) for name, path in self.model_paths.items())
            object.__setattr__(self, "model_paths", paths)
        for name in ("generations", "candidates"):
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, typed_path(getattr(self, name)))
        if self.depth < 1:
            raise UserError(f"a reranker's depth is 1 or more, not {self.depth}")
        if self.concurrency < 1:
            raise UserError(f"the number of requests at once is 1 or more, not {self.concurrency}")
        if self.attempts < 1:
            raise UserError(f"the number of attempts at a request is 1 or more, not {self.attempts}")
        for noun, seconds in (
            ("deadline", self.deadline),
            ("idle timeout", self.idle),
            ("first wait", self.first_wait),
        ):
            if not seconds > 0:
                raise UserError(f"the {noun} of a request is a number of seconds above 0, not {seconds:g}")
        if self.generations is not None and not self.generations.is_dir():
            raise UserError(f"--generations {self.generations}: there is no such folder")
        if self.generations is not None:
            object.__setattr__(self, "recorded", True)  # a folder of texts means that they are to be read

    def __repr__(self) -> str:
        plain = {each.name: each.default for each in fields(self) if each.name not in OF_THIS_PROCESS}
        changed = [f"{name}={getattr(self, name)!r}" for name, value in plain.items() if getattr(self, name) != value]
        return f"Setup({', '.join(changed)})"

    def __reduce__(self) -> tuple[Callable[..., Setup], tuple[dict[str, Any]]]:
        # As it arrives on another machine: with the store of that one, no money to spend, and threads.
        plain = (each.name for each in fields(self) if each.name not in OF_THIS_PROCESS)
        return _made, ({name: getattr(self, name) for name in plain},)

    def network(self) -> AbstractContextManager[None]:
        """Return a block in which systems with this setup work: with `offline` nothing is sent to other machines."""
        return offline() if self.offline else nullcontext()

    @property
    def policy(self) -> Policy:
        """Return how patient requests are."""
        from r2med.net.retry import Policy

        return Policy(self.concurrency, self.attempts, self.first_wait, self.deadline, self.idle)

    @staticmethod
    def parse_path(text: str) -> tuple[str, Path]:
        """Read NAME=PATH."""
        name, equals, folder = text.partition("=")
        if not equals or not name or not folder:
            raise UserError(f"--model-path takes NAME=FOLDER or NAME=FILE.gguf, not {text!r}")
        return name, typed_path(folder)

    def path_of(self, name: str) -> Path | None:
        """Return where a model's weights were put by hand: `model_paths` first, then R2MED_MODELS/NAME."""
        for known, path in self.model_paths:
            if known == name:
                if not path.exists():
                    raise UserError(f"--model-path {name}={path}: there is no such file or folder")
                return path
        for folder in filter(None, os.environ.get("R2MED_MODELS", "").split(os.pathsep)):
            path = typed_path(folder) / name
            if path.is_dir():
                return path
            if (file := path.with_name(f"{path.name}.gguf")).is_file():
                return file
        return None


def _made(settings: dict[str, Any]) -> Setup:
    return Setup(**settings)

"""What a spec does not say: how models are run and LLMs asked, where candidates lie, what systems share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from r2med.encoders.options import Options
from r2med.errors import UserError
from r2med.expand import Expansion
from r2med.expand.registry import ExpandOptions
from r2med.rerank.contracts import DEPTH
from r2med.store import Store, default_store


@dataclass(frozen=True)
class Setup:
    """One value for all the systems of a run; those made with the same one share what they expand."""

    models: Options = field(default_factory=Options)
    expansion: ExpandOptions = field(default_factory=ExpandOptions)
    depth: int = DEPTH
    """Candidates that a reranker looks at where its name does not say."""
    candidates: Path | None = None
    """A run for rerankers that are named without a retriever."""
    llm: str = ""
    """The LLM of what needs one and does not name it."""
    store: Store = field(default_factory=default_store)
    expansions: dict[str, Expansion] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise UserError(f"a reranker's depth is 1 or more, not {self.depth}")

"""What a run would do, stage by stage: what is kept, what is to be fetched, about how long, what is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from r2med.core.cards import parameter_count
from r2med.core.errors import UserError
from r2med.core.stages import Stage
from r2med.crossencoders.reranker_cards import RERANKERS, resolve_reranker
from r2med.data import Dataset, load
from r2med.data.dataset_cards import cards
from r2med.encoders.devices import devices
from r2med.encoders.model_cards import MODELS, resolve_card
from r2med.encoders.weights import is_here, is_offline
from r2med.evaluation.batch import Plan
from r2med.llm.costs import Preview
from r2med.llm.journal import answer_seconds
from r2med.llm.llm_cards import find_llm
from r2med.rerank.cross import seconds_per_pair
from r2med.runtime.setup import Setup
from r2med.store.holdings import holdings
from r2med.system import System

TOKENS = 300
"""Tokens of a passage, about."""
CPU, GPU = 6e10, 1.5e14
"""Operations a second of a core and of a GPU, about: for the order of magnitude of a time."""
WRITTEN = 50
"""Tokens that an LLM writes in a second, about."""
INDEXED = 10_000
"""Documents that BM25 indexes in a second, about."""


@dataclass(frozen=True)
class StagePlan:
    """One stage: what is known of its work on all datasets. None where a figure is not known."""

    name: str
    work: str
    """What is to be done, and what of it is kept."""
    fetch: float | None = 0.0
    """Bytes of weights, about; 0 where they are here or none are needed."""
    seconds: float | None = None
    missing: str = ""
    """What would stop it, in one line."""


def stage_plans(plan: Plan) -> Iterator[tuple[System, list[StagePlan]]]:
    """Yield every system with its stages; stages that ask an LLM also have a preview. Nothing is loaded or asked."""
    held = {(h.kind, name, h.model) for h in holdings(plan.setup.store) for name in h.datasets}
    for system in plan.systems:
        stages = [*([system.expander] if system.expander else []), *_leaves(system.retriever), *system.rerankers]
        yield system, [_stage_plan(stage, plan, held) for stage in stages]


def _leaves(retriever: Stage) -> list[Stage]:
    return [leaf for part in getattr(retriever, "parts", ()) for leaf in _leaves(part)] or [retriever]


def _stage_plan(stage: Stage, plan: Plan, held: set[tuple[str, str, str]]) -> StagePlan:
    setup, datasets = plan.setup, plan.dataset_names
    name = str(stage)
    if stage.needs == "llm":
        llm = getattr(stage, "llm", "")
        if stage.kind == "expand" and (setup.recorded or llm == "author"):
            return StagePlan(name, "reads recorded texts", seconds=0.0)
        return StagePlan(name, "asks an LLM, see below", seconds=0.0, missing=_missing_key(llm, setup))
    if stage.kind == "expand":
        return StagePlan(name, "learns from a first search", seconds=0.0)
    source = stage.name.partition(":")[0]
    if source == "run":
        return StagePlan(name, "reads a run that is there; nothing is indexed or encoded", seconds=0.0)
    if source == "pyterrier":
        return StagePlan(name, "runs a pipeline of PyTerrier, which has its own index and weights")
    own_weights = "; weights are the model's own matter" if source in ("py", "mteb") else ""
    kind = "bm25-postings" if stage.name == "bm25" else "vectors"
    model = "" if stage.name == "bm25" else stage.name
    if stage.kind == "rerank":
        depth = getattr(stage, "depth", 0)
        fetch, missing = _weights(stage.name, RERANKERS, resolve_reranker, setup)
        pairs = sum(queries * min(depth, documents) for queries, documents in _sizes(plan.data, setup))
        measured = seconds_per_pair(setup.store, stage.name)
        seconds = _reading_seconds(RERANKERS, stage.name, 2 * pairs, setup) if measured is None else pairs * measured
        return StagePlan(name, f"scores {pairs:,} pairs of queries and documents{own_weights}", fetch, seconds, missing)
    todo = [source for name, source in zip(datasets, plan.data, strict=True) if (kind, name, model) not in held]
    documents = sum(documents for _, documents in _sizes(todo, setup))
    kept = f"{len(datasets) - len(todo)} of {len(datasets)} datasets are kept"
    if not model:
        return StagePlan(name, f"indexes {documents:,} documents; {kept}", seconds=documents / INDEXED)
    fetch, missing = _weights(stage.name, MODELS, resolve_card, setup)
    work = f"encodes {documents:,} documents; {kept}{own_weights}"
    seconds = _reading_seconds(MODELS, stage.name, documents, setup)
    return StagePlan(name, work, fetch if todo else 0.0, seconds, missing)


def asking_seconds(preview: Preview, setup: Setup) -> tuple[float, int]:
    """Return the seconds that asking takes, about, and from how many earlier answers that is known; 0: a guess."""
    about = preview.estimate
    known = answer_seconds(setup.store, preview.card.model)
    seconds = about.calls * sum(known) / len(known) if known else about.completion_tokens / WRITTEN
    is_remote = (setup.llm_backend or ("openai" if setup.base_url else preview.card.backend)) == "openai"
    return seconds / (min(setup.concurrency, max(about.calls, 1)) if is_remote else 1), len(known)


def _sizes(sources: Sequence[str | Dataset], setup: Setup) -> Iterator[tuple[int, int]]:
    """Yield how many queries and documents datasets have: as the card says, or, of data that lies here, by looking."""
    known = cards()
    for source in sources:
        if isinstance(source, str) and source in known and (counts := known[source].counts):
            yield counts.queries, counts.documents
        else:
            dataset = source if isinstance(source, Dataset) else load(source, setup.store)
            yield len(dataset.queries), len(dataset.corpus)


def _weights(
    name: str, known: Mapping[str, Any], resolve: Callable[[str], object], setup: Setup
) -> tuple[float | None, str]:
    """Return the bytes to fetch, about, and what is missing. Raises UserError if the name means no model."""
    card = known.get(name)
    if card is None:
        source = name.partition(":")[0]
        if source not in ("hf", "mteb"):  # these would ask the network
            resolve(name)
        return (None if source == "hf" else 0.0), ""
    if card.loader in ("openai", "voyage") or is_here(card, setup):
        return 0.0, ""
    size = parameter_count(card.parameters)
    missing = "its weights are not here, and the hub is switched off" if is_offline() else ""
    return (None if size is None else size * (4 if size < 1e9 else 2)), missing


def _reading_seconds(known: Mapping[str, Any], name: str, passages: int, setup: Setup) -> float | None:
    """Return how long a model reads so many passages, about; None where its size is not known."""
    card = known.get(name)
    size = parameter_count(card.parameters) if card is not None else None
    if size is None:
        return None
    speed = GPU if devices(setup.device)[0].startswith("cuda") else CPU * (os.cpu_count() or 1)
    return 2 * size * TOKENS * passages / speed


def _missing_key(llm: str, setup: Setup) -> str:
    try:
        card = find_llm(llm, setup)
    except UserError as error:
        return str(error)
    if card is None or card.backend != "openai" or setup.base_url or os.environ.get(card.api_key_env):
        return ""
    local = card.base_url.startswith(("http://127.", "http://localhost"))
    return "" if local or not card.api_key_env else f"{card.api_key_env} is not set: export it before the run"

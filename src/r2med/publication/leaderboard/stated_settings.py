"""Check what a submitted record states about its system: key, name, stages, seeds, recorded texts, its lock."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from r2med.data.dataset import Dataset
from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.public_values import public_value
from r2med.evaluation.records.record import Record, record_key
from r2med.evaluation.records.repeats import stages_of
from r2med.evaluation.running.new_record import seeds_of
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_stages
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store import Store
from r2med.foundation.text.plurals import counted
from r2med.models.llm.chat import FailureKind
from r2med.systems.system import System
from r2med.systems.system.nested_system import NestedSystem

SETTINGS = {"expand", "generations", "retrieve", "rerank", "k", "repeat"}
"""The settings that a record may have. A board shows them, so others are refused: they could hold any text."""

KINDS = {*get_args(FailureKind), "missing", "repeated", "invented", "clipped", "lines", "extra"}
"""The kinds of failures and repairs. A board shows them, so others are refused: they could hold any text."""

BY_DIGEST = {"prompts"}
"""Settings that name files. A record holds a digest of the contents instead."""

CLOCK_MINUTES = 60
"""How far the clock of another machine may be ahead of ours."""

OWN_MODELS = ("py:", "path:", "folds:")
"""How the names of models begin that only their owner has."""


def setting_faults(
    record: Record, dataset: Dataset, locks: Mapping[str, Lock], store: Store, runs: int
) -> Iterator[str]:
    """Yield what does not fit together in the settings of a record. `locks` are those that came with the runs.

    `runs` is the number of runs of its system that are submitted.
    """
    assert record.run is not None
    if record.key != record_key(record.settings, record.dataset.fingerprint):
        yield "its key is not that of its settings and its dataset: make the entry again with r2med submit"
    if invented := sorted(record.settings.keys() - SETTINGS):
        yield f"its settings have {invented[0][:60]!r}, which is not a setting of a system"
    if record.repeat and not record.varies:
        yield f"it is repeat {record.repeat} of a system that does not vary, which has one run"
    if asks_a_server(record.settings) and not record.varies:
        yield "its settings name an LLM behind a server, so it varies, but it says that it does not"
    yield from _stage_faults(record)
    yield from _failure_faults(record, dataset)
    yield from _name_faults(record)
    if record.run.depth != record.settings.get("k"):
        yield f"its run has a depth of {record.run.depth:,}, but its settings say {str(record.settings.get('k'))[:20]}"
    if record.seeds != dict(seeds_of(record.settings)):
        yield "its seeds are not those of its settings"
    if is_in_the_future(record.created):
        yield f"it was made in the future, on {record.created[:60]}"
    yield from _recorded_faults(record, dataset, store)
    yield from lock_faults(record, locks, runs)


def copied_repeats(records: Sequence[Record]) -> dict[str, str]:
    """Return key -> fault for records that are another repeat of the same system with another number.

    Two repeats may give the same ranking, but LLMs never take the same time twice.
    """
    seen: dict[object, Record] = {}
    faults: dict[str, str] = {}
    for record in records:
        times = tuple(stage.cost.seconds for stage in record.stages if stage.can_vary and stage.cost.calls)
        if not any(times):
            continue
        first = seen.setdefault((record.display_name, record.dataset.name, times), record)
        if first is not record:
            both = f"repeat {first.repeat} and repeat {record.repeat}"
            faults[record.key] = f"{both} took exactly the same time, so one is a copy of the other"
    return faults


def copied_rankings(records: Sequence[Record], contents: Sequence[str]) -> dict[str, str]:
    """Return key -> what cannot be checked of a repeat that ranks like an earlier one: if its LLMs were asked anew.

    `contents` are digests of the rankings, without scores and names of files; empty for records with a fault.
    """
    first: dict[object, Record] = {}
    copied = {}
    for record, content in sorted(zip(records, contents, strict=True), key=lambda each: each[0].repeat):
        earlier = first.setdefault((record.display_name, record.dataset.name, content), record)
        if content and earlier.repeat < record.repeat:
            copied[record.key] = f"its ranking is that of repeat {earlier.repeat}, so it may be a copy"
    return copied


def asks_a_server(settings: Any) -> bool:
    """Return True if settings name an LLM behind a server, which answers differently each time."""
    if isinstance(settings, Mapping):
        return settings.get("backend") == "openai" or any(map(asks_a_server, settings.values()))
    return isinstance(settings, list | tuple) and any(map(asks_a_server, settings))


def is_in_the_future(created: str) -> bool:
    """Return True if a time is later than now, also by the clock of another machine. A time without zone is UTC."""
    time = datetime.datetime.fromisoformat(created)
    time = time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
    return time > datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=CLOCK_MINUTES)


def unknown_system(record: Record) -> tuple[str, ...]:
    """Return what could not be checked, because this machine does not know the system of a record."""
    own = any(stage.name.startswith(OWN_MODELS) for stage in record.stages)
    name = joined_stages(stage.name for stage in record.stages)  # a board may show it under another name
    known = _parsed(name) is not None and not own
    return () if known else ("that its settings are those of the system, which is not known here",)


def _stage_faults(record: Record) -> Iterator[str]:
    """Yield faults of the stages of a record, which a board shows beside the settings."""
    settings = record.settings
    expected = ["expand"] * bool(settings.get("expand")) + ["retrieve"] + ["rerank"] * len(settings.get("rerank") or ())
    if [stage.stage for stage in record.stages] != expected:
        yield "its stages are not those of its settings"
    elif joined_stages(stage.name for stage in record.stages) != record.system:
        yield "the names of its stages are not those of its system"


def _failure_faults(record: Record, dataset: Dataset) -> Iterator[str]:
    """Yield failures and repairs of kinds that do not exist, and failures of queries that do not exist."""
    queries = {query.id for query in dataset.queries}
    for stage in record.stages:
        counted = (re.sub(r"^\d+ ", "", kind) for kinds in stage.failed.values() for kind in kinds.split(", "))
        if invented := sorted({*stage.failure_kinds, *stage.repairs, *counted} - KINDS):
            yield f"{invented[0][:60]!r} is not a kind of failure or repair of {stage.name}"
        if lost := sorted(stage.failed.keys() - queries):
            yield f"{stage.name} failed on query {lost[0][:60]!r}, which {dataset.name} does not have"


def _name_faults(record: Record) -> Iterator[str]:
    """Yield a fault if the settings contradict the name of the system. A system that is not known here has none."""
    called = _parsed(record.name) if record.name else None
    if called is not None and called.name != record.system:
        yield f"it is called {called.name}, which is another system"
    system = _parsed(record.system)
    if system is None:
        return
    settings = record.settings
    rerank = settings.get("rerank") or []
    stated = [settings.get("expand") or None, settings.get("retrieve"), *rerank]
    declared = [system.expander, system.retriever, *system.rerankers]
    if len(stated) != len(declared) or any((a is None) != (b is None) for a, b in zip(stated, declared, strict=False)):
        yield f"its settings are not those of {record.system}"
        return
    for stage, values in zip(declared, stated, strict=True):
        if stage is not None and (other := _difference(stage, values)):
            yield f"its settings are not those of {record.system}: {other}"


def _difference(stage: Stage, stated: Any) -> str:
    """Return the first setting whose value in the name of a stage is not that of the record; empty if all are equal.

    A setting that the record leaves out has its default.
    """
    if not isinstance(stated, Mapping):
        return "stage"
    if isinstance(stage, NestedSystem):
        parts = [stated.get("expand"), stated.get("retrieve"), *(stated.get("rerank") or ())]
        inside = (stage.expander, stage.retriever, *stage.rerankers)
        if stated.get("stage") != "system" or [each is None for each in inside] != [each is None for each in parts]:
            return "stage"
        return next(filter(None, (_difference(*each) for each in zip(inside, parts, strict=True) if each[0])), "")
    declared, changed = public_value({**stage.model_dump(mode="json"), "stage": stage.name}), stage.settings()
    for name in _typed(stage, declared):
        if name not in stated:
            differs = name in changed
        elif stages := _stages_in(getattr(stage, name, None)):
            given = stated[name] if isinstance(stated[name], list) else [stated[name]]
            differs = len(given) != len(stages) or any(map(_difference, stages, given))
        else:
            differs = declared[name] != stated[name]
        if differs:
            return name
    return ""


def _stages_in(value: Any) -> list[Stage]:
    return [each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Stage)]


def _typed(stage: Stage, declared: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings that decide what a stage is: its name, its first argument, and all that were typed.

    Others may be absent from a record, because a card or recorded texts decide them.
    """
    changed = {name for name, _ in stage.changed}
    yield from (name for name in ("stage", "llm", "depth", "parts") if name in declared)
    yield from (name for name in declared if name in changed - BY_DIGEST)
    if declared["stage"] == "bm25":  # its values are all that it is
        yield from declared


def _parsed(name: str) -> System | None:
    try:
        return System.parse(name)
    except UserError:
        return None


def _recorded_faults(record: Record, dataset: Dataset, store: Store) -> Iterator[str]:
    """Yield a fault if texts are recorded ones but the settings do not say so, since then their cost is not known."""
    expand = record.settings.get("expand") or {}
    if not expand.get("llm") or expand.get("source") == "recorded":
        return
    [stage] = [stage for stage in record.stages if stage.stage == "expand"]
    if stage.cost.calls < 1 and stage.failures < record.dataset.queries:
        yield f"{stage.name} made no call of its LLM, so its texts are recorded ones, but the settings do not say so"
    try:
        recorded = System.parse(record.system, Setup(store=store, recorded=True)).expand(dataset, store).digest
    except UserError:  # the dataset has no recorded texts of this LLM
        return
    if recorded == record.settings.get("generations"):
        yield f"the texts of {stage.name} are the recorded ones of {dataset.name}, but its settings do not say so"


def lock_faults(record: Record, locks: Mapping[str, Lock], runs: int) -> Iterator[str]:
    """Yield how a record differs from what its lock decided. `runs` is the number of runs of its system."""
    if not record.lock:
        return
    lock = locks.get(record.lock)
    if lock is None:
        yield "its lock is missing: put the file of r2med lock into the folder of the runs"
        return
    facts = record.dataset
    if difference := _public(lock).difference(record.system, facts.name, facts.fingerprint, stages_of(record.settings)):
        yield f"it does not keep to its lock: {difference}"
    elif record.varies and runs != lock.repeats:
        yield f"its lock states {counted(lock.repeats, 'run')}, but the entry has {runs}: submit all of them"
    elif lock.is_after(record.created):
        yield f"it was made before its lock, on {record.created[:60]}"


def _public(lock: Lock) -> Lock:
    """Return a lock without paths and addresses, as in the records of an entry."""
    settings = {public_value(system): public_value(each) for system, each in lock.settings.items()}
    return lock.model_copy(update={"systems": tuple(map(public_value, lock.systems)), "settings": settings})

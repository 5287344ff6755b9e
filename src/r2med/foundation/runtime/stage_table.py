"""Which stage a name declares: a stage of r2med, of a card or of a plugin.

A new stage is one class, named in the file `floor.toml` of its floor, or in the entry-point group `r2med.stages`. A
stage that differs from another only in data is a card.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, PlainSerializer

from r2med.foundation.core import plugins
from r2med.foundation.core.cards import read_toml
from r2med.foundation.core.errors import UserError, nearest, unknown
from r2med.foundation.core.lazy import loaded
from r2med.foundation.core.registry import registered
from r2med.foundation.core.spec import Call, parse_stage
from r2med.foundation.runtime.stages import Stage

log = logging.getLogger("r2med")

Kind = Literal["expand", "retrieve", "rerank"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GROUP = "r2med.stages"


def retriever(calls: Sequence[Call]) -> Stage:
    """Return the retriever of a call. Several calls are fused."""
    parts = tuple(stage(call, "retrieve") for call in calls)
    return parts[0] if len(parts) == 1 else stage_class("fuse", "retrieve")(name="fuse", parts=parts)


def stage(call: Call, kind: Kind) -> Stage:
    """Return the stage of a call."""
    return stage_class(call.name, kind).parse(call)


def kind_of(name: str) -> Kind | None:
    """Return the kind of a name. None if it is unknown, or if its position decides, as for hf:ORG/NAME."""
    base = name.partition(":")[0]
    for kind in KINDS:
        if name in registered(kind).names or base in _cards(kind):
            return kind
    return next((kind for kind in KINDS if name in plugged(kind)), None)


def stage_class(name: str, kind: Kind) -> type[Stage]:
    """Return the class that declares a name. Raises UserError if no stage of this kind has the name."""
    known = registered(kind)
    for prefix, path in known.prefixes.items():
        if name.startswith(prefix):
            return loaded_class(path)
    if name in known.names:
        return loaded_class(known.names[name])
    if (of_card := _card_class(name, kind)) is not None:
        return loaded_class(of_card)
    if name in plugged(kind):
        return plugged(kind)[name]
    if kind != "expand" and (prefix := _forgotten_prefix(name)):
        raise UserError(f"no {NOUNS[kind]} {name!r}: did you mean {prefix}{name}?")
    raise unknown(NOUNS[kind], name, known_names(kind), _MORE.get(kind, ""))


def _forgotten_prefix(name: str) -> str:
    """Return the prefix that makes a word a model of the user's own: path: for a folder, py: for MODULE:NAME."""
    if ("/" in name or os.sep in name) and Path(name).is_dir():
        return "path:"
    return "py:" if Path(f"{name.partition(':')[0]}.py").is_file() and ":" in name else ""


NOUNS: Mapping[Kind, str] = {
    "expand": "expansion",
    "retrieve": "retriever",
    "rerank": "reranker",
}
_MORE: Mapping[Kind, str] = {
    "retrieve": "bm25, one of r2med list models, hf:ORG/NAME or path:DIR",
}


def known_names(kind: Kind) -> list[str]:
    """Return the names of all stages of a kind."""
    return [*registered(kind).names, *sorted(_cards(kind)), *plugged(kind)]


def plugged(kind: str) -> dict[str, type[Stage]]:
    """Return name -> stage for the stages of one kind from installed plugins."""
    return {name: found for name, found in _plugged().items() if found.kind == kind}


def _cards(kind: Kind) -> Collection[str]:
    """Return the names of the cards of a kind."""
    return {name for folder in registered(kind).cards for name in plugins.files(folder, ".toml")}


def _card_class(name: str, kind: Kind) -> str | None:
    """Return the class of a card's stage; None if there is no such card.

    Raises UserError if the field of the card that decides has a wrong value.
    """
    for folder, declared in registered(kind).cards.items():
        file = plugins.files(folder, ".toml").get(name.partition(":")[0])
        if file is None:
            continue
        value = str(read_toml(file).get(declared.field, "")) if declared.field else ""
        path = declared.classes.get(value, declared.classes.get(""))
        if path is None:
            known = declared.classes
            raise UserError(f"{file}: {declared.field} {value!r}{nearest(value, known)}: {' or '.join(known)}")
        return path
    return None


def loaded_class(path: str) -> type[Stage]:
    """Return the class of "module:Class"."""
    found: type[Stage] = loaded(path)
    return found


@cache
def _plugged() -> Mapping[str, type[Stage]]:
    """Return name -> stage for installed plugins. A plugin that cannot be used is left out with a warning."""
    found: dict[str, type[Stage]] = {}
    for entry in metadata.entry_points(group=GROUP):
        if fault := _fault(entry, found):
            log.warning("the plugin %s = %s is left out: %s", entry.name, entry.value, " ".join(fault.split()))
        else:
            found[entry.name] = entry.load()
    return found


def _is_registered(name: str) -> bool:
    return any(name in registered(kind).names or name in _cards(kind) for kind in KINDS)


def _fault(entry: metadata.EntryPoint, found: Collection[str]) -> str:
    """Return why an entry point adds no stage; empty if it adds one."""
    if entry.name in found or _is_registered(entry.name):
        return f"there is a stage {entry.name} already, and a plugin cannot replace it; give it another name"
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:  # importing a plugin may fail in any way
        return f"importing it failed with {type(error).__name__}: {error}"
    if not (isinstance(loaded, type) and issubclass(loaded, Stage) and isinstance(getattr(loaded, "kind", None), str)):
        return "a stage is a subclass of r2med.extend.Stage with a kind"
    return ""


def _retriever(value: Any) -> Any:
    return retriever(parse_stage(value)) if isinstance(value, str) else value


def _retrievers(value: Any) -> Any:
    return tuple(stage(call, "retrieve") for call in parse_stage(value)) if isinstance(value, str) else value


Retrieving = Annotated[Stage, BeforeValidator(_retriever), PlainSerializer(lambda value: value.settings())]
"""A retriever as a setting, as in by=bm25(scorer=lucene)."""
Fused = Annotated[
    tuple[Stage, ...],
    BeforeValidator(_retrievers),
    PlainSerializer(lambda values: [value.settings() for value in values]),
]
"""Retrievers joined by plus signs."""

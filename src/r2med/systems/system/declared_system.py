"""From the calls of a system to its declared stages: expansion, retriever and rerankers, each in its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.names import Kind, built_in_stages, kind_of, known_names
from r2med.foundation.core.spec import ARROW, Call, Calls
from r2med.foundation.runtime import stage_table, stages
from r2med.foundation.runtime.stages import Stage
from r2med.systems.retrieve.candidates import Candidates


class Declared(NamedTuple):
    """The stages of a system. What they do is checked, and nothing is bound."""

    retriever: Stage
    expander: Stage | None = None
    rerankers: tuple[Stage, ...] = ()


def declared(calls: Calls, spec: str, candidates: Path | None = None) -> Declared:
    """Return the stages of a system. Raises UserError if one does not exist or is in a wrong position.

    `spec` is the system as typed. `candidates` are the path of a run that takes the place of a retriever.
    """
    rest = list(calls)
    before = _expansion(rest, spec)
    retriever = _retriever(rest, spec, before, candidates)
    after = tuple(_reranker(stage, spec, retriever) for stage in rest)
    expander = None if before is None else stage_table.stage(before, "expand")
    check_expansion(expander, retriever)
    return Declared(retriever, expander, after)


def check_expansion(expander: Stage | None, retriever: Stage) -> None:
    """Raise UserError if a part of a retriever would not use the text of the expansion before it."""
    if expander is not None and (part := retriever.own_queries()) is not None:
        raise UserError(
            f"{part} makes its own queries, so {expander} before it would have no effect: put the expansion in "
            f"brackets with the retriever that it is for, as in [{expander}{ARROW}bm25]"
        )


def _expansion(calls: list[tuple[Call, ...]], spec: str) -> Call | None:
    """Remove the expansion from the front of the stages and return it, if there is one."""
    if not _is(calls[0], "expand"):
        return None
    [call] = calls.pop(0)
    if calls and _is(calls[0], "expand"):
        raise UserError(f"{calls[0][0]} in {spec!r} is a second expansion: a system has one")
    return call


def _retriever(calls: list[tuple[Call, ...]], spec: str, before: Call | None, candidates: Path | None) -> Stage:
    """Remove the retriever from the front of the stages and return it. Candidates of the setup replace a retriever."""
    anybody = tuple(built_in_stages("rerank").prefixes)
    if candidates is not None:
        if not calls or not (_is(calls[0], "rerank") or calls[0][0].name.startswith(anybody)):
            raise UserError(
                f"{spec!r}: candidates (--candidates {quote(str(candidates))}) is what was retrieved: name the "
                "rerankers that follow it",
            )
        return Candidates.at(candidates)
    if not calls:
        raise UserError(f"{spec!r} is an expansion: add a retriever, as in {before}{ARROW}bm25")
    first = calls.pop(0)
    if _is(first, "rerank"):
        raise UserError(
            f"{first[0]} is a reranker: put a retriever before it, as in bm25{ARROW}{first[0]}, or give a run with "
            "candidates (--candidates FILE)",
        )
    if calls and before is None and len(first) == 1:
        _check_known(first[0].name, spec)
    return stage_table.retriever(first)


def _check_known(name: str, spec: str) -> None:
    """Raise UserError if the first stage is neither an expansion nor a retriever. The message suggests both kinds."""
    if kind_of(name) is None and not name.startswith(tuple(built_in_stages("retrieve").prefixes)):
        expansions = known_names("expand")
        hint = nearest(name, (*expansions, *known_names("retrieve")))
        raise UserError(f"no expansion or retriever {name!r}{hint} in {spec!r}: r2med list stages shows all")


def _reranker(calls: Sequence[Call], spec: str, retriever: Stage) -> Stage:
    typed = "+".join(map(str, calls))
    if _is(calls[:1], "retrieve") or calls[0].system is not None:
        if "by" in stages.settings_of(type(retriever)):  # the form of versions before 1.0
            given = "by" in retriever.model_fields_set
            new = retriever if given else type(retriever)(**{**dict(retriever), "by": typed})
            raise UserError(f"{retriever} in {spec!r} is a retriever itself: write {new}")
        raise UserError(f"{typed} in {spec!r} follows a retriever: join retrievers by +, and systems in brackets")
    if len(calls) > 1:
        raise UserError(f"{typed} in {spec!r}: rerankers cannot be fused; join them by arrows")
    [call] = calls
    if _is(calls, "expand"):
        raise UserError(f"{call} in {spec!r} is an expansion: put it before the retriever")
    return stage_table.stage(call, "rerank")


def _is(calls: Sequence[Call], kind: Kind) -> bool:
    return len(calls) == 1 and kind_of(calls[0].name) == kind

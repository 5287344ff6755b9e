"""From the calls of a system to its declared stages: each call is completed once, then put in its place.

The setup completes a call: presets are spelt out, and LLMs, prompt sets and depths are filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.names import BUILT_IN_STAGES, Kind, kind_of, known_names, stage_class
from r2med.foundation.core.spec import ARROW, Call, Calls, bracketed, encoded, parse, parse_stage
from r2med.foundation.runtime import stages
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Stage
from r2med.systems.retrieve.candidates import Candidates
from r2med.systems.system.presets import PRESETS


def completed(calls: Calls, setup: Setup) -> Calls:
    """Return a system with what its setup gives to the parts: presets spelt out, LLMs, prompt sets, depths.

    Systems in brackets are completed too. Brackets that change nothing are removed.
    """
    calls = _spelt_out(calls, setup.llm)
    first_reranker = (setup.candidates is None) + _is(calls[0], "expand")
    return tuple(
        tuple(completed_call(call, setup, reranks=number >= first_reranker) for call in stage)
        for number, stage in enumerate(calls)
    )


def completed_call(call: Call, setup: Setup, *, reranks: bool = False) -> Call:
    """Return a call, and those inside it, with what the setup gives. Two prompt sets are two systems: a setting."""
    kind = kind_of(call.name)
    stage = None if kind is None else stage_class(call.name, kind)
    call = _completed_inside(call, stage, setup)
    if reranks and call.depth is None and not call.is_bracketed and kind in (None, "rerank"):
        call = replace(call, depth=setup.depth)
    if stage is None:
        return call
    if setup.llm and lacks_llm(call, stage):
        call = replace(call, arguments=(setup.llm,))
    is_recorded = kind == "expand" and (setup.recorded or call.arguments == ("author",))
    if not setup.prompts or is_recorded or "prompts" in dict(call.settings) or "prompts" not in stage.typed_settings:
        return call
    return replace(call, settings=(*call.settings, ("prompts", encoded(setup.prompts))))


def lacks_llm(call: Call, stage: type[Stage]) -> bool:
    """Return True if a stage needs an LLM, and neither its call nor its card names one."""
    return stage.takes == "llm" and not call.arguments and "llm" not in stage.defaults(call.name)


def _completed_inside(call: Call, stage: type[Stage] | None, setup: Setup) -> Call:
    """Return a call with the system in its brackets completed, or the retrievers in its settings."""
    inside = setup.with_settings(candidates=None) if setup.candidates is not None else setup
    if (calls := call.system) is not None:
        return replace(bracketed(completed(calls, inside)), depth=call.depth)
    if stage is None or not (call.arguments or call.settings):
        return call

    def changed(text: str) -> str:
        return "+".join(str(completed_call(part, inside)) for part in parse_stage(text))

    holders = {name for name, field in stage.model_fields.items() if stages.holds_stages(field)}
    arguments = tuple(map(changed, call.arguments)) if stage.argument_name in holders else call.arguments
    settings = tuple((key, changed(value) if key in holders else value) for key, value in call.settings)
    return replace(call, arguments=arguments, settings=settings)


def _spelt_out(calls: Calls, llm: str) -> Calls:
    """Return a system without presets, and without brackets around all of it or around its retriever and rerankers."""
    if len(calls) == len(calls[0]) == 1 and calls[0][0].name in PRESETS:
        calls = parse(PRESETS[calls[0][0].name].spelt_out(calls[0][0], llm))
    before = 1 if _is(calls[0], "expand") and len(calls) > 1 else 0
    [first, *others], rest = calls[before], calls[before + 1 :]
    if others or first.depth is not None or first.system is None:
        return calls
    inside = _spelt_out(first.system, llm)
    # Brackets with an expansion are needed if something else is there: its texts are not for the stages outside.
    if _is(inside[0], "expand") and (before or rest):
        return calls
    return (*calls[:before], *inside, *rest)


class Declared(NamedTuple):
    """The stages of a system. Each has a place that its kind allows."""

    retriever: Stage
    expander: Stage | None = None
    rerankers: tuple[Stage, ...] = ()


def declared(calls: Calls, spec: str, candidates: Path | None = None) -> Declared:
    """Return the stages of a completed system. Raises UserError if one does not exist or is in a wrong position.

    `spec` is the system as typed. `candidates` are the path of a run that takes the place of a retriever.
    """
    expansion, rest = (calls[0][0], calls[1:]) if _is(calls[0], "expand") else (None, calls)
    if expansion is not None and rest and _is(rest[0], "expand"):
        raise UserError(f"{rest[0][0]} in {spec!r} is a second expansion: a system has one")
    if candidates is not None:
        retriever, after = _candidates(rest, spec, candidates), rest
    else:
        retriever, after = _retriever(rest, spec, expansion), rest[1:]
    rerankers = tuple(_reranker(stage, spec, retriever) for stage in after)
    if expansion is None:
        return Declared(retriever, None, rerankers)
    expander = stages.stage_of(expansion, "expand")
    check_expansion(expander, retriever)
    return Declared(retriever, expander, rerankers)


def check_expansion(expander: Stage, retriever: Stage) -> None:
    """Raise UserError if a part of a retriever would not use the text of the expansion before it."""
    if (part := retriever.own_queries()) is not None:
        raise UserError(
            f"{part} makes its own queries, so {expander} before it would have no effect: put the expansion in "
            f"brackets with the retriever that it is for, as in [{expander}{ARROW}bm25]"
        )


def _candidates(calls: Calls, spec: str, path: Path) -> Stage:
    """Return the run that replaces a retriever. Raises UserError unless a reranker comes first."""
    anybody = tuple(BUILT_IN_STAGES["rerank"].prefixes)
    if not calls or not (_is(calls[0], "rerank") or calls[0][0].name.startswith(anybody)):
        raise UserError(
            f"{spec!r}: candidates (--candidates {quote(str(path))}) is what was retrieved: name the "
            "rerankers that follow it",
        )
    return Candidates.at(path)


def _retriever(calls: Calls, spec: str, expansion: Call | None) -> Stage:
    """Return the retriever, which is the first of these stages."""
    if not calls:
        raise UserError(f"{spec!r} is an expansion: add a retriever, as in {expansion}{ARROW}bm25")
    first = calls[0]
    if _is(first, "rerank"):
        raise UserError(
            f"{first[0]} is a reranker: put a retriever before it, as in bm25{ARROW}{first[0]}, or give a run with "
            "candidates (--candidates FILE)",
        )
    if len(calls) > 1 and expansion is None and len(first) == 1:
        _check_known(first[0].name, spec)
    return stages.retriever_of(first)


def _check_known(name: str, spec: str) -> None:
    """Raise UserError if the first stage is neither an expansion nor a retriever. The message suggests both kinds."""
    if kind_of(name) is None and not name.startswith(tuple(BUILT_IN_STAGES["retrieve"].prefixes)):
        expansions = known_names("expand")
        hint = nearest(name, (*expansions, *known_names("retrieve")))
        raise UserError(f"no expansion or retriever {name!r}{hint} in {spec!r}: r2med list stages shows all")


def _reranker(calls: Sequence[Call], spec: str, retriever: Stage) -> Stage:
    typed = "+".join(map(str, calls))
    if _is(calls[:1], "retrieve") or calls[0].is_bracketed:
        if "by" in retriever.typed_settings:  # the form of versions before 1.0
            given = "by" in retriever.model_fields_set
            new = retriever if given else type(retriever)(**{**dict(retriever), "by": typed})
            raise UserError(f"{retriever} in {spec!r} is a retriever itself: write {new}")
        raise UserError(f"{typed} in {spec!r} follows a retriever: join retrievers by +, and systems in brackets")
    if len(calls) > 1:
        raise UserError(f"{typed} in {spec!r}: rerankers cannot be fused; join them by arrows")
    [call] = calls
    if _is(calls, "expand"):
        raise UserError(f"{call} in {spec!r} is an expansion: put it before the retriever")
    return stages.stage_of(call, "rerank")


def _is(calls: Sequence[Call], kind: Kind) -> bool:
    return len(calls) == 1 and kind_of(calls[0].name) == kind

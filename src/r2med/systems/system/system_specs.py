"""Turn typed specs into the calls of systems: replace presets, insert LLM names, and form cross products."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from shlex import quote

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.names import Kind, kind_of, known_names, stage_class
from r2med.foundation.core.spec import Call, Calls, bracketed, encoded, parse, parse_stage, split, variants
from r2med.foundation.runtime import stages
from r2med.foundation.runtime.setup import Setup
from r2med.systems.system.presets import PRESETS


def completed(calls: Calls, setup: Setup) -> Calls:
    """Return a system with what its setup gives to the parts: presets spelt out, LLMs, prompt sets, depths.

    Systems in brackets are completed too. Brackets that change nothing are removed.
    """
    calls = _unbracketed(read(calls, setup.llm))
    last = -1 if setup.candidates is not None else 0  # the position of the retriever
    if _kinds(calls[0]) == ["expand"]:
        last += 1
    return tuple(
        tuple(completed_call(call, setup, reranks=number > last) for call in stage)
        for number, stage in enumerate(calls)
    )


def completed_call(call: Call, setup: Setup, *, reranks: bool = False) -> Call:
    """Return a call with what the setup gives to it. Two prompt sets are two systems, so they are settings."""
    inside = setup.with_settings(candidates=None) if setup.candidates is not None else setup
    call = _changed_inside(call, lambda calls: completed(calls, inside), lambda each: completed_call(each, inside))
    if setup.llm and _lacks_llm(call):
        call = replace(call, arguments=(setup.llm,))
    kind = kind_of(call.name)
    if reranks and call.depth is None and call.system is None and kind in (None, "rerank"):
        call = replace(call, depth=setup.depth)
    if not setup.prompts or kind is None or "prompts" in dict(call.settings):
        return call
    recorded = kind == "expand" and (setup.recorded or call.arguments == ("author",))
    if recorded or "prompts" not in stages.settings_of(stage_class(call.name, kind)):
        return call
    return replace(call, settings=(*call.settings, ("prompts", encoded(setup.prompts))))


def read(spec: str | Calls, llm: str = "") -> Calls:
    """Return the calls of a spec. A preset is replaced by its stages, and `llm` is inserted where an LLM is needed."""
    calls = parse(spec) if isinstance(spec, str) else spec
    if is_preset(calls):
        calls = parse(PRESETS[calls[0][0].name].spelt_out(calls[0][0], llm))
    return with_llm(calls, llm) if llm else calls


def is_preset(calls: Calls) -> bool:
    """Return True if the whole system is one preset."""
    return len(calls) == len(calls[0]) == 1 and calls[0][0].name in PRESETS


def wants_llm(calls: Calls) -> bool:
    """Return True if a part of a system needs an LLM and does not name one."""
    return with_llm(calls, "any") != calls


def with_llm(calls: Calls, llm: str) -> Calls:
    """Return the system with `llm` in every part that needs an LLM and does not name one."""
    if is_preset(calls):
        [[call]] = calls
        return calls if call.arguments else ((replace(call, arguments=(llm,)),),)

    def filled(call: Call) -> Call:
        call = _changed_inside(call, lambda inside: with_llm(inside, llm), filled)
        return replace(call, arguments=(llm,)) if _lacks_llm(call) else call

    return tuple(tuple(map(filled, stage)) for stage in calls)


def _changed_inside(call: Call, system: Callable[[Calls], Calls], part: Callable[[Call], Call]) -> Call:
    """Return a call with the system in its brackets changed, or the retrievers in its settings."""
    if (calls := call.system) is not None:
        return replace(bracketed(system(calls)), depth=call.depth)
    kind = kind_of(call.name)
    if kind is None or not (call.arguments or call.settings):
        return call
    fields = stage_class(call.name, kind).model_fields
    retrievers = {name for name, field in fields.items() if stages.holds_stages(field)}
    if not retrievers:
        return call

    def changed(text: str) -> str:
        return "+".join(str(part(each)) for each in parse_stage(text))

    arguments, settings = call.arguments, call.settings
    if any(stages.place_of(fields[name]) == "argument" for name in retrievers):
        arguments = tuple(map(changed, arguments))
    settings = tuple((key, changed(value) if key in retrievers else value) for key, value in settings)
    return replace(call, arguments=arguments, settings=settings)


def _unbracketed(calls: Calls) -> Calls:
    """Return a system without the brackets around all of it, or around its retriever and the first rerankers."""
    before = 1 if _kinds(calls[0]) == ["expand"] and len(calls) > 1 else 0
    stage, rest = calls[before], calls[before + 1 :]
    inside = stage[0].system if len(stage) == 1 and stage[0].depth is None else None
    if inside is None:
        return calls
    inside = _unbracketed(read(inside))
    # Brackets with an expansion are needed if something else is there: its texts are not for the stages outside.
    if _kinds(inside[0]) == ["expand"] and (before or rest):
        return calls
    return (*calls[:before], *inside, *rest)


def _kinds(stage: Sequence[Call]) -> list[Kind | None]:
    return [kind_of(call.name) for call in stage]


def _lacks_llm(call: Call) -> bool:
    return not call.arguments and _needs_llm(call)


def _asks_llm(call: Call) -> bool:
    """Return True if the first argument of a call is the name of an LLM."""
    kind = kind_of(call.name)
    return kind is not None and stage_class(call.name, kind).takes == "llm"


def _needs_llm(call: Call) -> bool:
    kind = kind_of(call.name)
    if kind is None or not _asks_llm(call):
        return False
    return "llm" not in stage_class(call.name, kind).defaults(call.name)  # a card may have its own model


def cross_product(
    systems: Iterable[str | Calls],
    *,
    expand: Sequence[str] = (),
    rerank: Sequence[str] = (),
    llms: Sequence[str] = (),
) -> list[Calls]:
    """Return every combination of expansion, system and reranker. Those that need an LLM appear once per LLM.

    Braces make several of each: `bge-reranker@{10,20}` is two rerankers.
    Raises UserError if a given method or LLM would have no effect.
    """
    names = llm_names(llms)
    expand, rerank = ([each for text in texts for each in variants(text)] for texts in (expand, rerank))
    chosen = [calls for spec in systems for each in _parsed(spec) for calls in _reranked(each, rerank)]
    used = any(wants_llm(calls) for calls in chosen)
    chosen = [
        each
        for calls in chosen
        for each in ([with_llm(calls, llm) for llm in names] if names and wants_llm(calls) else [calls])
    ]
    if not expand:
        if names and not used:
            raise UserError("llms (--llm) needs a method: expand (--expand hyde), query2doc or lamer")
        return chosen
    expansions = _expansions(expand, names, used)
    return [((expansion,), *calls) for expansion in expansions for calls in chosen]


def llm_names(llms: Iterable[str]) -> list[str]:
    """Return the names of LLMs, also if commas join them. Raises UserError if a name cannot be part of a spec."""
    names = [name.strip() for text in llms for name in text.split(",")]
    for name in names:
        if not name or re.search(r"[()\[\]{}=→]|->", name):
            raise UserError(
                f"llms (--llm {quote(name)}): the name of an LLM must not be empty or contain parentheses, "
                "brackets, braces, '=' or arrows",
            )
    return list(dict.fromkeys(names))


def _parsed(spec: str | Calls) -> list[Calls]:
    return [parse(each) for each in variants(spec)] if isinstance(spec, str) else [spec]


def _reranked(calls: Calls, rerankers: Sequence[str]) -> list[Calls]:
    return [(*calls, *parse(reranker)) for reranker in rerankers] or [calls]


def _expansions(methods: Sequence[str], llms: Sequence[str], llms_used: bool) -> list[Call]:
    calls = [_expansion(part.strip()) for text in methods for part in split(text, ",", text)]
    asking = [call for call in calls if _asks_llm(call)]
    typed = ", ".join(map(str, asking or calls))
    if llms and not llms_used and not any(_lacks_llm(call) for call in calls):
        why = "names or has its LLM already" if asking else "asks no LLM"
        raise UserError(
            f"llms (--llm {quote(llms[0])}): expand (--expand {quote(typed)}) {why}: leave one of the two out"
        )
    return list(itertools.chain.from_iterable(_filled(call, llms) for call in calls))


def _expansion(text: str) -> Call:
    call, *others = parse_stage(text)
    if others:
        raise UserError(f"expand (--expand {quote(text)}): expansions cannot be fused; name each by itself")
    if kind_of(call.name) != "expand":
        raise unknown("expansion", call.name, known_names("expand"))
    return call


def _filled(call: Call, llms: Sequence[str]) -> list[Call]:
    """Return the expansion once per LLM."""
    if not _asks_llm(call):
        return [call]
    if not llms and _lacks_llm(call):
        raise UserError(f"expand (--expand {quote(str(call))}) needs an LLM: llms (--llm NAME) (r2med list llms)")
    return [replace(call, arguments=(llm,)) for llm in llms] if _lacks_llm(call) else [call]

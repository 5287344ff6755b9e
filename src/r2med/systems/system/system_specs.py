"""Every combination of what was typed: systems, expansions, rerankers and LLMs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from shlex import quote

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.names import kind_of, known_names, stage_class
from r2med.foundation.core.spec import Call, Calls, parse, parse_stage, split, variants
from r2med.foundation.runtime.setup import Setup
from r2med.systems.system.declared_system import completed, lacks_llm


def cross_product(
    systems: Iterable[str | Calls],
    setup: Setup,
    *,
    expand: Sequence[str] = (),
    rerank: Sequence[str] = (),
    llms: Sequence[str] = (),
) -> list[Calls]:
    """Return every combination of expansion, system and reranker. Those that need an LLM appear once per LLM.

    Braces make several of each: `bge-reranker@{10,20}` is two rerankers.
    Raises UserError if a given method or LLM would have no effect.
    """
    parsed = [calls for spec in systems for calls in (_parsed([spec]) if isinstance(spec, str) else [spec])]
    rerankers = _parsed(rerank) or [()]
    chosen = [(*calls, *reranker) for calls in parsed for reranker in rerankers]
    names = llm_names(llms)
    wanting = [calls for calls in chosen if names and _wants_llm(calls, setup)]
    if names and not wanting and not expand:
        raise UserError("llms (--llm) needs a method: expand (--expand hyde), query2doc or lamer")
    filled: list[Calls] = []
    for calls in chosen:
        filled += [_with_llm(calls, llm, setup) for llm in names] if calls in wanting else [calls]
    if not expand:
        return filled
    expansions = _expansions(expand, names, bool(wanting))
    return [((expansion,), *calls) for expansion in expansions for calls in filled]


def _parsed(specs: Iterable[str]) -> list[Calls]:
    return [parse(variant) for spec in specs for variant in variants(spec)]


def _with_llm(calls: Calls, llm: str, setup: Setup) -> Calls:
    """Return the system with `llm` in every part that needs an LLM and does not name one."""
    return completed(calls, setup.with_settings(llm=llm))


def _wants_llm(calls: Calls, setup: Setup) -> bool:
    """Return True if a part of a system needs an LLM and does not name one, so that the choice changes the system."""
    return _with_llm(calls, "any", setup) != _with_llm(calls, "other", setup)


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


def _expansions(methods: Sequence[str], llms: Sequence[str], llms_used: bool) -> list[Call]:
    calls = [_expansion(part.strip()) for text in methods for method in variants(text) for part in split(method, ",")]
    asking = [call for call in calls if stage_class(call.name, "expand").takes == "llm"]
    typed = ", ".join(map(str, asking or calls))
    if llms and not llms_used and not any(map(_lacks_llm, calls)):
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


def _lacks_llm(call: Call) -> bool:
    return lacks_llm(call, stage_class(call.name, "expand"))


def _filled(call: Call, llms: Sequence[str]) -> list[Call]:
    """Return the expansion once per LLM."""
    if not _lacks_llm(call):
        return [call]
    if not llms:
        raise UserError(f"expand (--expand {quote(str(call))}) needs an LLM: llms (--llm NAME) (r2med list llms)")
    return [replace(call, arguments=(llm,)) for llm in llms]

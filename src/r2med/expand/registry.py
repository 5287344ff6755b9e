"""From what is typed to an expander: an LLM's texts, recorded or asked for now, or feedback without an LLM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from r2med.errors import UserError, nearest
from r2med.expand import feedback
from r2med.expand.contracts import Expander
from r2med.expand.recorded import METHODS, Recorded
from r2med.llm.llm_cards import LLMCard, llm_card, llms
from r2med.setup import Setup
from r2med.spec import Call
from r2med.store import Store

KNOWN = (*METHODS, *feedback.METHODS)

ASKED = ("samples", "rounds", "by")
"""Settings of how an LLM is asked, which texts that are there already cannot have."""

AUTHOR = "author"
"""Whoever wrote a dataset's hand-written texts: no LLM, whatever endpoint is named beside it."""


def build(call: Call, options: Setup, store: Store) -> Expander:
    """Return the expander of a call."""
    if call.depth is not None:
        raise UserError(f"{call}: only rerankers have a depth")
    if call.name in feedback.METHODS:
        return _feedback(call)
    if call.name not in METHODS:
        raise UserError(f"no expansion {call.name!r}{nearest(call.name, KNOWN)}: {', '.join(KNOWN)}")
    if len(call.arguments) != 1:
        raise UserError(f"{call.name} needs the name of a model, such as {call.name}(author)")
    llm = call.arguments[0]
    if _is_recorded(call.name, llm, options):
        return _recorded(call, llm, options)
    return _generated(call, llm, options, store)


def _recorded(call: Call, llm: str, options: Setup) -> Expander:
    for key, _ in call.settings:
        if key in ASKED:
            there = options.recorded or llm == AUTHOR
            why = "its recorded texts are all searched, as they are" if there else no_such_llm(llm)
            raise UserError(f"{call}: {key} is for an LLM that is asked: {why}")
    otherwise = "" if options.recorded or llm == AUTHOR else f"; {no_such_llm(llm)}"
    return Recorded(call.name, llm, folder=options.generations, otherwise=otherwise, **call.typed({"query": str}))


def no_such_llm(llm: str) -> str:
    """Return what to tell of an LLM that cannot be asked."""
    return f"no LLM to ask has this name{nearest(llm, llms())}: r2med llms list, or --base-url URL for any endpoint's"


def _is_recorded(method: str, llm: str, options: Setup) -> bool:
    """Tell whether texts come from files: if they are asked for, or if there is no such LLM to ask."""
    from r2med.expand.generate import GENERATED

    if options.recorded or method not in GENERATED or llm == AUTHOR:
        return True
    return llm not in llms() and not options.base_url


def _generated(call: Call, llm: str, options: Setup, store: Store) -> Expander:
    from r2med.expand.generate import Generated, Settings
    from r2med.llm.open import card_for_endpoint, open_chat

    settings = call.typed({"samples": int, "rounds": int, "query": str, "by": str})
    by = settings.pop("by", None)
    if by and not settings.get("rounds"):
        raise UserError(f"{call}: by={by} searches between rounds, and there are none: give rounds=1 or more")
    card: LLMCard = llm_card(llm) if llm in llms() else card_for_endpoint(llm, options.base_url)
    searcher = {"by": _retriever(by, options)} if by else {}
    model = open_chat(card, options, store)
    return Generated(call.name, model, card, Settings(prompts=options.prompts, **settings), **searcher)


def _feedback(call: Call) -> Expander:
    kinds: dict[str, Callable[[str], Any]] = {
        "documents": int,
        "terms": int,
        "alpha": float,
        "beta": float,
        "by": _bm25,
    }
    settings = call.typed(kinds)
    if call.arguments:
        raise UserError(f"{call.name} takes no model: it learns from what BM25 finds")
    if "by" in settings:
        settings["search"] = settings.pop("by")
    return feedback.Feedback(call.name, **settings)


def _retriever(spec: str, options: Setup) -> Any:
    from r2med.stages import retriever

    return retriever(spec).open(options)


def _bm25(spec: str) -> Any:
    from r2med.retrieve.bm25 import BM25

    found = _retriever(spec, Setup())
    if not isinstance(found, BM25):
        raise UserError(f"feedback is learnt from BM25's results, not from {spec}'s")
    return found

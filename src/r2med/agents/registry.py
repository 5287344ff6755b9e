"""From what is typed to a search agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.errors import UserError, nearest

if TYPE_CHECKING:
    from r2med.agents.sources import Searchable
    from r2med.expand.contracts import Expander
    from r2med.setup import Setup
    from r2med.spec import Call
    from r2med.store import Store

METHODS = ("search-r1", "search-o1")


def build(call: Call, options: Setup, store: Store) -> Expander:
    """Return the agent of a call, with its LLM open; nothing is asked or searched yet."""
    from dataclasses import replace

    from r2med.agents.expander import SearchAgent
    from r2med.agents.settings import DEFAULTS
    from r2med.llm.llm_cards import llm_card, llms
    from r2med.llm.open import card_for_endpoint, open_chat

    if call.name not in METHODS:
        raise UserError(f"no search agent {call.name!r}{nearest(call.name, METHODS)}: {', '.join(METHODS)}")
    if len(call.arguments) != 1:
        raise UserError(f"{call.name} needs the name of an LLM, such as {call.name}(qwen-7b)")
    llm = call.arguments[0]
    given = call.typed({name: str if name in _WORDS else int for name in _named(call.name)})
    source = _source({name: given.pop(name, "") for name in ("by", "corpus", "remote")}, options, store)
    settings = replace(DEFAULTS[call.name], prompts=options.prompts, **given)
    asks = llm in llms() or not options.base_url
    card = llm_card(llm) if asks else card_for_endpoint(llm, options.base_url)
    return SearchAgent(call.name, open_chat(card, options, store), card, source, settings)


_WORDS = ("by", "corpus", "remote", "via", "template")


def _named(method: str) -> tuple[str, ...]:
    # Search-R1 has no limit of searches but its turns.
    counts = ("turns", "topk") if method == "search-r1" else ("turns", "searches", "topk")
    return (*counts, *_WORDS)


def _source(given: dict[str, str], options: Setup, store: Store) -> Searchable:
    from r2med.agents.remote import Remote
    from r2med.agents.sources import Ours
    from r2med.stages import retriever

    if given["remote"]:
        if given["by"] or given["corpus"]:
            raise UserError("remote= names a server that searches: by= and corpus= are for searches made here")
        return Remote(given["remote"])
    by = retriever(given["by"] or "bm25").open(options)
    return Ours(by, given["corpus"], store)

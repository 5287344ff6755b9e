"""From what is typed to a reranker: a cross-encoder by its card, an LLM by a method, or an object of the user's."""

from __future__ import annotations

from r2med.errors import UserError, nearest
from r2med.rerank.contracts import Reranker
from r2med.rerank.cross import PREFIXES, known
from r2med.rerank.cross import build as build_cross
from r2med.rerank.llm import METHODS as BY_LLM
from r2med.rerank.llm import build as build_llm
from r2med.setup import Setup
from r2med.spec import Call
from r2med.store import Store


def is_reranker(stage: list[Call]) -> bool:
    """Tell whether a stage names a reranker; hf:, path: and py: may be retrievers as well, so their place decides."""
    return len(stage) == 1 and stage[0].name in (*BY_LLM, *known())


def build(call: Call, setup: Setup, depth: int, store: Store) -> Reranker:
    """Return the reranker of a call; `depth` is for one that does not say how deep it looks."""
    depth = depth if call.depth is None else call.depth
    if depth < 1:
        raise UserError(f"{call}: a reranker's depth is 1 or more")
    if call.name in BY_LLM:
        return _by_llm(call, setup, depth, store)
    if call.name not in known() and not call.name.startswith(PREFIXES):
        names = [*BY_LLM, *known()]
        hint = nearest(call.name, names)
        raise UserError(f"no reranker {call.name!r}{hint}: {', '.join(names)}, hf:ORG/NAME, path:DIR or py:MODULE:NAME")
    return build_cross(call, setup, depth)


def _by_llm(call: Call, setup: Setup, depth: int, store: Store) -> Reranker:
    from r2med.llm.llm_cards import llm_card, llms
    from r2med.llm.open import card_for_endpoint, open_chat

    if len(call.arguments) != 1:
        raise UserError(f"{call.name} needs the name of an LLM, such as {call.name}(o3-mini), or --llm NAME")
    llm = call.arguments[0]
    card = llm_card(llm) if llm in llms() or not setup.base_url else card_for_endpoint(llm, setup.base_url)
    return build_llm(call, open_chat(card, setup, store), card, setup.prompts, depth)

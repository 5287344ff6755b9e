"""From what is typed to a retriever: BM25, any embedding model, or several fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from r2med.errors import UserError, nearest
from r2med.retrieve.contracts import Retriever
from r2med.setup import Setup
from r2med.spec import Call, parse_stage

PREFIXES = ("hf:", "path:", "py:")
"""Models without a card: of the hub, of a folder, an object of the user's."""

CANDIDATES = "run:"
"""A run file instead of a search."""


def build(calls: list[Call], options: Setup) -> Retriever:
    """Return the retriever of one stage; several calls are fused."""
    if len(calls) == 1:
        return _build_one(calls[0], options)
    from r2med.retrieve.fusion import Fusion

    return Fusion(tuple(_build_one(call, options) for call in calls))


def known() -> list[str]:
    """Return the names of all retrievers."""
    from r2med.encoders.model_cards import models

    return ["bm25", "fuse", *models()]


def _build_one(call: Call, options: Setup) -> Retriever:
    if call.name == "bm25":
        from r2med.retrieve.bm25 import BM25

        return BM25(**_settings(call, {"scorer": str, "k1": float, "b": float}))
    if call.name.startswith(CANDIDATES):
        from r2med.retrieve.candidates import Candidates

        _settings(call, {})
        return Candidates.named(call.name)
    if call.name == "fuse":
        return _fuse(call, options)
    return _dense(call, options)


def _fuse(call: Call, options: Setup) -> Retriever:
    from r2med.retrieve.fusion import Fusion

    if len(call.arguments) != 1:
        raise UserError(f"{call}: write the parts first, as in fuse(bm25+bge, method=minmax)")
    kinds: dict[str, Callable[[str], Any]] = {
        "method": str,
        "weights": lambda text: tuple(float(part) for part in text.split(":")),
        "queries": lambda text: tuple(text.split(":")),
        "depth": int,
    }
    settings = _settings(Call(call.name, (), call.settings), kinds)
    parts = tuple(_build_one(part, options) for part in parse_stage(call.arguments[0]))
    return Fusion(parts, **settings)


def _dense(call: Call, options: Setup) -> Retriever:
    from r2med.encoders.model_cards import models

    if not call.name.startswith(PREFIXES) and call.name not in models():
        hint = nearest(call.name, known())
        raise UserError(f"no retriever {call.name!r}{hint}: bm25, one of r2med models list, hf:ORG/NAME or path:DIR")
    from r2med.encoders.open import card_of
    from r2med.retrieve.dense import Dense

    _settings(call, {})
    typed = call.name if call.name not in models() else ""
    return Dense(card_of(call.name), options, typed)


def _settings(call: Call, kinds: dict[str, Callable[[str], Any]]) -> dict[str, Any]:
    if call.depth is not None:
        raise UserError(f"{call}: only rerankers have a depth, and stand after a retriever: bm25 → bge-reranker@100")
    if call.arguments:
        raise UserError(f"{call.name} does not know what {call.arguments[0]!r} is: settings are written KEY=VALUE")
    return call.typed(kinds)

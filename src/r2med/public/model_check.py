"""Test if an embedding model or a reranker runs here, as `r2med doctor --model` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.models.encoders.encoder import Role

ROLES: tuple[Role, ...] = ("query", "document", "generated")

SAMPLES = (
    "A young woman with facial swelling after dental work, and an aunt who died of choking.",
    "Hereditary angioedema is caused by a deficiency of C1 esterase inhibitor.",
)


def checked_model(name: str, runtime: Runtime) -> Iterator[str]:
    """Load a model, encode a query and a document, and yield how; of a reranker, score two pairs."""
    from r2med.foundation.core.errors import UserError
    from r2med.models.crossencoders.reranker_cards import RERANKERS, is_served
    from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS

    if name in LLM_RERANKERS:
        system = f"bm25 → {name}@20" if LLM_RERANKERS[name].llm else f"bm25 → {name}(LLM)@20"
        raise UserError(
            f"{name} asks an LLM and loads no model here; r2med run '{system}' --data demo --plan shows what it asks, "
            "and r2med doctor --base-url URL tests the server"
        )
    yield from (_reranker if name in RERANKERS or is_served(name) else _encoder)(name, runtime)


def _encoder(name: str, runtime: Runtime) -> Iterator[str]:
    import time

    import numpy as np

    from r2med.data.dataset_cards import ANY_DATASET
    from r2med.foundation.store import default_store
    from r2med.models.encoders.encoder import open_encoder
    from r2med.models.encoders.known_pairs import check_pairs
    from r2med.models.encoders.model_cards import LATE_LOADERS, resolve_card

    started = time.perf_counter()
    card = resolve_card(name)
    encoder = open_encoder(card, ANY_DATASET, runtime, default_store())
    if card.loader in LATE_LOADERS:
        yield from _late_encoder(name, encoder)
        return
    query = encoder.encode(SAMPLES[:1], "query").vectors[0]
    loaded = time.perf_counter()
    document = encoder.encode(SAMPLES[1:], "document").vectors[0]
    seconds = time.perf_counter() - loaded
    norms = [float(np.linalg.norm(vector)) for vector in (query, document)]
    cosine = float(query @ document) / (norms[0] * norms[1])
    yield f"{name}: {len(query)} dimensions; norms {norms[0]:.4f} (query), {norms[1]:.4f} (document)"
    yield f"cosine of a case and its diagnosis: {cosine:.4f}"
    if card.known_pairs:
        check_pairs(encoder, card)  # again, even if the store says that they passed once
        yield f"known pairs: all {len(card.known_pairs)} queries are nearest to their own passage"
    yield f"loaded and first text in {loaded - started:.1f} s, then {1 / max(seconds, 1e-9):.1f} texts/s one by one"
    yield from _roles({role: encoder.key(role) for role in ROLES})


def _late_encoder(name: str, encoder: Any) -> Iterator[str]:
    """Yield how many rows a text has in a model that has no single vector for it, and the score of two texts."""
    sides = [encoder.encode([text], role) for text, role in zip(SAMPLES, ROLES[:2], strict=True)]
    query, document = (side.arrays for side in sides)
    if "vectors" in query:
        from r2med.systems.retrieve.exact.exact_scores import maxsim

        rows = f"vectors of {query['vectors'].shape[1]} dimensions"
        score = maxsim(query["vectors"], document["vectors"])
    else:
        weights = dict(zip(document["terms"].tolist(), document["weights"].tolist(), strict=True))
        pairs = zip(query["terms"].tolist(), query["weights"].tolist(), strict=True)
        rows, score = "terms with a weight", sum(weight * weights.get(term, 0.0) for term, weight in pairs)
    yield f"{name}: {sides[0].offsets[1]} (query) and {sides[1].offsets[1]} (document) {rows}"
    yield f"score of a case and its diagnosis: {score:.4f}"
    yield from _roles({role: encoder.key(role) for role in ROLES})


def _roles(keys: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield how texts of each role are encoded: first the settings of all roles, then those of each role."""
    first, *others = keys.values()
    shared = {key for key, value in first.items() if all(key in other and other[key] == value for other in others)}
    yield from _settings(", ".join(keys), {key: first[key] for key in first if key in shared})
    for role, settings in keys.items():
        yield from _settings(role, {key: value for key, value in settings.items() if key not in shared})


def _settings(title: str, settings: Mapping[str, Any]) -> Iterator[str]:
    if settings:
        yield f"{title}:"
    for key, value in settings.items():
        yield f"  {key}: {value!r}"


def _reranker(name: str, runtime: Runtime) -> Iterator[str]:
    import time

    from r2med.data.dataset_cards import ANY_DATASET
    from r2med.models.crossencoders.pair_scorer import open_scorer
    from r2med.models.crossencoders.reranker_cards import resolve_reranker

    scorer = open_scorer(resolve_reranker(name), ANY_DATASET, runtime)
    started = time.perf_counter()
    [right] = scorer.score([SAMPLES])
    loaded = time.perf_counter()
    [wrong] = scorer.score([(SAMPLES[0], "Income tax is due at the end of the month.")])
    seconds = time.perf_counter() - loaded
    scores = f"{right.score:.4f} for a case and its diagnosis, {wrong.score:.4f} for the case and a tax notice"
    yield f"{name}: {scores}"
    yield f"loaded and first pair in {loaded - started:.1f} s, then {1 / max(seconds, 1e-9):.1f} pairs/s one by one"
    yield from _settings("query and document", scorer.key())

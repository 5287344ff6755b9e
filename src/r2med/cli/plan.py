"""`--dry-run`: what a run would ask of LLMs, about what it would cost, and three prompts in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2med.data import Dataset
    from r2med.expand import Expander
    from r2med.llm.contracts import ChatRequest
    from r2med.llm.llm_cards import LLMCard
    from r2med.rerank import Reranker
    from r2med.store import Store
    from r2med.system import System

SHOWN = 3


def show_plan(systems: list[System], datasets: list[str], store: Store) -> None:
    """Print what a run of these systems would ask; nothing is asked."""
    from r2med.data import load

    stages = [stage for system in systems for stage in (system.expander, *system.rerankers) if stage is not None]
    # Without such a stage nothing has to be read, let alone fetched, to know that nothing is asked.
    show_stages(stages, [load(word, store) for word in datasets if stages], store)


def show_stages(stages: Sequence[Expander | Reranker], datasets: Sequence[Dataset], store: Store) -> None:
    """Print calls, tokens and cost of each stage, and the first prompts; what would stop one does so here too."""
    from r2med.expand.expansion import check

    distinct = {stage.name: stage for stage in stages}.values()
    check(distinct, datasets)
    by_stage = [_show(stage, datasets, store) for stage in distinct]
    asking = [requests for requests in by_stage if requests is not None]
    if not asking:
        print("no LLM would be asked")
    # One of each stage first: three of the first would show nothing of the others.
    shown = [request for together in zip_longest(*asking) for request in together if request is not None]
    _show_prompts(shown[:SHOWN])


def _show(stage: Expander | Reranker, datasets: Sequence[Dataset], store: Store) -> Sequence[ChatRequest] | None:
    """Print what one stage would ask; return its first requests, None if it asks no LLM."""
    from r2med.expand.expansion import Asking
    from r2med.rerank.judge import LLMReranker

    if isinstance(stage, LLMReranker):
        requests = [request for dataset in datasets for request in stage.would_ask(dataset, store)]
        print(f"{stage.name}: about {len(requests):,} calls, with documents that stand in for what will be found")
        _show_estimate(requests, stage.card)
        return requests[:SHOWN]
    if not isinstance(stage, Asking):
        return None
    previews = [stage.preview(dataset, store) for dataset in datasets]
    if not previews:
        return []
    requests = list(dict.fromkeys(request for preview in previews for request in preview.requests))
    missing = list(dict.fromkeys(request for preview in previews for request in preview.unanswered))
    card, note = previews[0].card, previews[0].note
    print(f"{stage.name}: {len(missing):,} calls, {len(requests) - len(missing):,} answered already")
    _show_estimate(missing, card, f"; {note}" if note else "")
    cut, unfit = sum(preview.cut for preview in previews), sum(preview.unfit for preview in previews)
    if cut or unfit:
        room = f"{card.context_length:,} tokens"
        print(f"  {cut:,} prompts would be cut to fit {room}, {unfit:,} would not fit at all and not be asked")
    return requests[:SHOWN]


def _show_estimate(requests: Sequence[ChatRequest], card: LLMCard, more: str = "") -> None:
    from r2med.llm.price import estimate

    about = estimate(requests, card)
    dollars = f"about ${about.cost_usd:.2f}, at most ${about.cost_at_most_usd:.2f}"
    priced = "price" in card.model_fields_set
    print(f"  {about.prompt_tokens:,} prompt tokens and about {about.completion_tokens:,} completion tokens")
    print(f"  {dollars if priced else 'what it costs is not known: it has no card with a price'}{more}")


def _show_prompts(requests: Iterable[ChatRequest]) -> None:
    from r2med.cli import printable

    for number, request in enumerate(requests, 1):
        messages = "\n".join(f"[{message.role}]\n{message.content}" for message in request.messages)
        text = messages if request.prompt is None else request.prompt
        print(f"\n--- prompt {number} ---")
        print("\n".join(map(printable, text.split("\n"))))

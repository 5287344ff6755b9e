"""`--dry-run`: what a run would ask of LLMs, about what it would cost, and three prompts in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2med.agents.expander import SearchAgent
    from r2med.data import Dataset
    from r2med.expand import Expander
    from r2med.expand.generate import Generated
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
    from r2med.expand.contracts import check

    distinct = {stage.name: stage for stage in stages}.values()
    check(distinct, datasets)
    asking = [stage for stage in distinct if not isinstance(getattr(stage, "llm", ""), str)]
    if not asking:
        print("no LLM would be asked")
    by_stage = [_show(stage, datasets, store) for stage in asking]
    # One of each stage first: three of the first would show nothing of the others.
    shown = [request for together in zip_longest(*by_stage) for request in together if request is not None]
    _show_prompts(shown[:SHOWN])


def _show(stage: Expander | Reranker, datasets: Sequence[Dataset], store: Store) -> Iterable[ChatRequest]:
    """Print what one stage would ask; return its first requests."""
    from r2med.agents.expander import SearchAgent
    from r2med.expand.generate import Generated
    from r2med.rerank.judge import LLMReranker

    if isinstance(stage, Generated):
        return _show_generated(stage, datasets, store)
    if isinstance(stage, LLMReranker):
        requests = [request for dataset in datasets for request in stage.would_ask(dataset, store)]
        print(f"{stage.name}: about {len(requests):,} calls, with documents that stand in for what will be found")
        _show_estimate(requests, stage.card)
        return requests[:SHOWN]
    return _show_agent(stage, datasets) if isinstance(stage, SearchAgent) else []


def _show_agent(agent: SearchAgent, datasets: Sequence[Dataset]) -> Iterable[ChatRequest]:
    requests = [request for dataset in datasets for request in agent.opening(dataset)]
    count = sum(len(dataset.queries) for dataset in datasets)
    print(f"{agent.name}: a conversation of up to {agent.most_calls} calls for each of {count:,} queries")
    _show_estimate(requests, agent.card, " for the first calls alone; prompts grow with every search")
    return requests[:SHOWN]


def _show_generated(expander: Generated, datasets: Sequence[Dataset], store: Store) -> Iterable[ChatRequest]:
    from r2med.llm.contracts import Failure
    from r2med.llm.model import JournaledChat

    prepared = [expander.prepare(dataset, store) for dataset in datasets]
    requests = list(dict.fromkeys(request for part in prepared for request in part.requests))
    llm = expander.llm
    missing = llm.unanswered(requests) if isinstance(llm, JournaledChat) else requests
    print(f"{expander.name}: {len(missing):,} calls, {len(requests) - len(missing):,} answered already")
    times = expander.settings.rounds + 1
    _show_estimate(
        missing, expander.card, f"; about {times} times that with its rounds of refinement" if times > 1 else ""
    )
    cut = sum(part.cut for part in prepared)
    unfit = sum(isinstance(prompt, Failure) for part in prepared for prompt in part.prompts)
    if cut or unfit:
        room = f"{expander.card.context_length:,} tokens"
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

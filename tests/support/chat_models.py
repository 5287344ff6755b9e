"""Chat models behind the chat server on loopback, opened, asked and read as their tests need it."""

from pathlib import Path
from typing import Any

from r2med.llm.contracts import ChatRequest, Failure, Generation, Message, Sampling
from r2med.llm.llm_cards import LLMCard, Price
from r2med.llm.model import JournaledChat
from r2med.llm.open import open_chat
from r2med.net.budget import Budget
from r2med.net.retry import Policy
from r2med.setup import Setup
from r2med.store import Store
from support.chat_server import Server

FAST = Policy(first_wait=0.001, idle=60, deadline=240)
HASTY = Policy(first_wait=0.001, idle=2, deadline=240)
"""For tests that wait until silence is noticed: not so hasty that a busy machine makes sound answers look stalled."""
SYSTEM = Message("system", "You are a helpful assistant.")


def card(**changes: Any) -> LLMCard:
    settings: dict[str, Any] = {"name": "m", "model": "org/m", "price": Price(prompt=1e6, completion=1e6)}
    return LLMCard(**(settings | {"max_tokens": 20} | changes))


def ask(*questions: str, sample: int = 0, **sampling: Any) -> list[ChatRequest]:
    return [ChatRequest((SYSTEM, Message("user", q)), Sampling(**sampling), sample) for q in questions]


def numbered(count: int) -> list[ChatRequest]:
    return ask(*(f"question {i}" for i in range(count)))


def opened(
    server: Server,
    home: Path,
    policy: Policy = FAST,
    concurrency: int = 16,
    budget: float | None = None,
    **changes: Any,
) -> JournaledChat:
    options = Setup(base_url=server.address, concurrency=concurrency, budget=Budget(budget))
    return open_chat(card(**changes), options, Store(home), policy=policy)


def texts(outcomes: list[Generation | Failure]) -> list[str]:
    assert all(isinstance(outcome, Generation) for outcome in outcomes), outcomes
    return [outcome.text for outcome in outcomes if isinstance(outcome, Generation)]


def one(outcomes: list[Generation | Failure], kind: str) -> Failure:
    (outcome,) = outcomes
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome
    assert "\n" not in outcome.message
    return outcome

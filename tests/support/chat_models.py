"""Chat models behind the chat server on loopback, opened, asked and read as their tests need it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.models.llm.chat import ChatRequest, Failure, Generation, Message, RawAnswer, Sampling
from r2med.models.llm.journal import JournalEntry, open_journal, request_key
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, Price
from support.chat_server import Server

PATIENT = Setup(first_wait=0.001, idle=60, deadline=240)
"""Waits between attempts are short, and nothing that is only slow counts as stalled."""
HASTY: dict[str, Any] = {"idle": 2}
"""For tests that wait until silence is noticed: not so hasty that a busy machine makes sound answers look stalled."""
SYSTEM = Message("system", "You are a helpful assistant.")

_OF_SETUP = {"concurrency", "idle", "deadline", "attempts", "ask_again"}


def card(**changes: Any) -> LLMCard:
    settings: dict[str, Any] = {"name": "m", "model": "org/m", "price": Price(prompt=1e6, completion=1e6)}
    return LLMCard(**(settings | {"max_tokens": 20} | changes))


def save_answer(store: Store, key: bytes, model: str, answer: RawAnswer | Failure) -> None:
    """Put an answer into the journal of a store."""
    with open_journal(store, model) as journal:
        journal.put({key: JournalEntry(answer)})


def ask(*questions: str, sample: int = 0, **sampling: Any) -> list[ChatRequest]:
    return [ChatRequest((SYSTEM, Message("user", q)), Sampling(**sampling), sample) for q in questions]


def numbered(count: int) -> list[ChatRequest]:
    return ask(*(f"question {i}" for i in range(count)))


def setup(server: Server, home: Path, budget: float | None = None, **changes: Any) -> Runtime:
    return Runtime(PATIENT.with_settings(base_url=server.address, store=Store(home), budget=budget, **changes))


def opened(server: Server, home: Path, budget: float | None = None, **changes: Any) -> JournaledChat:
    """Open a model with changes to its setup and to its card."""
    of_setup = {name: value for name, value in changes.items() if name in _OF_SETUP}
    of_card = {name: value for name, value in changes.items() if name not in _OF_SETUP}
    return open_chat(card(**of_card), setup(server, home, budget, **of_setup))


def texts(outcomes: list[Generation | Failure]) -> list[str]:
    assert all(isinstance(outcome, Generation) for outcome in outcomes), outcomes
    return [outcome.text for outcome in outcomes if isinstance(outcome, Generation)]


def one(outcomes: list[Generation | Failure], kind: str) -> Failure:
    (outcome,) = outcomes
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome
    assert "\n" not in outcome.message
    return outcome


def unanswered(chat: JournaledChat, requests: Sequence[ChatRequest], *, keep_cut: bool = False) -> list[ChatRequest]:
    """Return the distinct requests that `complete` would ask. Nothing is asked."""
    by_key = {request_key(chat._raw_key(), chat._repeated(request)): request for request in requests}
    with open_journal(chat._store) as journal:
        entries = journal.get(list(by_key))
    read = chat._cleaning(keep_cut)
    return [request for key, request in by_key.items() if key not in entries or chat._is_outdated(entries[key], read)]

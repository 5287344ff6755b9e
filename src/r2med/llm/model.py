"""A chat model that asks each question once, ever: the journal first, then the backend, and all of it counted."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from r2med.engine.reporting import Reporter
from r2med.llm import cleaning
from r2med.llm.contracts import FROM_THE_MODEL, Backend, ChatRequest, Failure, Generation, RawAnswer
from r2med.llm.journal import Journal, key_of
from r2med.llm.llm_cards import LLMCard
from r2med.llm.usage import Usage
from r2med.store import Store
from r2med.store.owners import process_name

_POLL = 0.2
"""Seconds between looks for an answer that another process is waiting for."""

Found = dict[bytes, RawAnswer | Failure]
Outcome = TypeVar("Outcome", Generation, RawAnswer)


def journal_file(store: Store) -> Path:
    """Return where a store keeps answers."""
    return store.root / "journal" / "chat.sqlite"


class JournaledChat:
    """An LLM behind a backend. Any thread may ask; answers are used even by a run that starts over: they were paid for,
    and depend on nothing that is made here.
    """

    def __init__(self, card: LLMCard, backend: Backend, store: Store) -> None:
        self.card = card
        self._backend = backend
        self._file = journal_file(store)
        self._usage = Usage(card)

    @property
    def name(self) -> str:
        """The LLM's name as one types it."""
        return self.card.name

    def describe(self) -> dict[str, Any]:
        """Return all that an answer depends on besides the request."""
        return {**self._identity(), "answer": self.card.answer, "cleaning": cleaning.VERSION}

    def usage(self) -> dict[str, float]:
        """Return what this model used so far, and paid for in this process."""
        return self._usage.as_dict()

    def unanswered(self, requests: Sequence[ChatRequest]) -> list[ChatRequest]:
        """Return the distinct requests that the journal has no answer to: what `complete` would ask."""
        by_key = {key_of(self._identity(), request): request for request in requests}
        with Journal(self._file) as journal:
            found = journal.get(list(by_key))
        return [request for key, request in by_key.items() if key not in found]

    def complete(self, requests: Sequence[ChatRequest]) -> list[Generation | Failure]:
        """Answer every request, in their order; what the journal has is not asked again."""
        return self._outcomes(requests, self._cleaned)

    def answers(self, requests: Sequence[ChatRequest]) -> list[RawAnswer | Failure]:
        """Answer every request with what the model wrote before cleaning; journaled and counted all the same."""
        return self._outcomes(requests, lambda answer: answer)

    def _outcomes(
        self, requests: Sequence[ChatRequest], read: Callable[[RawAnswer | Failure], Outcome | Failure]
    ) -> list[Outcome | Failure]:
        identity = self._identity()
        keys = [key_of(identity, request) for request in requests]
        with Journal(self._file) as journal:
            asking = _Asking(self._backend, self.card.model, journal, dict(zip(keys, requests, strict=True)))
            found, asked = asking.answers(self._usage.asked)
        outcomes: dict[bytes, Outcome | Failure] = {}
        for key, answer in found.items():
            outcomes[key] = read(answer)
            self._usage.ended(outcomes[key], journaled=key not in asked)
        return [outcomes[key] for key in keys]

    def _cleaned(self, answer: RawAnswer | Failure) -> Generation | Failure:
        return answer if isinstance(answer, Failure) else cleaning.clean(answer, self.card)

    def _identity(self) -> dict[str, Any]:
        return {"model": self.card.model, **self._backend.describe()}


class _Asking:
    """One call of a model: distinct questions by their keys."""

    def __init__(self, backend: Backend, model: str, journal: Journal, questions: dict[bytes, ChatRequest]) -> None:
        self._backend, self._model, self._journal, self._questions = backend, model, journal, questions
        self._owner = process_name()
        self._lock = threading.Lock()
        self._found: Found = {}
        self._asked: set[bytes] = set()

    def answers(self, count: Callable[[RawAnswer | Failure], None]) -> tuple[Found, set[bytes]]:
        """Return an answer or failure for each question, and which of them were asked now."""
        self._found = self._journal.get(list(self._questions))
        self._count = count
        self._reporter = Reporter("answers", len(self._questions), before=len(self._found))
        # Progress is shown to whoever listens here, but answers arrive in a backend's threads.
        self._context = contextvars.copy_context()
        while missing := self._missing():
            with self._journal.leases.held(self._owner) as take:
                mine = take(missing)
                self._look(mine)  # another process may have had its answer just before it gave up the lease
                self._ask([key for key in mine if key not in self._found])
            # What others are asking is waited for; where they fail or die, it becomes ours to ask.
            if waiting := self._missing():
                time.sleep(_POLL)
                self._look(waiting)
        return self._found, self._asked

    def _missing(self) -> list[bytes]:
        return [key for key in self._questions if key not in self._found]

    def _look(self, keys: Sequence[bytes]) -> None:
        fresh = self._journal.get(keys)
        self._found |= fresh
        if fresh:
            self._reporter.advance(len(fresh))

    def _ask(self, keys: Sequence[bytes]) -> None:
        def done(place: int, answer: RawAnswer | Failure) -> None:
            # Kept before anything else can happen to it.
            if isinstance(answer, RawAnswer) or answer.kind in FROM_THE_MODEL:
                self._journal.put(keys[place], self._model, answer)
            with self._lock:
                self._found[keys[place]] = answer
                self._asked.add(keys[place])
                self._count(answer)
                self._context.run(self._reporter.advance, 1)

        if keys:
            self._backend.answer([self._questions[key] for key in keys], done)
            if unanswered := [key for key in keys if key not in self._found]:
                raise RuntimeError(f"the backend returned without {len(unanswered)} of its {len(keys)} answers")

"""A chat model that asks each question only once: first the journal, then the backend."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any, TypeVar

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.store.memo import Missing
from r2med.models.llm import cleaning
from r2med.models.llm.chat import Ability, Backend, ChatRequest, Failure, Generation, RawAnswer
from r2med.models.llm.journal import JournalEntry, is_final, open_journal, request_key
from r2med.models.llm.llm_cards import LLMCard

BACKENDS = {
    "openai": "r2med.models.llm.openai:OpenAIBackend",
    "local": "r2med.models.llm.llama:LlamaBackend",
    "scripted": "r2med.models.llm.scripted:ScriptedBackend",
}
"""Name -> "module:Class". It is imported when it is first needed and called as Class(card, runtime)."""

Outcome = TypeVar("Outcome", Generation, RawAnswer)


def open_chat(card: LLMCard, runtime: Runtime) -> JournaledChat:
    """Return the LLM of a card. Nothing is asked and no key is needed until a question has no saved answer."""
    # An address means an endpoint, even if the card prefers another backend.
    name = runtime.setup.llm_backend or ("openai" if runtime.setup.base_url else card.backend)
    if name not in BACKENDS:
        raise unknown("LLM backend", name, BACKENDS)
    if name != "openai" and runtime.setup.base_url:
        raise UserError(
            f"base_url (--base-url) is only for the backend openai; {name} runs {card.name} in this process"
        )
    backend: Backend = resolve_name(BACKENDS[name])(card, runtime)
    setup = runtime.setup
    return JournaledChat(card, backend, runtime.store, ask_again=setup.ask_again, repeat=setup.repeat)


class JournaledChat:
    """An LLM with a journal. It is thread-safe.

    Saved answers are used even by a run that starts over, because they were paid for and depend on nothing that is made
    here. Unusable answers are saved too. Those of an earlier run are asked again only with `ask_again`. Otherwise a run
    that was killed and started again could get other answers than one that was not.

    Every question belongs to the repeat of the runtime. Each repeat has its own answers.
    """

    def __init__(
        self,
        card: LLMCard,
        backend: Backend,
        store: Store,
        *,
        ask_again: bool = False,
        repeat: int = 0,
    ) -> None:
        self.card = card
        self._backend = backend
        self._store = store
        self._ask_again = ask_again
        self._repeat = repeat

    @property
    def name(self) -> str:
        """Name of the LLM as a user types it."""
        return self.card.spec

    @property
    def is_local(self) -> bool:
        """True if it runs on this machine, so that no text leaves it."""
        return self._backend.is_local

    @property
    def lacks(self) -> Collection[Ability]:
        """What is known to be refused before anything is asked."""
        return self._backend.lacks

    def key(self) -> dict[str, Any]:
        """Return everything that an answer depends on, except the request."""
        return {
            **self._raw_key(),
            "answer": self.card.answer,
            "cleaning": f"{self.card.cleaning} {cleaning.VERSION}",
        }

    def varies(self, temperature: float | None) -> bool:
        """Return True if the same question can get another answer in another repeat."""
        return self._backend.varies(temperature)

    def about(self, *datasets: str) -> JournaledChat:
        """Return this LLM for questions about some datasets. The answers get their labels."""
        chat = copy.copy(self)
        chat._store = self._store.about(*datasets)
        return chat

    def complete(self, requests: Sequence[ChatRequest], *, keep_cut: bool = False) -> list[Generation | Failure]:
        """Answer every request, in order. Answers in the journal are not asked again."""
        return self._outcomes(requests, self._cleaning(keep_cut))

    def answers(self, requests: Sequence[ChatRequest]) -> list[RawAnswer | Failure]:
        """Answer every request with the model's text before cleaning. These answers are also saved in the journal."""
        return self._outcomes(requests, lambda answer: answer)

    def _outcomes(
        self, requests: Sequence[ChatRequest], read: Callable[[RawAnswer | Failure], Outcome | Failure]
    ) -> list[Outcome | Failure]:
        model = self._raw_key()
        keys = [request_key(model, self._repeated(request)) for request in requests]
        questions = dict(zip(keys, requests, strict=True))
        reporter = Reporter("answers", len(questions))

        def ask(missing: Missing[JournalEntry]) -> None:
            asked: list[bytes] = []

            def wanted() -> Iterator[ChatRequest]:
                for key in missing:
                    asked.append(key)
                    yield self._repeated(questions[key])

            def done(number: int, answer: RawAnswer | Failure) -> None:
                missing.put({asked[number]: JournalEntry(answer)}, save=is_final(answer))

            self._backend.answer(wanted(), done)

        with open_journal(self._store, self.card.model) as journal:
            missing = journal.missing(questions, lambda key, entry: not self._is_outdated(entry, read))
            reporter.skip(len(missing.answers))
            entries = missing.fill(ask, lambda entries, stored: reporter.advance(len(entries)))
        outcomes = {key: read(entry.answer) for key, entry in entries.items()}
        return [outcomes[key] for key in keys]

    def _is_outdated(self, entry: JournalEntry, read: Callable[[RawAnswer | Failure], Outcome | Failure]) -> bool:
        """Return True if a saved answer must be asked again."""
        return self._ask_again and not entry.is_new and isinstance(read(entry.answer), Failure)

    def _cleaning(self, keep_cut: bool) -> Callable[[RawAnswer | Failure], Generation | Failure]:
        def read(answer: RawAnswer | Failure) -> Generation | Failure:
            return answer if isinstance(answer, Failure) else cleaning.clean(answer, self.card, keep_cut=keep_cut)

        return read

    def _repeated(self, request: ChatRequest) -> ChatRequest:
        """Return the request in the repeat of this LLM."""
        return replace(request, repeat=self._repeat) if self._repeat else request

    def _raw_key(self) -> dict[str, Any]:
        return {"model": self.card.model, **self._backend.key()}

"""A chat model that asks each question only once: first the journal, then the backend."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.lazy import loaded
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.engine.tracing import TraceFile
from r2med.foundation.net.personal_data_warning import warn_before_sending
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.store.owners import place_of
from r2med.models.llm import cleaning
from r2med.models.llm.chat import SAVED_FAILURES, Ability, Backend, ChatRequest, Failure, Generation, RawAnswer
from r2med.models.llm.journal import LEASE_SECONDS, Journal, JournalEntry, Leases, journal_file, request_key
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.llm.llm_spans import LLMSpans

log = logging.getLogger("r2med")

_POLL_SECONDS = 0.2
"""Seconds between two checks for an answer that another process is asking for."""

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
        raise UserError(f"Setup(base_url=...) is only for the backend openai; {name} runs {card.name} in this process")
    backend: Backend = loaded(BACKENDS[name])(card, runtime)
    chat = JournaledChat(card, backend, runtime.store, ask_again=runtime.setup.ask_again, trace=runtime.trace)
    chat.warned = runtime.warned
    return chat


class JournaledChat:
    """An LLM with a journal. It is thread-safe.

    Saved answers are used even by a run that starts over, because they were paid for and depend on nothing that is made
    here. Unusable answers are saved too. Those of an earlier run are asked again only with `ask_again`. Otherwise a run
    that was killed and started again could get other answers than one that was not.
    """

    def __init__(
        self, card: LLMCard, backend: Backend, store: Store, *, ask_again: bool = False, trace: TraceFile | None = None
    ) -> None:
        self.card = card
        self._backend = backend
        self._file = journal_file(store)
        self.trace = trace
        """The file that spans are written to; None if nothing is traced."""
        self.warned: set[str] = set()
        """Receivers for which a warning about personal data was given."""
        self._ask_again = ask_again

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

    def unanswered(self, requests: Sequence[ChatRequest], *, keep_cut: bool = False) -> list[ChatRequest]:
        """Return the distinct requests that `complete` would ask. Nothing is asked."""
        model = self._raw_key()
        by_key = {request_key(model, request): request for request in requests}
        with Journal(self._file) as journal:
            entries = journal.get(list(by_key))
        read = self._cleaning(keep_cut)
        return [
            request for key, request in by_key.items() if key not in entries or self._is_outdated(entries[key], read)
        ]

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
        keys = [request_key(model, request) for request in requests]
        with Journal(self._file) as journal:
            questions = dict(zip(keys, requests, strict=True))
            spans = LLMSpans(self.card.model, self.trace)
            asking = _Asking(self._backend, self.card.model, journal, questions, spans, self._warn)
            answers = asking.answers(lambda entry: self._is_outdated(entry, read))
        outcomes = {key: read(answer) for key, answer in answers.items()}
        return [outcomes[key] for key in keys]

    def _is_outdated(self, entry: JournalEntry, read: Callable[[RawAnswer | Failure], Outcome | Failure]) -> bool:
        """Return True if a saved answer must be asked again."""
        return self._ask_again and not entry.is_new and isinstance(read(entry.answer), Failure)

    def _cleaning(self, keep_cut: bool) -> Callable[[RawAnswer | Failure], Generation | Failure]:
        def read(answer: RawAnswer | Failure) -> Generation | Failure:
            return answer if isinstance(answer, Failure) else cleaning.clean(answer, self.card, keep_cut=keep_cut)

        return read

    def _warn(self, requests: Iterable[ChatRequest]) -> None:
        """Warn before requests with personal data leave this machine, unless the caller has done so."""
        if not self.is_local and self.name not in self.warned:
            warn_before_sending("r2med", self.name, map(_sent_text, requests), self.warned)

    def _raw_key(self) -> dict[str, Any]:
        return {"model": self.card.model, **self._backend.key()}


def _sent_text(request: ChatRequest) -> str:
    """Return the text of a request, without the instructions of the system."""
    if request.prompt is not None:
        return request.prompt
    return "\n".join(message.content for message in request.messages if message.role != "system")


def _log_waiting(answers: int, owners: Sequence[str]) -> None:
    """Log which processes are asking for the missing answers, and how long this process waits at most."""
    log.info(
        "waiting for %s answers that %s is asking for; if it does not respond, they are asked again after %.0f s",
        f"{answers:,}", " and ".join(map(place_of, owners)), LEASE_SECONDS,
    )  # fmt: skip


class _Asking:
    """One call of a model: distinct questions by their keys."""

    def __init__(
        self,
        backend: Backend,
        model: str,
        journal: Journal,
        questions: dict[bytes, ChatRequest],
        spans: LLMSpans,
        warn: Callable[[Iterable[ChatRequest]], None],
    ) -> None:
        """Prepare to ask. `warn` gets the requests before the first of them is sent."""
        self._warn = warn
        self._spans = spans
        self._backend = backend
        self._model = model
        self._journal = journal
        self._questions = questions
        self._lock = threading.Lock()
        self._answers: dict[bytes, RawAnswer | Failure] = {}
        self._outdated: dict[bytes, RawAnswer | Failure] = {}
        self._reporter = Reporter("answers", 0)
        # Progress is shown in this context, but answers arrive in the threads of the backend.
        self._context = contextvars.copy_context()

    def answers(self, is_outdated: Callable[[JournalEntry], bool]) -> dict[bytes, RawAnswer | Failure]:
        """Return an answer or failure for each question."""
        entries = self._journal.get(list(self._questions))
        self._outdated = {key: entry.answer for key, entry in entries.items() if is_outdated(entry)}
        self._answers = {key: entry.answer for key, entry in entries.items() if key not in self._outdated}
        self._reporter = Reporter("answers", len(self._questions), before=len(self._answers))
        for key, answer in self._answers.items():
            self._spans.write(self._questions[key], answer, from_journal=True)
        named: tuple[str, ...] = ()
        while missing := self._missing():
            with self._journal.leases() as leases:
                self._ask(leases.take(missing), leases)
                others = leases.others
            # Wait for the questions of other processes. If these fail or die, ask the questions here.
            if waiting := self._missing():
                if others != named:
                    named = others
                    _log_waiting(len(waiting), others)
                time.sleep(_POLL_SECONDS)
                self._look(waiting)
        return self._answers

    def _missing(self) -> list[bytes]:
        return [key for key in self._questions if key not in self._answers]

    def _look(self, keys: Sequence[bytes]) -> None:
        """Read answers that came into the journal in the meantime."""
        entries = self._journal.get(keys).items()
        fresh = {key: entry.answer for key, entry in entries if self._outdated.get(key) != entry.answer}
        with self._lock:
            self._answers |= fresh
            if fresh:
                self._context.run(self._reporter.advance, len(fresh))
        for key, answer in fresh.items():
            self._spans.write(self._questions[key], answer, from_journal=True)

    def _ask(self, keys: Sequence[bytes], leases: Leases) -> None:
        self._look(keys)  # Another process may have saved its answer just before it released the lease.
        if all(key in self._answers for key in keys):
            return
        self._warn(self._questions[key] for key in keys if key not in self._answers)
        asked: list[bytes] = []

        def still_ours() -> Iterator[ChatRequest]:
            for key in keys:
                lapsed = leases.lapsed
                if lapsed:  # This process was stopped for a while, and others may have asked in the meantime.
                    self._look([key])
                if key not in self._answers and (not lapsed or leases.take([key])):
                    asked.append(key)
                    yield self._questions[key]

        def done(number: int, answer: RawAnswer | Failure) -> None:
            key = asked[number]
            # The answer is saved before anything else can go wrong.
            if isinstance(answer, RawAnswer) or answer.kind in SAVED_FAILURES:
                self._journal.put(key, self._model, answer)
            with self._lock:
                is_first = key not in self._answers  # A second call brings the bill of an answer that is already there.
                self._answers[key] = answer
                if is_first:
                    self._context.run(self._reporter.advance, 1)
            if is_first:
                self._spans.write(self._questions[key], answer)

        self._backend.answer(still_ours(), done)
        if unanswered := [key for key in asked if key not in self._answers]:
            raise RuntimeError(f"the backend returned without {len(unanswered)} of its {len(asked)} answers")

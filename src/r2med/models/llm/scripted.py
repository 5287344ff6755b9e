"""Scripted answers, written in advance as rules, for offline examples and for tests. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from r2med.data.problems import Problems
from r2med.data.source_rows import SourceRow, read_rows
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store.file_digests import file_digest
from r2med.models.llm.chat import Ability, ChatRequest, Failure, RawAnswer
from r2med.models.llm.costs import approximate_tokens, request_tokens
from r2med.models.llm.llm_cards import LLMCard


class ScriptedRule(SourceRow):
    """An answer, and the texts of the prompts that it is given to."""

    when: list[Any]
    answer: str


class ScriptedBackend:
    """Backend that returns the answer of the first rule whose texts all occur in the prompt.

    A rule is a JSON line {"when": [TEXT, …], "answer": TEXT}. A rule with an empty `when` matches every prompt.
    """

    is_local = True
    lacks: Collection[Ability] = frozenset[Ability]({"logprobs"})

    def __init__(self, card: LLMCard, runtime: Runtime) -> None:
        path = runtime.setup.path_of(card.name)
        if path is None or not path.is_file():
            raise UserError(
                f"{card.name} has no scripted answers; give their file with model_paths (--model-path "
                f"{card.name}=FILE.jsonl)",
            )
        self._path: Path = path
        self._store = runtime.store
        self._rules: list[tuple[list[str], str]] = []

    def key(self) -> dict[str, Any]:
        """Return the digest of the answers."""
        return {"backend": "scripted", "fingerprint": file_digest(self._path, self._store)}

    def varies(self, temperature: float | None) -> bool:
        """Return False, because the answers are written in advance."""
        return False

    def answer(self, requests: Iterable[ChatRequest], done: Callable[[int, RawAnswer | Failure], None]) -> None:
        """Answer all requests in their order."""
        self._rules = self._rules or self._read()
        for number, request in enumerate(requests):
            if request.top_logprobs:
                raise UserError(f"{self._path.name} contains only texts; log-probabilities of tokens need a model")
            if request.tools:
                raise UserError(f"{self._path.name} contains only texts, not tool calls; give the setting calls=tags")
            prompt = request.prompt or "\n".join(message.content for message in request.messages)
            text = next((answer for when, answer in self._rules if all(part in prompt for part in when)), None)
            if text is None:
                done(
                    number,
                    Failure("invalid", f"{self._path.name} has no answer for a prompt that ends …{prompt[-80:]}"),
                )
            else:
                done(
                    number,
                    RawAnswer(text, prompt_tokens=request_tokens(request), completion_tokens=approximate_tokens(text)),
                )

    def _read(self) -> list[tuple[list[str], str]]:
        problems = Problems()
        rows = [row for _, row in read_rows(self._path, ScriptedRule, problems)]
        problems.raise_first()
        return [(list(map(str, row.when)), row.answer) for row in rows]

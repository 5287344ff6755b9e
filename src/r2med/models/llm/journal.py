"""Journal: the memo of LLM answers.

The key of an answer is a digest of everything that it depends on. The raw answer is saved, because the cleaning may
change later. The questions are not saved.
"""

from __future__ import annotations

import dataclasses
import json
import os
import uuid
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from r2med.foundation.core.keys import changed_values
from r2med.foundation.store import Store, digest
from r2med.foundation.store.memo import Memo, memo_rows
from r2med.models.llm.chat import SAVED_FAILURES, ChatRequest, Failure, RawAnswer, ToolCall

_LOGPROB_FIELDS = ("first_choices", "last_tokens")
_OPTIONAL_FIELDS = (*_LOGPROB_FIELDS, "calls", "fits")
"""Fields that most answers and failures do not have."""


def journal_file(store: Store) -> Path:
    """Return the path of the journal in a store."""
    return store.memo_file("journal", "chat")


def request_key(model: dict[str, Any], request: ChatRequest) -> bytes:
    """Return the key of an answer. `model` is the key of the LLM."""
    return bytes.fromhex(digest([model, changed_values(request)]))


@dataclasses.dataclass(frozen=True)
class JournalEntry:
    """An answer in the journal."""

    answer: RawAnswer | Failure
    is_new: bool = True
    """True if this process saved it."""


def answers_by_model(store: Store) -> dict[str, list[bytes]]:
    """Return the keys of all answers in a store's journal, by the name of the model."""
    models: dict[str, list[bytes]] = {}
    if (path := journal_file(store)).is_file():
        with memo_rows(path) as rows:
            for key, content in rows.items():
                models.setdefault(json.loads(content)["model"], []).append(key)
    return models


def forget_answers(store: Store, keys: Sequence[bytes]) -> None:
    """Remove answers from a store's journal. They are then asked and paid for again."""
    with memo_rows(journal_file(store)) as rows:
        rows.remove(keys)


def open_journal(store: Store, model: str = "") -> Memo[JournalEntry]:
    """Open the journal of a store. `model` is the name of the LLM whose answers are saved."""
    return Memo(journal_file(store), partial(_encoded, model), _decoded, store.labels.datasets)


def is_final(answer: RawAnswer | Failure) -> bool:
    """Return True if an answer is saved. A failure that is not the model's own answer is asked again."""
    return isinstance(answer, RawAnswer) or answer.kind in SAVED_FAILURES


def _encoded(model: str, entry: JournalEntry) -> bytes:
    answer = entry.answer
    if not is_final(answer):
        raise ValueError(f"{answer} must be asked again, not saved")
    kind = "failure" if isinstance(answer, Failure) else "answer"
    content = {
        name: value for name, value in dataclasses.asdict(answer).items() if name not in _OPTIONAL_FIELDS or value
    }
    row = {"model": model, "process": _process(os.getpid()), kind: content}
    return json.dumps(row).encode("ascii")  # ASCII, because UTF-8 cannot encode lone surrogates.


def _decoded(content: bytes) -> JournalEntry:
    row = json.loads(content)
    return JournalEntry(decoded_answer(row), row.get("process") == _process(os.getpid()))


def decoded_answer(row: dict[str, Any]) -> RawAnswer | Failure:
    """Return the answer of a row."""
    return Failure(**row["failure"]) if "failure" in row else _raw_answer(row["answer"])


def _raw_answer(content: dict[str, Any]) -> RawAnswer:
    lists = {name: tuple((token, logprob) for token, logprob in content.get(name, ())) for name in _LOGPROB_FIELDS}
    calls = tuple(ToolCall(**call) for call in content.get("calls", ()))
    return RawAnswer(**{**content, **lists, "calls": calls})


@cache
def _process(process_id: int) -> str:
    # By process id, because a forked child is another process.
    return uuid.uuid4().hex

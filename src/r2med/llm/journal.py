"""Every answer that came, kept by its question in SQLite the moment it arrives; several processes share the file.

A row is found by the hash of all an answer depends on, and holds the answer as the model gave it (cleaning may change
later). The questions are not kept.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r2med.llm.contracts import FROM_THE_MODEL, ChatRequest, Failure, RawAnswer
from r2med.llm.leases import LEASES, Leases
from r2med.store import digest
from r2med.store.rows import Rows

_BURST = 0.5
"""Seconds. Answers that come faster than this are not each flushed to the disk, only handed to the system: a flush
takes milliseconds, and all other answers wait for it.
"""


def key_of(identity: dict[str, Any], request: ChatRequest) -> bytes:
    """Return what an answer is kept under: model, messages or prompt, sampling and sample number."""
    asked = dataclasses.asdict(request)
    if request.prompt is None:
        del asked["prompt"]  # answers from before there were prompts are kept under keys without one
    return bytes.fromhex(digest([identity, asked]))


class Journal:
    """An open journal; use it in a `with`. Any thread may use it."""

    def __init__(self, path: Path) -> None:
        self._rows = Rows(path, "journal of LLM answers", "journal", [LEASES])
        self._flushed = -math.inf
        self.leases = Leases(self._rows.database)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, RawAnswer | Failure]:
        """Return the answers that are there and sound."""
        return {key: _decoded(content) for key, content in self._rows.get(keys).items()}

    def put(self, key: bytes, model: str, answer: RawAnswer | Failure) -> None:
        """Keep one answer: when this returns, no kill can take it.

        In a burst the disk is not waited for each time, so that a power failure, and only it, may take the last few.
        """
        if isinstance(answer, Failure) and answer.kind not in FROM_THE_MODEL:
            raise ValueError(f"a failure of kind {answer.kind} is to be tried again, not kept")
        burst = time.monotonic() - self._flushed < _BURST
        self._rows.put({key: _encoded(model, answer)}, durable=not burst)
        if not burst:
            self._flushed = time.monotonic()


def _encoded(model: str, answer: RawAnswer | Failure) -> bytes:
    kind = "failure" if isinstance(answer, Failure) else "answer"
    return json.dumps({"model": model, kind: vars(answer)}).encode("ascii")  # ASCII: lone surrogates have no UTF-8


def _decoded(content: bytes) -> RawAnswer | Failure:
    row = json.loads(content)
    return Failure(**row["failure"]) if "failure" in row else RawAnswer(**row["answer"])

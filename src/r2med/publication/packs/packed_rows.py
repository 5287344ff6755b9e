"""Rows of the store's tables as lines of a pack: a key, and a value without the names of machines."""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.evaluation.records.public_values import public_value
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.memo import MEMOS, memo_rows
from r2med.models.llm.chat import SAVED_FAILURES, Failure
from r2med.models.llm.journal import decoded_answer
from r2med.systems.rerank.pair_scores import unpacked


@dataclass(frozen=True)
class RowFormat:
    """How the rows of one folder of the store are passed on."""

    public: Callable[[bytes], bytes]
    """Returns a value without what must not be passed on."""
    content: Callable[[bytes], object]
    """Returns what two people with the same key must agree on. Raises ValueError if the value is damaged."""


def _public_answer(value: bytes) -> bytes:
    """Return an answer of an LLM without the name of the process, which contains that of the machine."""
    row = json.loads(value)
    row.pop("process", None)
    return json.dumps({**row, "model": public_value(row["model"])}).encode("ascii")


def _answer_content(value: bytes) -> object:
    """Return the text of an answer, without its tokens and seconds."""
    try:
        row = json.loads(value)
        if not row.keys() <= {"model", "answer", "failure"} or not isinstance(row["model"], str):
            raise ValueError
        answer = decoded_answer(row)
        if isinstance(answer, Failure) and answer.kind not in SAVED_FAILURES:
            raise ValueError
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError from None
    facts = vars(answer)
    if not all(isinstance(facts.get(name, ""), str) for name in ("content", "reasoning", "kind", "message")):
        raise ValueError
    numbers = [facts[name] for name in ("prompt_tokens", "completion_tokens", "seconds", "attempts")]
    numbers.append(facts.get("fits", 0.0))
    if not all(isinstance(number, int | float) and math.isfinite(number) and number >= 0 for number in numbers):
        raise ValueError
    return [facts.get(name) for name in ("content", "reasoning", "calls", "kind", "fits")]


def _score_content(value: bytes) -> object:
    scored = unpacked(value)
    if scored is None or not all(math.isfinite(number) and number >= 0 for number in scored[1:]):
        raise ValueError
    return scored.score


def _vector_content(value: bytes) -> object:
    numbers = struct.unpack(f"<{len(value[8:]) // 4}f", value[8:]) if len(value) > 8 and not len(value) % 4 else ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError
    return value[8:]


FORMATS: Mapping[str, RowFormat] = {
    "journal": RowFormat(_public_answer, _answer_content),
    "scores": RowFormat(bytes, _score_content),
    "api": RowFormat(bytes, _vector_content),
}
"""Folder of the store -> how its rows are passed on."""


def row_lines(file: Path, keys: Iterable[bytes]) -> bytes:
    """Return rows as lines of JSON, sorted by key."""
    public = FORMATS[file.parent.name].public
    with memo_rows(file) as rows:
        values = rows.get(sorted(keys))
    return b"".join(_line(key, public(values[key])) for key in sorted(values))


def _line(key: bytes, value: bytes) -> bytes:
    row: dict[str, Any] = {"key": key.hex(), "value": base64.b64encode(value).decode()}
    return json.dumps(row).encode() + b"\n"


def read_row(line: bytes, folder: str) -> tuple[bytes, bytes]:
    """Return the key and the value of a line. Raises UserError if it is not a row of this folder."""
    try:
        row = json.loads(line)
        if row.keys() != {"key", "value"}:
            raise ValueError
        key, value = bytes.fromhex(row["key"]), base64.b64decode(row["value"], validate=True)
        if len(key) not in (16, 32) or key.hex() != row["key"]:
            raise ValueError
        FORMATS[folder].content(value)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, binascii.Error, struct.error):
        raise UserError(f"a row is not one of the {MEMOS[folder].rows}") from None
    return key, value


def differing_rows(file: Path, rows: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """Yield the keys of rows that this store has with another content."""
    if not file.is_file():
        return
    content = FORMATS[file.parent.name].content
    with memo_rows(file) as table:
        for key, own in table.get(list(rows)).items():
            try:
                mine = content(FORMATS[file.parent.name].public(own))
            except (ValueError, KeyError):
                continue  # a damaged row is replaced
            if mine != content(rows[key]):
                yield key

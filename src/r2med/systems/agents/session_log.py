"""The log of a server: what each session searched and opened, kept in the store as private rows about its dataset."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from r2med.foundation.store import Store
from r2med.foundation.store.memo import memo_rows
from r2med.foundation.text.unicode import to_unicode

SESSIONS = "sessions"
"""The folder and the file of the log in the store."""

Call = Literal["search", "get_document"]


@dataclass(frozen=True)
class LoggedCall:
    """A search of a session, or a document that it opened."""

    session: str
    call: Call
    query: str = ""
    documents: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchLog:
    """The log about one dataset. Rows get the label of the dataset, so that `cache clear` finds them."""

    store: Store
    dataset: str
    """The label of the dataset."""

    def add(self, session: str, call: Call, query: str = "", documents: Sequence[str] = ()) -> None:
        """Keep a call of a session."""
        row = {"session": to_unicode(session), "call": call, "query": query}
        value = json.dumps({**row, "documents": list(documents), "time": time.time()}, ensure_ascii=False).encode()
        key = time.time_ns().to_bytes(8) + os.urandom(8)  # in the order of the calls
        with memo_rows(self._path, [self.dataset]) as rows:
            rows.put({key: value}, durable=False)

    def calls(self) -> list[LoggedCall]:
        """Return all calls about the dataset, in their order."""
        if not self._path.exists():
            return []
        with memo_rows(self._path) as rows:
            kept = rows.get(sorted(rows.keys_about(self.dataset)))
        return [_call(json.loads(kept[key])) for key in sorted(kept)]

    @property
    def _path(self) -> Any:
        return self.store.root / SESSIONS / f"{SESSIONS}.sqlite"


def _call(row: dict[str, Any]) -> LoggedCall:
    return LoggedCall(str(row["session"]), row["call"], str(row["query"]), tuple(map(str, row["documents"])))

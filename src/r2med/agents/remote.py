"""A /retrieve server elsewhere, in the protocol of Search-R1: patient with it, and never at its mercy.

Its answers may change from day to day, so each one is kept: a run that is started again sees the same documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from r2med.agents.contracts import Document
from r2med.agents.remote_answer import as_notes, from_notes
from r2med.agents.remote_client import RetrieveClient
from r2med.agents.sources import Found, Source, Wanted
from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset
from r2med.errors import UserError
from r2med.llm.contracts import Failure
from r2med.net.endpoint import Endpoint
from r2med.net.retry import Policy
from r2med.store import Store, digest

TOKEN = "R2MED_SERVE_TOKEN"
"""The environment variable of the server's token."""
AT_ONCE = 16
"""Queries of a request: so many conversations a lost one costs."""
PLAIN = "fever"
"""A query that no search server refuses."""
POLICY = Policy(concurrency=4, attempts=4, first_wait=0.5, deadline=120.0, idle=30.0)

_FATAL = ("connection", "invalid", "bad_request", "auth")
"""What a wrong address or a server that was never started looks like."""


@dataclass(frozen=True)
class Remote:
    """A server by its address."""

    url: str
    policy: Policy = POLICY
    elsewhere: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            right = False
        if not right:
            raise UserError(f"remote={self.url} is no URL: it should look like http://127.0.0.1:8000/retrieve")
        if parts.username is not None or parts.query or parts.fragment:  # it stands in names and records
            raise UserError(f"remote={parts.scheme}://…: no password or query in it: a token goes in {TOKEN}")

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """What one types to get it."""
        return (("remote", self.url),)

    @property
    def where(self) -> Endpoint:
        """The endpoint; an address without a path means the usual one."""
        path = urlsplit(self.url).path.rstrip("/")
        return Endpoint(
            "the search server", TOKEN, self.url.rstrip("/") if path else f"{self.url.rstrip('/')}/retrieve"
        )

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return what tells servers apart; what they found is told by the texts' fingerprint."""
        return {"remote": self.where.identity}

    def open(self, dataset: Dataset, store: Store, topk: int) -> Source:
        """Return the search for one dataset's queries."""
        # The same for all queries, whoever is asked for with whom: what was kept is found by it.
        spare = max((len(query.excluded) for query in dataset.queries), default=0)
        return _Server(self.where, self.policy, dataset.name, dataset.corpus, store, topk, topk + spare)


@dataclass
class _Server:
    where: Endpoint
    policy: Policy
    dataset: str
    corpus: Corpus
    store: Store
    topk: int
    depth: int
    """Documents that are asked for, so that enough are left without those that a query was made from."""
    answered: bool = False
    """Whether it has answered anything yet in this run."""
    seen: dict[str, bool] = field(default_factory=dict)
    """Document id -> whether the dataset has it."""

    def search(self, wanted: Sequence[Wanted]) -> list[Found]:
        found = self._known(list(dict.fromkeys(each.text for each in wanted)))
        results: list[Found] = []
        for each in wanted:
            documents = found[each.text]
            if not isinstance(documents, Failure):
                documents = tuple(one for one in documents if one.id not in each.excluded)[: self.topk]
                self._look_up(documents)
            results.append(documents)
        return results

    def notices(self) -> list[str]:
        foreign = sum(not known for known in self.seen.values())
        told = f"{self.where.server} returned {foreign} of {len(self.seen)} documents that are not of {self.dataset}"
        return [f"{told}'s corpus"] if foreign else []

    def usage(self) -> dict[str, float]:
        return {}  # what it takes is its own, and differs between a run and the same run read back

    def _known(self, texts: Sequence[str]) -> dict[str, Found]:
        """Return each text's documents, asked for where no earlier answer was kept."""
        keys = {text: digest(["retrieve", 1, self.where.identity, text, self.depth]) for text in texts}
        notes = {text: self.store.recall(key) for text, key in keys.items()}
        found: dict[str, Found] = {text: from_notes(note) for text, note in notes.items() if note is not None}
        if missing := [text for text in texts if text not in found]:
            fresh = self._asked(missing)
            for text, documents in fresh.items():
                if not isinstance(documents, Failure):
                    self.store.remember(keys[text], as_notes(documents))
            found |= fresh
        return found

    def _asked(self, texts: Sequence[str]) -> dict[str, Found]:
        found = self._sent([texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE)])
        failures = [outcome for outcome in found.values() if isinstance(outcome, Failure)]
        if not self.answered and len(failures) == len(found):
            self._check_address(failures[0])
        self.answered = self.answered or len(failures) < len(found)
        refused = [text for text in texts if isinstance(one := found[text], Failure) and one.kind == "bad_request"]
        if refused and len(texts) > 1:  # one query that is too long for a server is not to cost those beside it
            found |= self._sent([[text] for text in refused])
        return found

    def _check_address(self, failure: Failure) -> None:
        """Raise for a server that has answered nothing yet and is none: one that takes a plain query is."""
        if failure.kind not in _FATAL:
            return
        if failure.kind == "bad_request" and not isinstance(self._sent([[PLAIN]])[PLAIN], Failure):
            self.answered = True
            return
        raise UserError(
            f"remote={self.where.url}: {failure.message}: is it a /retrieve server, and does it run? "
            "r2med serve DATASET --retriever bm25 starts one"
        )

    def _sent(self, batches: Sequence[Sequence[str]]) -> dict[str, Found]:
        outcomes = RetrieveClient(self.where, self.policy, self.depth).ask(batches)
        found: dict[str, Found] = {}
        for batch, outcome in zip(batches, outcomes, strict=True):
            each = [outcome] * len(batch) if isinstance(outcome, Failure) else outcome
            found |= dict(zip(batch, each, strict=True))
        return found

    def _look_up(self, documents: Sequence[Document]) -> None:
        new = list(dict.fromkeys(one.id for one in documents if one.id not in self.seen))
        if new:
            rows = self.corpus.rows(new)
            self.seen |= {name: bool(row >= 0) for name, row in zip(new, rows, strict=True)}

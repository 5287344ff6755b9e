"""A /retrieve server elsewhere, in the protocol of Search-R1: patient with it, and never at its mercy.

Its answers may change from day to day, so each one is kept: a run that is started again sees the same documents.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import BeforeValidator, PlainSerializer

from r2med.agents.conversation import Hit
from r2med.agents.sources import Documents, Source, SourceResult
from r2med.core.errors import UserError
from r2med.data import Dataset, Query
from r2med.llm.chat import Failure
from r2med.net.endpoint import Endpoint
from r2med.net.http import Client, run_sync
from r2med.net.retry import Policy, RequestFailed, explained, try_send
from r2med.net.throttle import AdaptiveLimiter
from r2med.retrieve.retriever import Search
from r2med.store import Store, digest
from r2med.text.unicode import to_unicode

TOKEN = "R2MED_SERVE_TOKEN"
"""The environment variable of the server's token."""
BATCH = 16
"""Queries of a request: so many conversations a lost one costs."""
PLAIN = "fever"
"""A query that no search server refuses."""
POLICY = Policy(concurrency=4, attempts=4, first_wait=0.5, deadline=120.0, idle=30.0)
BYTES = 1 << 20
BYTES_OF_DOCUMENT = 1 << 18
"""An answer's size at most: this much, and so much more for each document that was asked for."""

LARGEST = 1e300
"""A score of this size is none; integers beyond the range of floats are such."""

_FATAL = ("connection", "invalid", "bad_request", "auth")
"""What a wrong address or a server that was never started looks like."""
_SHOWN = frozenset({"", "api", "retrieve", "search", "v1", "v2"})
"""Parts of a path that are no secret. Any other may be a token, as some providers put it there."""
_HIDDEN = "…"


@dataclass(frozen=True)
class ServerAddress:
    """The URL of a server. It prints without what may be a token: names and records are shown to others."""

    url: str = field(repr=False)

    @classmethod
    def parse(cls, text: Any) -> Any:
        """Return the address that a text is. Raises UserError if it is no URL, or has a password in it."""
        if not isinstance(text, str):
            return text
        try:
            parts = urlsplit(text)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            is_url = False
        if not is_url:
            raise UserError("what remote= says is not a URL: it should look like http://127.0.0.1:8000/retrieve")
        if parts.username is not None or parts.query or parts.fragment:
            raise UserError(f"remote={parts.scheme}://…: no password or query in it: a token goes in {TOKEN}")
        if _HIDDEN in parts.path:
            why = "a part of it was left out, as it may be a token"
            raise UserError(f"remote={text}: {why}: write the address in full")
        return cls(text.rstrip("/") if parts.path.strip("/") else f"{text.rstrip('/')}/retrieve")

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        shown = [part if part in _SHOWN else f"{_HIDDEN}{digest(part)[:8]}" for part in parts.path.split("/")]
        path = "/".join(shown)
        return f"{parts.scheme}://{parts.netloc}{'' if path == '/retrieve' else path}"

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint at this address."""
        return Endpoint("the search server", TOKEN, self.url)


RemoteURL = Annotated[ServerAddress, BeforeValidator(ServerAddress.parse), PlainSerializer(str)]
"""A server's address as a setting."""


@dataclass(frozen=True)
class RemoteSearch:
    """A server that searches, before it is opened for a dataset."""

    address: ServerAddress
    policy: Policy = POLICY
    keeps_texts: ClassVar[bool] = True

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return what tells servers apart; what they found is told by the texts' fingerprint."""
        return {"remote": self.address.endpoint.identity}

    def labels(self) -> AbstractContextManager[None]:
        """Return a block without labels: whose documents a server has is not known here."""
        return nullcontext()

    def open(self, dataset: Dataset, store: Store, topk: int) -> Source:
        """Return the search for one dataset's queries."""
        # The same for all queries, whoever is asked for with whom: what was kept is found by it.
        spare = max((len(query.excluded) for query in dataset.queries), default=0)
        return _OpenServer(self.address, self.policy, store, topk, topk + spare)


@dataclass
class _OpenServer:
    """A server with the answers it gave before."""

    address: ServerAddress
    policy: Policy
    store: Store
    topk: int
    depth: int
    """Documents that are asked for, so that enough are left without those that a query was made from."""
    answered: bool = False
    """Whether it has answered anything yet in this run."""

    def search(self, queries: Sequence[Query]) -> SourceResult:
        # What it takes is the server's own, and would differ between a run and the same run read back.
        by_text = self._documents(list(dict.fromkeys(query.text for query in queries)))
        return SourceResult(tuple(self._shown(by_text[query.text], query.excluded) for query in queries))

    def made(self, queries: Sequence[Query]) -> tuple[Search, ...]:
        return ()  # how the server searches is not known here

    def _shown(self, documents: Documents, excluded: Sequence[str]) -> Documents:
        if isinstance(documents, Failure):
            return documents
        return tuple(hit for hit in documents if hit.id not in excluded)[: self.topk]

    def _documents(self, texts: Sequence[str]) -> dict[str, Documents]:
        """Return each text's documents, asked for where no earlier answer was kept."""
        identity = self.address.endpoint.identity
        keys = {text: digest(["retrieve", 1, identity, text, self.depth]) for text in texts}
        notes = {text: self.store.recall(key) for text, key in keys.items()}
        known: dict[str, Documents] = {
            text: tuple(Hit(*fields) for fields in note["documents"])
            for text, note in notes.items()
            if note is not None
        }
        if missing := [text for text in texts if text not in known]:
            fresh = self._asked(missing)
            for text, documents in fresh.items():
                if not isinstance(documents, Failure):
                    kept = [[hit.id, hit.contents, hit.score] for hit in documents]
                    self.store.remember(keys[text], {"documents": kept})
            known |= fresh
        return known

    def _asked(self, texts: Sequence[str]) -> dict[str, Documents]:
        results = self._sent([texts[start : start + BATCH] for start in range(0, len(texts), BATCH)])
        failures = [outcome for outcome in results.values() if isinstance(outcome, Failure)]
        if not self.answered and len(failures) == len(results):
            self._check_address(failures[0])
        self.answered = self.answered or len(failures) < len(results)
        refused = [text for text in texts if isinstance(one := results[text], Failure) and one.kind == "bad_request"]
        if refused and len(texts) > 1:  # one query that is too long for a server is not to cost those beside it
            results |= self._sent([[text] for text in refused])
        return results

    def _check_address(self, failure: Failure) -> None:
        """Raise UserError if what has answered nothing yet is no search server: one that takes a plain query is."""
        if failure.kind not in _FATAL:
            return
        if failure.kind == "bad_request" and not isinstance(self._sent([[PLAIN]])[PLAIN], Failure):
            self.answered = True
            return
        raise UserError(
            f"remote={self.address}: {failure.message}: is it a /retrieve server, and does it run? "
            "r2med serve DATASET --retriever bm25 starts one"
        )

    def _sent(self, batches: Sequence[Sequence[str]]) -> dict[str, Documents]:
        outcomes = run_sync(self._send_all(batches))
        results: dict[str, Documents] = {}
        for batch, outcome in zip(batches, outcomes, strict=True):
            each = [outcome] * len(batch) if isinstance(outcome, Failure) else outcome
            results |= dict(zip(batch, each, strict=True))
        return results

    async def _send_all(self, batches: Sequence[Sequence[str]]) -> list[list[tuple[Hit, ...]] | Failure]:
        """Return for each batch of queries their documents, or why there are none after all attempts."""
        endpoint, limiter = self.address.endpoint, AdaptiveLimiter(self.policy.concurrency)
        key = endpoint.key(in_clear=True) if endpoint.has_key else ""
        async with Client(endpoint, self.policy.idle, key=key) as client:

            async def send(batch: Sequence[str]) -> list[tuple[Hit, ...]] | Failure:
                outcome, attempts = await try_send(
                    lambda: self._send(client, batch), endpoint.server, self.policy, limiter
                )
                if isinstance(outcome, RequestFailed):
                    return Failure(outcome.kind, explained(outcome), attempts)
                return outcome

            return list(await asyncio.gather(*(send(batch) for batch in batches)))

    async def _send(self, client: Client, batch: Sequence[str]) -> list[tuple[Hit, ...]]:
        question = {"queries": list(batch), "topk": self.depth, "return_scores": True}
        most = BYTES + BYTES_OF_DOCUMENT * len(batch) * self.depth
        body = await client.post("", question, most)
        try:
            return read_answer(body, len(batch))
        except MalformedAnswer as error:
            reason = f"{client.endpoint.server} gave an answer that is none: {error}"
        raise RequestFailed(reason, again=True, kind="invalid", max_attempts=2)  # a proxy's hiccup, perhaps


class MalformedAnswer(Exception):  # noqa: N818 - reads as what came
    """What came is not what the protocol says."""


def read_answer(body: bytes, queries: int) -> list[tuple[Hit, ...]]:
    """Return the documents of each query. Raises MalformedAnswer with what is wrong."""
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedAnswer("it is not JSON") from None
    result = content.get("result") if isinstance(content, dict) else None
    if not isinstance(result, list):
        raise MalformedAnswer("it has no list 'result'")
    if len(result) != queries:
        raise MalformedAnswer(f"it has {len(result)} lists for {queries} queries")
    if not all(isinstance(documents, list) for documents in result):
        raise MalformedAnswer("a query's documents are no list")
    return [tuple(_hit(entry) for entry in documents) for documents in result]


def _hit(entry: Any) -> Hit:
    document = entry.get("document") if isinstance(entry, dict) else None
    if not isinstance(document, dict):
        raise MalformedAnswer("an entry has no object 'document'")
    name, text, score = document.get("id"), document.get("contents"), entry.get("score")
    if type(name) is int:  # some corpora number their documents
        name = str(name)
    if not isinstance(name, str) or not isinstance(text, str):
        raise MalformedAnswer("a document lacks 'id' or 'contents'")
    if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) < LARGEST:
        raise MalformedAnswer("a document has no number 'score'")
    return Hit(to_unicode(name), to_unicode(text), float(score))

"""Search with a remote /retrieve server, in the protocol of Search-R1, with retries and limits for all it may send.

Its answers may change from day to day. Each answer is therefore stored, and a restarted run gets the same documents.
Another repeat asks the server again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import BeforeValidator, PlainSerializer

from r2med.data import Dataset, Query
from r2med.foundation.core.errors import UserError
from r2med.foundation.net.endpoint import Endpoint, parts_of_url, warn_before_sending
from r2med.foundation.net.http import Client, RequestFailed, run_sync
from r2med.foundation.net.request_loop import Policy, Request, RequestLoop
from r2med.foundation.store import Store, digest
from r2med.foundation.store.memo import Memo, Missing
from r2med.foundation.text.unicode import to_unicode
from r2med.models.llm.chat import Failure
from r2med.systems.agents.agent_state import Hit
from r2med.systems.agents.sources import Documents, Source, SourceResult

TOKEN_VARIABLE = "R2MED_SERVE_TOKEN"
"""The environment variable that holds the server's token."""
QUERIES_PER_REQUEST = 16
"""Number of queries in a request. A lost request ends this many conversations."""
PROBE_QUERY = "fever"
"""A query that every search server accepts."""
POLICY = Policy(concurrency=4, attempts=4, first_wait=0.5, deadline=120.0, idle=30.0)
ANSWER_BYTES = 1 << 20
DOCUMENT_BYTES = 1 << 18
"""Maximum size of an answer: `ANSWER_BYTES`, plus `DOCUMENT_BYTES` for each requested document."""

MAX_SCORE = 1e300
"""A score must be smaller than this. JSON can hold integers beyond the range of floats."""

_ADDRESS_FAILURES = ("connection", "invalid", "bad_request", "auth")
"""Kinds of failure that a wrong address causes, or a server that was never started."""
_PUBLIC_PATH_PARTS = frozenset({"", "api", "retrieve", "search", "v1", "v2"})
"""Parts of a path that are not secret. Any other part may be a token, because some providers put it there."""
_HIDDEN = "…"


@dataclass(frozen=True)
class ServerAddress:
    """The URL of a server. It is printed without parts that may be a token, since names and records are public."""

    url: str = field(repr=False)

    @classmethod
    def parse(cls, text: Any) -> Any:
        """Return the address that a text names. Raises UserError if it is not a URL, or contains a password."""
        if not isinstance(text, str):
            return text
        parts = parts_of_url(text)
        if parts is None:
            raise UserError("remote= is not a URL: it must look like http://127.0.0.1:8000/retrieve")
        if parts.username is not None or parts.query or parts.fragment:
            raise UserError(
                f"remote={parts.scheme}://…: the URL must have no password or query: set the token in {TOKEN_VARIABLE}"
            )
        if _HIDDEN in parts.path:
            why = "a part that may be a token is hidden"
            raise UserError(f"remote={text}: {why}: write the whole address")
        return cls(text.rstrip("/") if parts.path.strip("/") else f"{text.rstrip('/')}/retrieve")

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        path = "/".join(_public_part(part) for part in parts.path.split("/"))
        return f"{parts.scheme}://{parts.netloc}{'' if path == '/retrieve' else path}"

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint at this address."""
        return Endpoint("the search server", TOKEN_VARIABLE, self.url)


def _public_part(part: str) -> str:
    return part if part in _PUBLIC_PATH_PARTS else f"{_HIDDEN}{digest(part)[:8]}"


RemoteURL = Annotated[ServerAddress, BeforeValidator(ServerAddress.parse), PlainSerializer(str)]
"""The address of a server, as a setting of a stage."""


@dataclass(frozen=True)
class RemoteSearch:
    """A search server, before it is opened for a dataset."""

    address: ServerAddress
    policy: Policy = POLICY
    repeat: int = 0
    """Number of the repeat, from 0. Each has its own answers."""
    keeps_texts: ClassVar[bool] = True
    varies: ClassVar[bool] = True

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return what identifies the server. The documents it found are covered by the digest of the texts."""
        return {"remote": self.address.endpoint.digest}

    def labels(self) -> tuple[str, ...]:
        """Return no labels, because the datasets of a server are not known here."""
        return ()

    def open(self, dataset: Dataset, store: Store, topk: int) -> Source:
        """Return the search for the queries of one dataset."""
        # The same depth for all queries of the dataset, because the depth is part of the key of a stored answer.
        spare = max((len(query.excluded) for query in dataset.queries), default=0)
        return _OpenServer(self.address, self.policy, store, topk, topk + spare, self.repeat)


@dataclass
class _OpenServer:
    """A server with its stored answers."""

    address: ServerAddress
    policy: Policy
    store: Store
    topk: int
    depth: int
    """Number of requested documents. Enough are left when the documents that a query was made from are removed."""
    repeat: int = 0
    answered: bool = False
    """True if the server has answered a request of this run."""
    warned: set[str] = field(default_factory=set)
    """The server, if it was said that texts are sent to it."""

    def search(self, queries: Sequence[Query]) -> SourceResult:
        # No cost: the time is the server's, and a repeated run that reads stored answers would show another one.
        by_text = self._documents(list(dict.fromkeys(query.text for query in queries)))
        return SourceResult(tuple(self._shown(by_text[query.text], query.excluded) for query in queries))

    def _shown(self, documents: Documents, excluded: Sequence[str]) -> Documents:
        if isinstance(documents, Failure):
            return documents
        return tuple(hit for hit in documents if hit.id not in excluded)[: self.topk]

    def _documents(self, texts: Sequence[str]) -> dict[str, Documents]:
        """Return the documents of each text. The server is asked only if there is no stored answer."""
        server, repeat = self.address.endpoint.digest, [self.repeat] * bool(self.repeat)
        keys = {bytes.fromhex(digest(["retrieve", 1, server, text, self.depth, *repeat])): text for text in texts}

        def ask(missing: Missing[Documents]) -> None:
            wanted = {keys[key]: key for key in missing}
            for text, documents in self._asked(list(wanted)).items():
                missing.put({wanted[text]: documents}, save=not isinstance(documents, Failure))

        def known(new: Mapping[bytes, Documents], stored: bool) -> None:
            self.store.note_made(() if stored else (key.hex() for key in new))

        file = self.store.memo_file("remote", "search")
        with Memo[Documents](file, _packed, _unpacked, self.store.labels.datasets) as memo:
            missing = memo.missing(keys, lambda key, documents: self.store.usable(key.hex()))
            return {keys[key]: documents for key, documents in missing.fill(ask, known).items()}

    def _asked(self, texts: Sequence[str]) -> dict[str, Documents]:
        warn_before_sending(self.address.endpoint, self.warned)
        starts = range(0, len(texts), QUERIES_PER_REQUEST)
        results = self._sent([texts[start : start + QUERIES_PER_REQUEST] for start in starts])
        failures = [outcome for outcome in results.values() if isinstance(outcome, Failure)]
        if not self.answered and len(failures) == len(results):
            self._check_address(failures[0])
        self.answered = self.answered or len(failures) < len(results)
        refused = [text for text in texts if isinstance(one := results[text], Failure) and one.kind == "bad_request"]
        if refused and len(texts) > 1:  # a query that is too long must not lose the others of its request
            results |= self._sent([[text] for text in refused])
        return results

    def _check_address(self, failure: Failure) -> None:
        """Raise UserError if this is not a search server. A server that answers a plain query is one."""
        if failure.kind not in _ADDRESS_FAILURES:
            return
        if failure.kind == "bad_request" and not isinstance(self._sent([[PROBE_QUERY]])[PROBE_QUERY], Failure):
            self.answered = True
            return
        raise UserError(
            f"remote={self.address}: {failure.message}: is it a running /retrieve server? "
            "r2med serve DATASET --retriever bm25 starts one"
        )

    def _sent(self, batches: Sequence[Sequence[str]]) -> dict[str, Documents]:
        endpoint = self.address.endpoint
        key = endpoint.key(in_clear=True) if endpoint.has_key else ""
        requests = _Requests(Client(endpoint, self.policy.idle, key=key), self.policy, self.depth)
        run_sync(requests.run(batches))
        return requests.results


class _Requests(RequestLoop[Sequence[str], list[tuple[Hit, ...]]]):
    """Requests to a search server, each with a batch of queries."""

    def __init__(self, client: Client, policy: Policy, depth: int) -> None:
        super().__init__(client, policy)
        self._depth = depth
        self.results: dict[str, Documents] = {}

    async def attempt(self, request: Request[Sequence[str]]) -> list[tuple[Hit, ...]]:
        """Send a batch once, and return the documents of each query."""
        question = {"queries": list(request.item), "topk": self._depth, "return_scores": True}
        most = ANSWER_BYTES + DOCUMENT_BYTES * len(request.item) * self._depth
        body = await self.client.post("", question, most)
        try:
            return read_answer(body, len(request.item))
        except MalformedAnswer as error:
            reason = f"{self.client.endpoint.server} gave a malformed answer: {error}"
        raise RequestFailed(reason, again=True, kind="invalid", max_attempts=2)  # perhaps a short fault of a proxy

    async def finish(self, request: Request[Sequence[str]], outcome: list[tuple[Hit, ...]] | RequestFailed) -> None:
        """Keep the documents of each query, or the failure of the batch for all of them."""
        if isinstance(outcome, RequestFailed):
            failure = Failure(outcome.kind, f"{outcome}{outcome.wish}", attempts=request.attempts)
            self.results |= dict.fromkeys(request.item, failure)
        else:
            self.results |= zip(request.item, outcome, strict=True)


def _packed(documents: Documents) -> bytes:
    hits = () if isinstance(documents, Failure) else documents
    return json.dumps([[hit.id, hit.contents, hit.score] for hit in hits]).encode()


def _unpacked(value: bytes) -> Documents:
    return tuple(Hit(*fields) for fields in json.loads(value))


class MalformedAnswer(Exception):  # noqa: N818 - it names the answer
    """An answer that does not follow the protocol."""


def read_answer(body: bytes, queries: int) -> list[tuple[Hit, ...]]:
    """Return the documents of each query. Raises MalformedAnswer, which names the fault."""
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
        raise MalformedAnswer("the documents of a query are not a list")
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
    if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) < MAX_SCORE:
        raise MalformedAnswer("the 'score' of a document is not a number")
    return Hit(to_unicode(name), to_unicode(text), float(score))

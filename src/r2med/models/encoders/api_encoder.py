"""Encode texts with a model behind an API. Texts are cut, looked up in a cache, sent in batches, and saved."""

from __future__ import annotations

import hashlib
import json
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.net.budget import Budget
from r2med.foundation.net.endpoint import warn_before_sending
from r2med.foundation.net.http import Client, RequestFailed, run_sync
from r2med.foundation.net.request_loop import Policy, Request, RequestLoop
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store, default_store, digest
from r2med.foundation.store.files import text_digest
from r2med.foundation.store.memo import Memo, Missing
from r2med.foundation.text.unicode import to_unicode
from r2med.models.encoders.api_tokenizers import TokenLimiter
from r2med.models.encoders.embedding_apis import (
    EMBEDDING_APIS,
    EmbeddingApi,
    bill_shares,
    billed_tokens,
    check_dimension,
    read_json,
)
from r2med.models.encoders.encoder import Encoder, Role, Vectors, batch_receiver, normalised
from r2med.models.encoders.model_cards import ModelCard
from r2med.models.encoders.ragged import Ragged

_TOKENS_FORMAT = struct.Struct("<q")


class PaidVector(NamedTuple):
    """A vector, and the number of tokens that were billed for it."""

    vector: Vectors
    tokens: int


class ApiEncoder(Encoder):
    """Encoder that uses a model behind an API.

    Nothing is sent and no key is needed until a text is not in the cache. Paid answers are used even by a run that
    starts over, because they depend on nothing that is made here.
    """

    def __init__(self, card: ModelCard, instruction: Instruction, runtime: Runtime, store: Store | None = None) -> None:
        if card.loader not in EMBEDDING_APIS:
            raise UserError(f"{card.spec} is not an API model; its loader is {card.loader!r}")
        has_price = "price_per_million_tokens" in card.model_fields_set
        if runtime.budget.limit is not None and not has_price:
            raise UserError(
                f"{card.spec} has no price_per_million_tokens in its card, so a budget cannot be checked; "
                "add the price (0 if the model is free), or run without a budget"
            )
        self._card = card
        self._instruction = instruction
        self._api = api = EMBEDDING_APIS[card.loader]
        self._endpoint = api.endpoint(runtime.setup)
        self._policy = _policy(runtime)
        self._limiter = TokenLimiter(
            (lambda: api.load_tokenizer(model_of(card, "document"))) if api.tokenizer else None, api.added_tokens
        )
        self._store = store  # None if only its key is needed.
        self._budget = runtime.budget
        self._warned = runtime.warned
        self._has_price = has_price
        self._lock = threading.Lock()  # One call at a time, because all calls share the budget.

    def key(self, role: Role) -> dict[str, Any]:
        """Return everything that the vectors of a role depend on.

        The server is included only as a digest, because a URL may contain secrets.
        """
        side = self._card.side(role)
        return {
            **self._answer_key(role),
            "prefix": side.prefix_for(self._instruction),
            "as_json": self._card.as_json,
            "max_tokens": side.max_tokens,
            "dimension": self._card.dimension,
            "normalise": self._card.normalise,
        }

    def encode(self, texts: Sequence[str], role: Role) -> Ragged:
        """Return one finite row per text, in order. Texts that are not in the cache are sent, each distinct text once.

        The cost covers all distinct texts, including those that an earlier run paid for.
        """
        side = self._card.side(role)
        whole = [self._written(side.prefix_for(self._instruction) + text) for text in texts]
        sent = [self._limiter.cut(text, side.max_tokens) for text in whole]
        keys = self._keys(sent, role)
        text_of = dict(zip(keys, sent, strict=True))
        report = _reporting(keys)
        with self._lock, self._memo() as memo:
            missing = memo.missing(text_of)
            report(missing.answers)
            vectors = missing.fill(
                lambda wanted: self._fetch({key: text_of[key] for key in wanted}, role, wanted),
                lambda paid, stored: report(paid),
            )
        cut = sum(len(short) < len(text) for short, text in zip(sent, whole, strict=True))
        return Ragged.single(self._matrix([vectors[key].vector for key in keys]), self._cost(vectors, len(texts), cut))

    def _cost(self, vectors: Mapping[bytes, PaidVector], texts: int, cut: int) -> Cost:
        tokens = sum(paid.tokens for paid in vectors.values())
        dollars = tokens * self._card.price_per_million_tokens / 1e6
        unpriced = 0 if self._has_price else len(vectors)
        return Cost(texts=texts, tokens=tokens, cut=cut, dollars=dollars, unpriced=unpriced)

    def _fetch(self, texts: Mapping[bytes, str], role: Role, missing: Missing[PaidVector]) -> None:
        pending = [PendingText(key, text, self._limiter.bound(text)) for key, text in texts.items()]
        key = self._endpoint.key() if self._api.urls or self._endpoint.has_key else ""
        endpoint = replace(self._endpoint, url=self._endpoint.url or self._api.url(key))
        warn_before_sending(endpoint, self._warned)

        client = Client(endpoint, self._policy.idle, key=key)
        fetch = _Fetch(client, self._policy, self._budget, self._card, role, missing)
        unsent = run_sync(fetch.run(batches(pending, self._api)))
        if unsent:
            raise self._budget.exceeded(sum(map(len, unsent)))

    def _written(self, text: str) -> str:
        """Return a text in the form that is sent.

        Lone surrogates cannot be encoded in UTF-8, and an empty input is refused.
        """
        text = to_unicode(text)
        return json.dumps(text.replace("\n", " ")) if self._card.as_json else text or " "

    def _answer_key(self, role: Role) -> dict[str, Any]:
        """Return everything that an answer depends on, except the text."""
        return {
            "provider": self._api.name,
            "model": model_of(self._card, role),
            "endpoint": self._endpoint.digest,
            "input_type": self._card.side(role).input_type,
            **self._api.key(),
        }

    def _keys(self, sent: Sequence[str], role: Role) -> list[bytes]:
        key = digest(self._answer_key(role)).encode()
        return [hashlib.sha256(key + text_digest(text)).digest() for text in sent]

    def _memo(self) -> Memo[PaidVector]:
        store = self._store or default_store()
        return Memo(store.memo_file("api", self._api.name), _packed, self._unpacked, store.labels.datasets)

    def _unpacked(self, value: bytes) -> PaidVector | None:
        """Return a saved vector. One of another dimension is ignored, because the card had another value then."""
        size, odd_bytes = divmod(len(value) - _TOKENS_FORMAT.size, 4)
        if size <= 0 or odd_bytes or size != (self._card.dimension or size):
            return None
        vector = np.frombuffer(value, dtype="<f4", offset=_TOKENS_FORMAT.size).astype(np.float32)
        return PaidVector(vector, *_TOKENS_FORMAT.unpack_from(value))

    def _matrix(self, rows: list[Vectors]) -> Vectors:
        dimension = check_dimension(rows, self._card.dimension, self._api.name, self._card.spec)
        matrix = np.array(rows, dtype=np.float32).reshape(len(rows), dimension)
        return normalised(matrix) if self._card.normalise else matrix


def _packed(paid: PaidVector) -> bytes:
    return _TOKENS_FORMAT.pack(paid.tokens) + paid.vector.astype("<f4").tobytes()


def _reporting(keys: Sequence[bytes]) -> Callable[[Iterable[bytes]], None]:
    """Return a function that gets keys and reports the number of their texts to the batch receiver."""
    receiver = batch_receiver()
    texts = Counter(keys)

    def report(finished: Iterable[bytes]) -> None:
        if receiver is not None:
            receiver(sum(texts[key] for key in finished))

    return report


def _policy(runtime: Runtime) -> Policy:
    """Return the retry policy. Its limits are shorter than for LLMs, because embeddings come back sooner."""
    usual = Policy()
    return Policy(
        concurrency=min(usual.concurrency, runtime.setup.concurrency),
        deadline=min(usual.deadline, runtime.setup.deadline),
        idle=min(usual.idle, runtime.setup.idle),
    )


@dataclass(frozen=True)
class PendingText:
    """A text to send, the cache key of its vector, and its maximum number of tokens."""

    key: bytes
    text: str
    tokens: int


class _Fetch(RequestLoop[list[PendingText], Any]):
    """The requests of one call of `encode`. Each answer is saved as soon as it arrives."""

    def __init__(
        self,
        client: Client,
        policy: Policy,
        budget: Budget,
        card: ModelCard,
        role: Role,
        missing: Missing[PaidVector],
    ) -> None:
        super().__init__(client, policy, budget)
        self._card = card
        self._api = EMBEDDING_APIS[card.loader]
        self._role: Role = role
        self._missing = missing
        self._dimension = card.dimension

    def price(self, item: list[PendingText]) -> float:
        """Return the most dollars that a batch may cost."""
        return sum(pending.tokens for pending in item) * self._card.price_per_million_tokens / 1e6

    async def attempt(self, request: Request[list[PendingText]]) -> Any:
        """Send a batch once, and return the JSON of its answer."""
        texts = [pending.text for pending in request.item]
        body = self._api.body(model_of(self._card, self._role), self._card.side(self._role).input_type, texts)
        answer = read_json(await self.client.post(self._api.path, body), self.client.endpoint.server)
        request.dollars = self._tokens(request, answer) * self._card.price_per_million_tokens / 1e6
        return answer

    async def finish(self, request: Request[list[PendingText]], outcome: Any | RequestFailed) -> None:
        """Save the vectors of a batch. Nothing waits here, so at Ctrl-C an answer is saved or has not arrived yet."""
        if isinstance(outcome, RequestFailed):
            raise outcome.given_up(request.attempts)
        batch = request.item
        answer = self._api.read(outcome, len(batch))
        good = [index for index in range(len(batch)) if index not in answer.bad]
        rows = [answer.rows[index] for index in good]
        self._dimension = check_dimension(rows, self._dimension, self._api.name, self._card.spec)
        shares = bill_shares(self._tokens(request, outcome), [pending.tokens for pending in batch])
        self._missing.put({batch[index].key: PaidVector(answer.rows[index], shares[index]) for index in good})
        if answer.bad:
            text = batch[answer.bad[0]].text
            raise UserError(
                f"{self._api.name}: the returned embedding of {text[:60]!r} has values that are not finite numbers"
            )

    def _tokens(self, request: Request[list[PendingText]], answer: Any) -> int:
        """Return the tokens on the bill, or else the most that a batch may have."""
        return billed_tokens(answer, sum(pending.tokens for pending in request.item), self._api.tokens)


def model_of(card: ModelCard, role: Role) -> str:
    """Return the name of the model that encodes a role, as its API knows it."""
    return card.side(role).repository or card.repository or card.name


def batches(pending: Sequence[PendingText], api: EmbeddingApi) -> list[list[PendingText]]:
    """Return the texts in order, in batches within the limits of an API."""
    groups: list[list[PendingText]] = []
    tokens = 0
    for text in pending:
        tokens += text.tokens
        if not groups or len(groups[-1]) >= api.texts_per_request or tokens > api.tokens_per_request:
            groups.append([])
            tokens = text.tokens
        groups[-1].append(text)
    return groups

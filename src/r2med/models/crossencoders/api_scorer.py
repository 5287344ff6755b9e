"""Score pairs with a model behind a rerank API. Documents of one query are sent together, and each answer is saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.errors import UserError
from r2med.foundation.net.budget import Budget
from r2med.foundation.net.endpoint import Endpoint, endpoint_at, warn_before_sending
from r2med.foundation.net.http import Client, RequestFailed, run_sync
from r2med.foundation.net.request_loop import Policy, Request, RequestLoop
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.text.unicode import to_unicode
from r2med.models.crossencoders.pair_scorer import ScoredPair
from r2med.models.crossencoders.pairs import Pair
from r2med.models.crossencoders.rerank_apis import (
    RERANK_APIS,
    RerankApi,
    billed_searches,
    most_searches,
    read_scores,
    refusal,
    with_limit,
)
from r2med.models.crossencoders.reranker_cards import RerankerCard
from r2med.models.encoders.embedding_apis import bill_shares, billed_tokens, read_json

Save = Callable[[Mapping[int, ScoredPair]], None]
"""Function that gets finished pairs by their position. It is called in the thread of the network."""


@dataclass(frozen=True)
class RerankRequest:
    """Documents of one query that are sent together."""

    query: str
    documents: tuple[str, ...]
    positions: tuple[int, ...]
    """Position of each pair among all pairs."""

    @property
    def sizes(self) -> list[int]:
        """The most tokens of each pair: a token has at least one byte."""
        return [len(self.query.encode()) + len(document.encode()) for document in self.documents]


class ApiScorer:
    """Scorer that uses a model behind an API. Nothing is sent and no key is needed until a pair is scored.

    Scores may cost money. So each is saved as soon as it arrives, and a run that starts over uses it, too.
    """

    def __init__(self, card: RerankerCard, instruction: Instruction, runtime: Runtime) -> None:
        self._card = card
        self._api = with_limit(RERANK_APIS[card.loader], card.documents_per_request)
        self._around = card.query_parts(instruction)
        self._endpoint = api_endpoint(card, runtime.setup)
        self._policy = runtime.setup.policy
        self._budget = runtime.budget
        self._warned = runtime.warned
        if runtime.budget.limit is not None and not card.is_priced:
            raise UserError(
                f"{card.name} has no price in its card, so a budget cannot be checked; add price_per_million_tokens or "
                "price_per_thousand_searches (0 if the model is free), or run without a budget"
            )

    def key(self) -> dict[str, Any]:
        """Return everything that a score depends on. The server is a digest, as a URL may contain secrets."""
        return {
            "loader": self._card.loader,
            "model": self._card.repository,
            "endpoint": self._endpoint.digest,
            "query_template": "{query}".join(self._around),
            "settings": dict(self._api.settings),
        }

    def score(self, pairs: Sequence[Pair], save: Save | None = None) -> list[ScoredPair]:
        """Return one score per pair, in their order. Raises UserError if the API gives no score for a pair.

        `save` gets the scores of each request as soon as they arrive.
        """
        if not pairs:
            return []
        endpoint = self._endpoint
        key = endpoint.key() if self._api.urls or endpoint.has_key else ""
        endpoint = replace(endpoint, url=endpoint.url or self._api.url(key))
        scored: dict[int, ScoredPair] = {}
        warn_before_sending(endpoint, self._warned)

        def keep(finished: Mapping[int, ScoredPair]) -> None:
            scored.update(finished)
            if save is not None:
                save(finished)

        client = Client(endpoint, self._policy.idle, key=key, refusal=partial(refusal, self._api))
        calls = _Calls(client, self._policy, self._budget, self._api, self._card, keep)
        unsent = run_sync(calls.run(self._requests(pairs)))
        if unsent:
            raise self._budget.exceeded(sum(len(request.documents) for request in unsent))
        return [scored[position] for position in range(len(pairs))]

    def _requests(self, pairs: Sequence[Pair]) -> list[RerankRequest]:
        """Return the requests for some pairs: documents of one query together, within the limits of the API."""
        before, after = self._around
        by_query: dict[str, list[int]] = {}
        for position, (query, _) in enumerate(pairs):
            by_query.setdefault(query, []).append(position)
        requests: list[RerankRequest] = []
        for query, positions in by_query.items():
            text = _written(before + query + after)
            documents = [_written(pairs[position][1]) for position in positions]
            for start, end in _chunks(text, documents, self._api):
                requests.append(RerankRequest(text, tuple(documents[start:end]), tuple(positions[start:end])))
        return requests


class _Calls(RequestLoop[RerankRequest, Any]):
    """The requests of one call of `score`. Each answer is saved as soon as it arrives."""

    def __init__(
        self, client: Client, policy: Policy, budget: Budget, api: RerankApi, card: RerankerCard, keep: Save
    ) -> None:
        super().__init__(client, policy, budget)
        self._api = api
        self._card = card
        self._keep = keep

    def price(self, item: RerankRequest) -> float:
        """Return the most dollars that a request may cost."""
        return self._card.dollars(sum(item.sizes), most_searches(item.query, item.documents))

    async def attempt(self, request: Request[RerankRequest]) -> Any:
        """Send documents once, and return the JSON of the answer."""
        body = self._api.body(self._card.repository, request.item.query, request.item.documents)
        answer = read_json(await self.client.post(self._api.path, body), self.client.endpoint.server)
        request.dollars = self._card.dollars(billed_tokens(answer, 0), self._searches(request, answer))
        return answer

    async def finish(self, request: Request[RerankRequest], outcome: Any | RequestFailed) -> None:
        """Save the scores of a request. Nothing waits here, so at Ctrl-C an answer is saved or has not arrived yet."""
        if isinstance(outcome, RequestFailed):
            raise outcome.given_up(request.attempts)
        documents = request.item.documents
        server, count = self.client.endpoint.server, len(documents)
        scores = read_scores(outcome, self._api, count, server)
        seconds, searches = request.seconds / count, self._searches(request, outcome) / count
        shares = bill_shares(billed_tokens(outcome, 0), request.item.sizes)
        self._keep(
            {
                position: ScoredPair(score, tokens, seconds=seconds, searches=searches)
                for position, score, tokens in zip(request.item.positions, scores, shares, strict=True)
                if score is not None
            }
        )
        if None in scores:
            text = documents[scores.index(None)]
            raise UserError(f"{server}: the returned score of {text[:60]!r} is not a finite number")

    def _searches(self, request: Request[RerankRequest], answer: Any) -> float:
        """Return the number of searches on the bill of an API that is paid for searches."""
        is_priced = self._card.price_per_thousand_searches
        return billed_searches(answer, len(request.item.documents)) if is_priced else 0.0


def api_endpoint(card: RerankerCard, setup: Setup) -> Endpoint:
    """Return the endpoint of a card's API. Raises UserError if a server of the user's own has no address."""
    api = RERANK_APIS[card.loader]
    url = dict(setup.endpoints).get(api.name) or os.environ.get(api.url_variable, "").strip()
    if not api.urls:  # --base-url is the address of a user's own server, and never that of a provider.
        url = url or setup.base_url
        if not url:
            raise UserError(
                f"{api.name}:{card.repository} runs on a server of your own: give its address with base_url "
                f"(--base-url URL) or {api.url_variable}",
            )
    return endpoint_at(url, api.name, api.key_variable)


def api_missing(card: RerankerCard, setup: Setup) -> str:
    """Return the problem that prevents scoring with an API, on one line: no address, or a key that is not set."""
    try:
        endpoint = api_endpoint(card, setup)
    except UserError as error:
        return str(error)
    return endpoint.missing(needs_key=bool(RERANK_APIS[card.loader].urls))


def _chunks(query: str, documents: Sequence[str], api: RerankApi) -> list[tuple[int, int]]:
    """Return the (start, end) of each request's documents, within the limits of an API."""
    asked = len(query.encode())
    cuts, size = [0], 0
    for index, document in enumerate(documents):
        size += asked + len(document.encode())
        if index > cuts[-1] and (index - cuts[-1] >= api.documents_per_request or size > api.bytes_per_request):
            cuts.append(index)
            size = asked + len(document.encode())
    return list(zip(cuts, [*cuts[1:], len(documents)], strict=True))


def _written(text: str) -> str:
    """Return a text in the form that is sent. Lone surrogates are not UTF-8, and an empty text is refused."""
    return to_unicode(text) or " "

"""Rerank APIs: scores equal the server's, in every shape; limits, costs, errors of one line, and keys never shown."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from r2med.data.dataset_cards import ANY_DATASET, Instruction
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.crossencoders.api_scorer import ApiScorer, api_missing
from r2med.models.crossencoders.pair_scorer import cost_of, open_scorer
from r2med.models.crossencoders.rerank_apis import RERANK_APIS, own_servers
from r2med.models.crossencoders.reranker_cards import RERANKERS, RerankerCard, resolve_reranker
from support import rerank_server as api
from support.keys import KEY
from support.rerank_server import SHAPES, Server, score

PAIRS = [
    ("heart", "a heart beats"),
    ("gout", "toe"),
    ("heart", "tax law"),
    ("gout", ""),
    ("heart", "naïve 心 🫀"),
    ("gout", "lone \ud800 half"),
]
SENT = [(query, {"": " ", "lone \ud800 half": "lone � half"}.get(document, document)) for query, document in PAIRS]
OWN_SERVERS = own_servers()
HOSTED = [name for name in RERANK_APIS if name not in OWN_SERVERS]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in RERANK_APIS.values():
        monkeypatch.delenv(name.url_variable, raising=False)
        monkeypatch.setenv(name.key_variable, KEY)


@pytest.fixture(params=SHAPES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with api.serve(request.param) as running:
        yield running


def name_of(server: Server) -> str:
    return next(name for name, shape in SHAPES.items() if shape is server.shape)


def card_of(name: str, **changes: Any) -> RerankerCard:
    prices = {} if name in OWN_SERVERS else {"price_per_million_tokens": 1e6}
    return RerankerCard(**{"name": name, "loader": name, "repository": "some-model", **prices, **changes})


def opened(server: Server, budget: float | None = None, words: Instruction = ANY_DATASET, **changes: Any) -> ApiScorer:
    name = name_of(server)
    runtime = Runtime(endpoints=((name, server.address),), budget=budget, first_wait=0.001)
    return ApiScorer(card_of(name, **changes), words, runtime)


def test_scores_are_those_of_the_server_and_documents_of_a_query_go_together(server: Server) -> None:
    server.otherwise = api.answer(api.shuffled)
    scored = opened(server).score(PAIRS)
    assert [pair.score for pair in scored] == [score(*pair) for pair in SENT]
    assert sorted(request.body[server.shape.query] for request in server.requests) == ["gout", "heart"]
    assert {request.key for request in server.requests} == {f"Bearer {KEY}"}
    assert all(request.body.get("model", "some-model") == "some-model" for request in server.requests)
    assert all(pair.seconds > 0 and not pair.cut for pair in scored)
    assert opened(server).score([]) == []


def test_no_request_has_more_documents_than_the_server_takes(server: Server) -> None:
    pairs = [("heart", f"document {number}") for number in range(150)]
    found: dict[int, float] = {}
    opened(server).score(pairs, lambda done: found.update({index: pair.score for index, pair in done.items()}))
    assert found == {index: score(*pair) for index, pair in enumerate(pairs)}
    assert len(server.requests) == -(-150 // min(150, server.shape.most))
    server.requests.clear()
    opened(server, documents_per_request=20).score(pairs)
    assert len(server.requests) == 8


def test_long_documents_are_spread_over_several_requests(server: Server) -> None:
    most = RERANK_APIS[name_of(server)].bytes_per_request
    pairs = [("heart", f"{number}" + "x" * (most // 3)) for number in range(6)]
    assert [pair.score for pair in opened(server).score(pairs)] == [score(*pair) for pair in pairs]
    assert len(server.requests) == 3


def test_a_template_may_put_the_dataset_s_words_before_a_query(server: Server) -> None:
    words = Instruction(kind="question", what="passages", domain="Medical")
    scorer = opened(server, words=words, query="Given a {kind}, find {what}: {query}")
    scorer.score([("gout", "toe")])
    assert server.requests[0].body[server.shape.query] == "Given a question, find passages: gout"
    assert scorer.key()["query_template"] == "Given a question, find passages: {query}"


def test_tokens_are_those_of_the_bill(server: Server) -> None:
    scored = opened(server).score(PAIRS[:3])
    billed = sum(len(query.split()) + len(document.split()) for query, document in PAIRS[:3])
    known = 0 if name_of(server) in ("cohere", "tei") else billed
    cost = cost_of(scored, card_of(name_of(server)))
    assert (cost.tokens, cost.texts, cost.unpriced) == (known, 3, 0)
    assert cost.dollars == (0 if name_of(server) in OWN_SERVERS else known)


def test_searches_are_paid_by_the_hundred_documents() -> None:
    with api.serve("cohere") as server:
        prices = {"price_per_million_tokens": None, "price_per_thousand_searches": 2.0}
        scored = opened(server, **prices).score([("gout", f"d{number}") for number in range(101)])
        assert cost_of(scored, card_of("cohere", **prices)).dollars == pytest.approx(2 * 0.002)


def test_an_unknown_price_is_counted_and_no_budget_can_be_kept() -> None:
    scored = [pair._replace(tokens=5) for pair in [open_pair()] * 3]
    cost = cost_of(scored, card_of("jina", price_per_million_tokens=None))
    assert (cost.dollars, cost.unpriced) == (0, 3)
    with pytest.raises(UserError, match="has no price in its card"):
        ApiScorer(card_of("jina", price_per_million_tokens=None), ANY_DATASET, Runtime(budget=1.0))
    ApiScorer(card_of("tei"), ANY_DATASET, Runtime(budget=1.0, base_url="http://127.0.0.1:9"))


def open_pair() -> Any:
    from r2med.models.crossencoders.pair_scorer import ScoredPair

    return ScoredPair(0.5)


def test_a_budget_stops_before_the_next_request() -> None:
    with api.serve("voyage") as server:
        saved: dict[int, Any] = {}
        scorer = opened(server, budget=40.0, documents_per_request=1)
        with pytest.raises(UserError, match=r"the budget of \$40 allows no further request.* texts remain"):
            scorer.score([("q", f"document {number}") for number in range(30)], saved.update)
        assert 1 <= len(saved) < 30 and len(saved) == len(server.requests)


@pytest.mark.parametrize("script", [[503, 502], [429, 429], [500, 429]])
def test_temporary_failures_are_tried_again(server: Server, script: list[int]) -> None:
    server.script = [api.refuse(status, retry_after="0") for status in script]
    assert [pair.score for pair in opened(server).score(PAIRS[:1])] == [score(*PAIRS[0])]
    assert len(server.requests) == 3


GARBAGE: dict[str, tuple[Callable[[api.Exchange], None], str]] = {
    "no JSON": (lambda exchange: exchange.send(200, b"<html>hello"), "the answer is not JSON; check the base URL"),
    "no results": (lambda exchange: exchange.send(200, {"object": "list"}), "has no list of results"),
    "numbers": (lambda exchange: exchange.send(200, [1, 2]), "has no list of results"),
    "too few": (api.answer(lambda results: results[1:]), "1 scores were returned for 2 documents"),
    "too many": (api.answer(lambda results: [*results, results[0]]), "3 scores were returned for 2 documents"),
    "repeated": (api.answer(lambda results: [results[0]] * 2), "not numbered 0 to 1, each once"),
    "no number": (api.answer(lambda rows: [{**row, "index": "0"} for row in rows]), "not numbered 0 to 1"),
    "negative": (api.answer(lambda rows: [{**row, "index": row["index"] - 1} for row in rows]), "not numbered"),
    "text": (api.answer(lambda rows: [rows[0], {"index": rows[1]["index"], "score": "high"}]), "not a finite number"),
    "401": (api.refuse(401), "refuses the key in [A-Z]+_API_KEY"),
    "404": (api.refuse(404), "HTTP 404.*check the model's name, and the base URL, to which /(rerank|score) is added"),
    "413": (api.refuse(413), "HTTP 413"),
    "422": (api.refuse(422), "HTTP 422.*too long for the model"),
    "400": (api.refuse(400, {"message": f"bad key {KEY}"}), "HTTP 400"),
}


@pytest.mark.parametrize("fault", GARBAGE)
def test_bad_answers_are_one_line_without_the_key(server: Server, fault: str) -> None:
    step, message = GARBAGE[fault]
    server.otherwise = step
    with pytest.raises(UserError, match=message) as error:
        opened(server).score([("gout", "toe"), ("gout", "tax")])
    assert "\n" not in str(error.value) and KEY not in str(error.value)
    assert len(server.requests) == 1


def test_good_scores_of_an_answer_with_a_bad_one_are_saved() -> None:
    with api.serve("tei") as server:
        server.otherwise = api.answer(lambda rows: [{**row, "score": None} if row["index"] else row for row in rows])
        saved: dict[int, Any] = {}
        with pytest.raises(UserError, match="the returned score of 'tax' is not a finite number"):
            opened(server).score([("gout", "toe"), ("gout", "tax")], saved.update)
        assert {index: pair.score for index, pair in saved.items()} == {0: score("gout", "toe")}


@pytest.mark.parametrize("name", OWN_SERVERS)
def test_a_server_of_one_s_own_is_named_by_its_api_and_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    card = resolve_reranker(f"{name}:org/model")
    monkeypatch.delenv(RERANK_APIS[name].key_variable)
    with pytest.raises(UserError, match=f"runs on a server of your own.*{RERANK_APIS[name].url_variable}"):
        open_scorer(card, ANY_DATASET, Runtime())
    with api.serve(name) as server:
        scorer = open_scorer(card, ANY_DATASET, Runtime(base_url=server.address))
        assert [pair.score for pair in scorer.score(PAIRS[:1])] == [score(*PAIRS[0])]
        assert server.requests[0].key == ""
        assert server.requests[0].body.get("model", "org/model") == "org/model"
        monkeypatch.setenv(RERANK_APIS[name].url_variable, server.address)
        assert open_scorer(card, ANY_DATASET, Runtime(base_url="http://127.0.0.1:9")).score(PAIRS[:1])
    with pytest.raises(UserError, match="MODEL"):
        resolve_reranker(f"{name}:")


@pytest.mark.parametrize("name", HOSTED)
def test_a_provider_is_never_looked_for_at_the_base_url_of_llms(name: str) -> None:
    here, there = (
        ApiScorer(card_of(name), ANY_DATASET, Runtime(base_url=url)).key() for url in ("", "http://127.0.0.1:9/v1")
    )
    assert here == there and here["endpoint"] == ""


def test_offline_refuses_a_provider_and_allows_this_machine() -> None:
    runtime = Runtime(offline=True)
    with runtime, pytest.raises(UserError, match="offline"):
        ApiScorer(card_of("cohere"), ANY_DATASET, runtime)
    with api.serve("tei") as server, Runtime(offline=True, base_url=server.address) as runtime:
        assert ApiScorer(card_of("tei"), ANY_DATASET, runtime).score(PAIRS[:1])


def test_a_missing_key_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.delenv("COHERE_API_KEY")
    with api.serve("cohere") as server, pytest.raises(UserError, match="set the environment variable COHERE_API_KEY"):
        opened(server).score(PAIRS)
    assert not server.requests
    assert api_missing(card_of("cohere"), Setup()) == "COHERE_API_KEY is not set; export it before the run"
    assert api_missing(card_of("jina"), Setup()) == ""


def test_the_cards_of_providers_can_be_opened() -> None:
    names = {card.repository for card in RERANKERS.values() if card.is_api}
    assert names == {"rerank-v4.0-pro", "rerank-v3.5", "jina-reranker-v3", "rerank-2.5", "rerank-2.5-lite"}
    for card in RERANKERS.values():
        if card.is_api:
            assert open_scorer(card, ANY_DATASET, Runtime()).key()["model"] == card.repository


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"loader": "cohere", "max_tokens": 512}, "its server cuts texts"),
        ({"loader": "cohere", "join": "bos"}, "join has no meaning with the loader cohere"),
        ({"loader": "classifier", "price_per_million_tokens": 1.0}, "has no meaning with the loader classifier"),
        ({"loader": "jina", "repository": ""}, "needs the name of its model"),
    ],
)
def test_a_card_with_fields_of_another_loader_is_refused(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        RerankerCard(**{"name": "x", "repository": "m", **changes})

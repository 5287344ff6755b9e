"""Encoders behind an API: one correct row per text, in order, with the prefix and input type of each role."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.foundation.net.request_loop import Policy
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.api_encoder import ApiEncoder
from r2med.models.encoders.model_cards import MODELS, Side
from support import embedding_server as api
from support.api_encoders import TEXTS, WORDS, expected, opened
from support.embedding_server import Server
from support.processes import PATIENCE

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_a_row_per_text_in_the_texts_order(server: Server, home: Path, provider: str) -> None:
    texts = [f"text {i} " + "word " * (i % 90) for i in range(500)]
    encoded = opened(server, home, provider).encode(texts, "document")
    assert encoded.vectors.dtype == np.float32
    np.testing.assert_array_equal(encoded.vectors, expected(texts))
    assert all(len(r.texts) <= 256 for r in server.requests) and len(server.requests) > 1
    assert sorted(t for r in server.requests for t in r.texts) == sorted(texts)
    assert (encoded.cost.texts, encoded.cost.cut, encoded.cost.unpriced) == (500, 0, 0)
    assert encoded.cost.tokens == sum(map(api.tokens, texts)) == encoded.cost.dollars


def test_rows_are_ordered_by_their_index(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.answer(api.shuffled)
    texts = [f"text {i}" for i in range(50)]
    np.testing.assert_array_equal(opened(server, home, provider).encode(texts, "document").vectors, expected(texts))


def test_decimals_are_read_as_well_as_base64(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.answer(decimals=True)
    np.testing.assert_array_equal(opened(server, home, provider).encode(TEXTS, "document").vectors, expected(TEXTS))


def test_prefix_and_input_type_go_with_the_role(server: Server, home: Path, provider: str) -> None:
    encoder = opened(server, home, provider)
    for role in ("query", "document", "generated"):
        encoder.encode(["gout"], role)  # type: ignore[arg-type]
    assert server.requests[0].texts == ["about question: gout"]
    assert [r.body.get("input_type") for r in server.requests] == (
        ["query", "document", "query"] if provider == "voyage" else [None, None]
    )  # OpenAI knows no roles: the bare generated text is the document, and cached
    assert all(r.path == "/v1/embeddings" and r.body["model"] == f"{provider}-model" for r in server.requests)
    assert all(r.body.get("truncation", False) is False for r in server.requests)


def test_a_published_variant_sends_each_text_as_a_json_string(server: Server, home: Path, provider: str) -> None:
    texts = ['a "large"\nnaïve heart', "", "b"]
    rows = opened(server, home, provider, as_json=True).encode(texts, "document").vectors
    sent = [json.dumps(text.replace("\n", " ")) for text in texts]
    assert [request.texts for request in server.requests] == [sent]
    assert sent[0] == '"a \\"large\\" na\\u00efve heart"'
    np.testing.assert_array_equal(rows, expected(sent))
    plain, published = (MODELS[f"{provider}{variant}"] for variant in ("", ":published"))
    assert (plain.as_json, published.as_json) == (False, True)


def test_generated_text_is_a_query_to_voyage_as_published(server: Server, home: Path) -> None:
    sides = MODELS["voyage"].side("generated"), MODELS["voyage:published"].side("generated")
    assert [side.input_type for side in sides] == ["document", "query"]


def test_identical_texts_are_sent_once(server: Server, home: Path) -> None:
    rows = opened(server, home).encode(["gout", "asthma", "gout"], "document").vectors
    assert [r.texts for r in server.requests] == [["gout", "asthma"]]
    np.testing.assert_array_equal(rows, expected(["gout", "asthma", "gout"]))


def test_empty_texts_and_no_texts(server: Server, home: Path) -> None:
    encoder = opened(server, home)
    assert encoder.encode([], "document").vectors.shape == (0, api.DIMENSION)
    assert not server.requests
    np.testing.assert_array_equal(encoder.encode(["", "a \ud800 b"], "document").vectors, expected([" ", "a � b"]))


def test_vectors_are_normalised_if_the_card_says_so(server: Server, home: Path) -> None:
    rows = opened(server, home, normalise=True).encode(TEXTS, "document").vectors
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)


def test_several_requests_go_at_once_and_no_more_than_allowed(server: Server, home: Path, small_requests: None) -> None:
    four = threading.Barrier(4, timeout=PATIENCE)

    def answer_by_fours(exchange: api.Exchange) -> None:
        four.wait()
        api.answer(delay=0.1)(exchange)

    server.otherwise = answer_by_fours
    opened(server, home, policy=Policy(concurrency=4)).encode([f"text {i}" for i in range(8)], "document")
    assert server.most_at_once == 4


def test_encode_works_inside_a_running_loop(server: Server, home: Path, provider: str) -> None:
    async def notebook() -> Any:
        return opened(server, home, provider).encode(TEXTS, "document").vectors

    np.testing.assert_array_equal(asyncio.run(notebook()), expected(TEXTS))


def test_the_real_cards_can_be_opened(home: Path) -> None:
    for name in ("openai", "voyage"):
        about = ApiEncoder(MODELS.card(name), WORDS, Runtime(), Store(home)).key("query")
        assert {"model", "provider", "prefix", "max_tokens", "input_type", "normalise"} <= about.keys()
        assert about["endpoint"] == ""
        json.dumps(about)


def test_the_description_of_documents_does_not_contain_the_query_prefix(server: Server, home: Path) -> None:
    one, two = opened(server, home), opened(server, home, query=Side(prefix="other"))
    assert one.key("document") == two.key("document")
    assert one.key("query") != two.key("query")

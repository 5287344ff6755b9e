"""It is said before texts are sent to another machine, once for each server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from r2med import Dataset, run
from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.net.endpoint import Endpoint
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.crossencoders.api_scorer import ApiScorer
from r2med.models.crossencoders.reranker_cards import RerankerCard
from support import api_encoders, chat_server, embedding_server, rerank_server
from support.keys import KEY


def _expand(server: Any, home: Path) -> None:
    dataset = Dataset.of({"q": "How?", "r": "Why?"}, {"d": "A passage."}, {"q": {"d": 1}})
    run("hyde(org/m) → bm25", dataset, out=None, base_url=server.address)


def _rerank(server: Any, home: Path) -> None:
    dataset = Dataset.of({"q": "Why?"}, {"d": "Why? So.", "e": "Why not?"}, {"q": {"d": 1}})
    run("bm25 → pointwise(org/m)@2", dataset, out=None, base_url=server.address)


def _encode(server: Any, home: Path) -> None:
    encoder = api_encoders.opened(server, home)
    encoder.encode(["gout"], "query")
    encoder.encode(["toe"], "query")


def _score(server: Any, home: Path) -> None:
    card = RerankerCard(name="cohere", loader="cohere", repository="some-model", price_per_million_tokens=1.0)
    scorer = ApiScorer(card, ANY_DATASET, Runtime(endpoints=(("cohere", server.address),)))
    scorer.score([("gout", "toe")])
    scorer.score([("gout", "ankle")])


@pytest.mark.parametrize(
    ("serve", "send"),
    [
        pytest.param(chat_server.serve, _expand, id="expansion"),
        pytest.param(chat_server.serve, _rerank, id="reranker"),
        pytest.param(embedding_server.serve, _encode, id="embedding API"),
        pytest.param(lambda: rerank_server.serve("cohere"), _score, id="rerank API"),
    ],
)
def test_a_warning_comes_before_the_first_text_and_only_once(
    serve: Callable[[], AbstractContextManager[Any]],
    send: Callable[[Any, Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Endpoint, "is_local", property(lambda endpoint: False))  # this machine counts as another
    monkeypatch.setattr(Endpoint, "is_open", property(lambda endpoint: False))
    for name in ("OPENAI_API_KEY", "COHERE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with serve() as server, warnings(lambda: len(server.requests)) as sent:
        send(server, tmp_path)
        assert sent == [0]
        assert server.requests


@contextmanager
def warnings(requests: Callable[[], int]) -> Iterator[list[int]]:
    """Yield the number of requests that were sent before each warning."""
    found: list[int] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "texts are sent to" in record.getMessage():
                found.append(requests())

    logging.getLogger("r2med").addHandler(handler := Handler())
    try:
        yield found
    finally:
        logging.getLogger("r2med").removeHandler(handler)

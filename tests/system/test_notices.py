"""What a system tells of queries that found nothing: once, by whoever knows best."""

import logging
from pathlib import Path

import pytest

from r2med import System
from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.store import Store

NOTHING = "there is nothing to rerank"


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["fever", "rash"], []),
        (["fever", "zzz"], ["1 of 2 queries have no candidates"]),
        (["zzz", "yyy"], [NOTHING]),
    ],
)
def test_queries_without_candidates_are_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, texts: list[str], says: list[str]
) -> None:
    (tmp_path / "ones.py").write_text(
        "class Ones:\n    def predict(self, pairs):\n        return [1.0 for _ in pairs]\n"
    )
    monkeypatch.chdir(tmp_path)
    queries = tuple(Query(str(place), text) for place, text in enumerate(texts))
    dataset = Dataset("tiny", queries, Corpus.of([("a", "fever"), ("b", "rash")]), Qrels({"0": {"a": 1}}))
    with caplog.at_level(logging.INFO, "r2med"):
        System.parse("bm25 → py:ones:Ones@5").run(dataset, Store(tmp_path / "store"), 5)
    told = [message for message in caplog.messages if "candidates" in message or NOTHING in message]
    assert len(told) == len(says) and all(said in message for said, message in zip(says, told, strict=True))

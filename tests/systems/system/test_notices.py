"""What a system tells of candidates that are missing: once, by whoever knows best."""

import logging
from pathlib import Path

import pytest

from r2med import System
from r2med.data import Corpus, Dataset, Qrels, Query

NOTHING = "there is nothing to rerank"


def with_ones(folder: Path) -> Path:
    (folder / "ones.py").write_text("class Ones:\n    def predict(self, pairs):\n        return [1.0 for _ in pairs]\n")
    return folder


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
    monkeypatch.chdir(with_ones(tmp_path))
    queries = tuple(Query(str(place), text) for place, text in enumerate(texts))
    dataset = Dataset("tiny", queries, Corpus.of([("a", "fever"), ("b", "rash")]), Qrels({"0": {"a": 1}}))
    with caplog.at_level(logging.INFO, "r2med"):
        System.parse("bm25 → py:ones:Ones@5").run(dataset, 5)
    told = [message for message in caplog.messages if "candidates" in message or NOTHING in message]
    assert len(told) == len(says) and all(said in message for said, message in zip(says, told, strict=True))


@pytest.mark.parametrize(("depth", "told"), [(1, False), (2, True), (3, True), (4, False)])
def test_a_depth_beyond_the_run_is_told_unless_the_corpus_is_smaller_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, depth: int, told: bool
) -> None:
    monkeypatch.chdir(with_ones(tmp_path))
    corpus = Corpus.of([("a", "fever"), ("b", "rash"), ("c", "cough")])
    dataset = Dataset("tiny", (Query("0", "fever"),), corpus, Qrels({"0": {"a": 1}}))
    with caplog.at_level(logging.INFO, "r2med"):
        outcome = System.parse(f"bm25 → py:ones:Ones@{depth}").run(dataset, 5)
    assert [document for _, found in outcome.run for document, _ in found] == ["a"]
    assert any("no ranking has more than 1 documents" in message for message in caplog.messages) == told

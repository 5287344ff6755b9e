"""Search by the first numbers of vectors: scores are those of a plain computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from r2med import Dataset, Qrels, Query, UserError
from r2med.data import Corpus
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.systems.system import System
from support.tiny_models import SENTENCES

WORDS = "heart attack tax law lung bread gut bacteria angioedema infarction swelling choking dental enzyme".split()


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(6)
    texts = [*SENTENCES, *(" ".join(rng.choice(WORDS, 6)) for _ in range(60))]
    corpus = Corpus.of((f"d{number}", text) for number, text in enumerate(texts))
    queries = (Query("q1", "heart attack"), Query("q2", "bacteria of the gut"))
    return Dataset("small", queries, corpus, Qrels({"q1": {"d2": 1}, "q2": {"d5": 1}}))


def ranking(spec: str, data: Dataset, store: Store) -> dict[str, list[tuple[str, float]]]:
    return {query: list(found) for query, found in System.parse(spec, Setup(store=store)).run(data, 10).run}


def stored(store: Store, kind: str) -> Any:
    [folder] = [path for path in (store.root / kind).iterdir() if (path / "vectors.npy").is_file()]
    return np.load(folder / "vectors.npy").astype(np.float64)


def test_the_first_numbers_are_scaled_to_length_one_and_nothing_is_encoded_again(
    data: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ranking("minilm", data, store)
    monkeypatch.setattr("r2med.models.encoders.transformer.Tower.__init__", None)  # would fail if a model were loaded
    found = ranking("minilm(dims=64)", data, store)
    queries, documents = (each[:, :64] for each in (stored(store, "query-vectors"), stored(store, "vectors")))
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (queries, documents)]
    for scores, (query, hits) in zip(units[0] @ units[1].T, found.items(), strict=True):
        best = np.sort(scores)[::-1][:10]
        np.testing.assert_allclose([score for _, score in hits], best, atol=1e-6)
        assert all(abs(scores[int(name[1:])] - score) < 1e-6 for name, score in hits)
        assert hits != whole[query]
    assert ranking("minilm(dims=384)", data, store)["q1"][0][0] == whole["q1"][0][0]


def test_a_negative_number_is_one_line() -> None:
    with pytest.raises(UserError, match="dims"):
        System.parse("minilm(dims=-1)")


def test_more_numbers_than_a_vector_has_are_refused(data: Dataset, store: Store) -> None:
    with pytest.raises(UserError, match=r"minilm\(dims=1000\): its vectors have 384 numbers, fewer than dims"):
        ranking("minilm(dims=1000)", data, store)

"""Vectors with fewer numbers or fewer bits: candidates and scores are those of a plain computation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from r2med import Dataset, Qrels, Query, UserError, evaluate
from r2med.data import Corpus
from r2med.foundation.store import Store
from r2med.systems.retrieve.dense import quantised, rescoring
from r2med.systems.retrieve.dense.quantised import Binary, CodedBlocks, Int8, search_quantised
from r2med.systems.system import System
from support.tiny_models import SENTENCES

WORDS = "heart attack tax law lung bread gut bacteria angioedema infarction swelling choking dental enzyme".split()


def vectors(count: int, dimension: int, seed: int) -> Any:
    """Return vectors of many lengths, some equal, some zero."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimension)) * np.exp2(rng.integers(-6, 6, (count, 1)))
    rows[count // 2] = rows[0]
    rows[count // 3] = 0
    return rows.astype(np.float32)


def plain_int8(row: Any) -> tuple[list[int], np.float32]:
    step = np.float32(np.abs(row).max()) / np.float32(127)
    return [0 if not step else round(float(np.float32(value) / step)) for value in row], np.float32(step)


def plain_binary(row: Any) -> tuple[list[int], np.float32]:
    return [1 if value > 0 else -1 for value in row], np.float32(1)


def plain_scores(query: Any, documents: Any, coded: Any, code: Any, cosine: bool) -> list[Fraction | float]:
    codes, scale = code(query)
    scores = []
    for document, (theirs, step) in zip(documents, coded, strict=True):
        length = float(np.sqrt(np.sum(document.astype(np.float64) ** 2)))
        if cosine and code is plain_int8:
            step = np.float32(float(step) / length) if length else np.float32(0)
        product = sum(a * b for a, b in zip(codes, theirs, strict=True))
        scores.append(np.float32(float(product) * float(step) * float(scale)))
    return scores


def plain_search(queries: Any, documents: Any, k: int, ranks: Any, code: Any, rescore: int, cosine: bool) -> Any:
    """Return the ranking of each query, computed document by document."""
    found = []
    coded = [code(document) for document in documents]
    for query in queries:
        scores = plain_scores(query, documents, coded, code, cosine)
        order = sorted(range(len(documents)), key=lambda row: (-scores[row], -ranks[row]))
        if rescore:
            wide, candidates = documents.astype(np.float64), order[: rescore * k]
            exact = wide @ query.astype(np.float64)
            if cosine:
                lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(query.astype(np.float64))
                exact = np.divide(exact, lengths, out=np.zeros(len(wide)), where=lengths > 0)
            scores = exact.astype(np.float32)
            order = sorted(candidates, key=lambda row: (-scores[row], -ranks[row]))
        found.append([(row, float(scores[row])) for row in order[:k]])
    return found


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("rescore", [0, 1, 4])
@pytest.mark.parametrize(("kind", "code"), [(Int8, plain_int8), (Binary, plain_binary)])
@pytest.mark.parametrize("dimension", [24, 1100])  # products of 1,100 bytes exceed what float32 adds up exactly
def test_rankings_are_those_of_a_plain_computation(
    kind: Any, code: Any, rescore: int, cosine: bool, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantised, "TILE_ROWS", 40)
    monkeypatch.setattr(quantised, "QUERIES_AT_ONCE", 3)
    monkeypatch.setattr(rescoring, "HELD_BYTES", 50 * dimension)
    documents, queries = vectors(150, dimension, 1), vectors(5, dimension, 2)
    ranks = np.random.default_rng(3).permutation(150).astype(np.int32)
    blocks = [(0, documents[:90]), (90, documents[90:])]
    expected = plain_search(queries, documents, 7, ranks, code, rescore, cosine)
    for memory in (0, 1 << 30):  # codes that are made anew for every search, and codes that stay
        coded = CodedBlocks(kind(rescore), blocks, cosine, memory)
        for _ in range(2):
            hits = search_quantised(queries, coded, 7, ranks)
            for (rows, scores), right in zip(hits, expected, strict=True):
                order = np.lexsort((-ranks[rows], -scores))
                assert rows[order].tolist() == [row for row, _ in right]
                np.testing.assert_allclose(scores[order], [score for _, score in right], rtol=1e-6, atol=1e-7)


def test_no_query_and_fewer_documents_than_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = vectors(3, 8, 1)
    coded, ranks = CodedBlocks(Int8(4), [(0, documents)], False, 0), np.arange(3, dtype=np.int32)
    assert search_quantised(documents[:0], coded, 5, ranks) == []
    [(rows, _)] = search_quantised(documents[:1], coded, 5, ranks)
    assert sorted(rows) == [0, 1, 2]


def test_torch_finds_what_numpy_finds() -> None:
    """The function that a GPU runs, on a CPU: sums of integers have no rounding to differ by."""
    documents, queries = vectors(100, 1100, 4), vectors(6, 1100, 5)
    for kind in (Int8(4), Binary(4)):
        codes, scales = kind.codes(queries)
        theirs, steps = kind.codes(documents)
        parts = [slice(at, at + 1000) for at in range(0, 1100, 1000)]
        floors = np.array([-np.inf, 0, 1, -1, np.inf, 0], np.float32)
        here = quantised._finder(codes, scales, kind.largest, None)(theirs, steps, floors)
        there = quantised._finder_on_gpu(codes, scales, parts, "cpu")(theirs, steps, floors)
        for mine, other in zip(here, there, strict=True):
            np.testing.assert_array_equal(mine, other)


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(6)
    texts = [*SENTENCES, *(" ".join(rng.choice(WORDS, 6)) for _ in range(60))]
    corpus = Corpus.of((f"d{number}", text) for number, text in enumerate(texts))
    queries = (Query("q1", "heart attack"), Query("q2", "bacteria of the gut"))
    return Dataset("small", queries, corpus, Qrels({"q1": {"d2": 1}, "q2": {"d5": 1}}))


def ranking(spec: str, data: Dataset, store: Store) -> dict[str, list[tuple[str, float]]]:
    return {query: list(found) for query, found in System.parse(spec).run(data, store, 10).run}


def stored(store: Store, kind: str) -> Any:
    [folder] = [path for path in (store.root / kind).iterdir() if (path / "vectors.npy").is_file()]
    return np.load(folder / "vectors.npy").astype(np.float64)


def test_the_first_numbers_are_scaled_to_length_one_and_nothing_is_encoded_again(
    data: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ranking("minilm", data, store)
    monkeypatch.setattr("r2med.models.encoders.transformer.Tower", None)  # would fail if a model were loaded
    found = ranking("minilm(dims=64)", data, store)
    queries, documents = (each[:, :64] for each in (stored(store, "query-vectors"), stored(store, "vectors")))
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (queries, documents)]
    for scores, (query, hits) in zip(units[0] @ units[1].T, found.items(), strict=True):
        best = np.sort(scores)[::-1][:10]
        np.testing.assert_allclose([score for _, score in hits], best, atol=1e-6)
        assert all(abs(scores[int(name[1:])] - score) < 1e-6 for name, score in hits)
        assert hits != whole[query]
    assert ranking("minilm(dims=384)", data, store)["q1"][0][0] == whole["q1"][0][0]


def test_quantised_search_with_all_candidates_is_exact(
    data: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, short = ranking("minilm", data, store), ranking("minilm(dims=32)", data, store)
    monkeypatch.setattr("r2med.models.encoders.transformer.Tower", None)
    for kind in ("int8", "binary"):
        assert ranking(f"minilm(quantise={kind}, rescore=100)", data, store) == exact
        assert ranking(f"minilm(dims=32, quantise={kind}, rescore=100)", data, store) == short
    assert ranking("minilm(quantise=binary, rescore=0)", data, store) != exact


def test_the_record_tells_the_recall_of_quantised_search(data: Dataset, store: Store) -> None:
    record = evaluate("minilm(quantise=binary, rescore=1)", data, store=store, k=10)
    [approximate] = record.stages[-1].approximate
    assert (approximate.index, approximate.parameters, approximate.sample) == ("binary", {"rescore": 1}, 2)
    exact = ranking("minilm", data, store)
    found = ranking("minilm(quantise=binary, rescore=1)", data, store)
    shares = [len({name for name, _ in exact[query]} & {name for name, _ in found[query]}) / 10 for query in exact]
    assert approximate.recall == {"recall@10": pytest.approx(np.mean(shares))}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("minilm(rescore=2)", "rescore is a parameter of quantise=int8"),
        ("minilm(index=hnsw, dims=64)", "dims and index=hnsw do not go together"),
        ("minilm(index=ivf, quantise=int8)", "quantise and index=ivf do not go together"),
        ("minilm(quantise=int4)", "quantise"),
        ("minilm(dims=-1)", "dims"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(spec: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        System.parse(spec)


def test_more_numbers_than_a_vector_has_are_refused(data: Dataset, store: Store) -> None:
    with pytest.raises(UserError, match=r"minilm\(dims=1000\): its vectors have 384 numbers, fewer than dims"):
        ranking("minilm(dims=1000)", data, store)


def test_the_key_of_a_plain_search_is_what_it_was() -> None:
    assert System.parse("minilm").retriever.settings() == {"stage": "minilm"}

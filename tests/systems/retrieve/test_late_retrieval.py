"""Late interaction and learned sparse models as retrievers and rerankers: as the library scores, through the store."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med import Dataset, Qrels, Query, Runtime, UserError
from r2med.data import Corpus
from r2med.foundation.store import Store
from r2med.models.encoders.encoder import Role
from r2med.models.encoders.late_models import LateEncoder
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.late import term_index
from r2med.systems.system import System
from support import tiny_late_models
from support.tiny_models import SENTENCES, TEXTS

if int(version("sentence-transformers").partition(".")[0]) < 6:
    pytest.skip("sentence-transformers 6 is not installed", allow_module_level=True)

DOCUMENTS = [*SENTENCES, *(text for text in TEXTS if text.strip())]
QUERIES = ("heart attack", "which bacteria live in the gut", "tax law")


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_late_models.moderncolbert(tmp_path_factory.mktemp("models") / "colbert")


@pytest.fixture(scope="module")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_late_models.splade(tmp_path_factory.mktemp("models") / "splade")


@pytest.fixture
def data() -> Dataset:
    corpus = Corpus.of((f"d{number}", text) for number, text in enumerate(DOCUMENTS))
    queries = tuple(Query(f"q{number}", text) for number, text in enumerate(QUERIES))
    return Dataset("small", queries, corpus, Qrels({"q0": {"d2": 1}}))


def ranking(spec: str, data: Dataset, store: Store, k: int = 100) -> dict[str, dict[str, float]]:
    run = System.parse(spec, Runtime(device="cpu", store=store)).run(data, k).run
    return {query: dict(found) for query, found in run}


def test_a_multi_vector_model_ranks_as_the_library_scores(
    colbert: Path, data: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import MultiVectorEncoder

    monkeypatch.setattr(LateEncoder, "shard_documents", 4)
    model = MultiVectorEncoder(str(colbert), device="cpu")
    expected = model.similarity(model.encode_query(list(QUERIES)), model.encode_document(DOCUMENTS)).numpy()
    found = ranking(f"path:{colbert}", data, store)
    for scores, hits in zip(expected, found.values(), strict=True):
        ours = [hits[f"d{number}"] for number in range(len(DOCUMENTS))]
        np.testing.assert_allclose(ours, scores, atol=2e-2)  # documents are kept in half precision
        assert next(iter(hits)) == f"d{int(np.argmax(scores))}"
    assert len(list((store.root / "token-vectors").glob("*/vectors.npy"))) == -(-len(DOCUMENTS) // 4)


def test_a_sparse_model_ranks_as_the_library_scores(
    splade: Path, data: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SparseEncoder

    monkeypatch.setattr(LateEncoder, "shard_documents", 4)
    monkeypatch.setattr(term_index, "SHARDS_OF_A_SEGMENT", 2)
    model = SparseEncoder(str(splade), device="cpu")
    queries, documents = model.encode_query(list(QUERIES)).to_dense(), model.encode_document(DOCUMENTS).to_dense()
    expected = (queries.double() @ documents.double().T).numpy()
    for scores, hits in zip(expected, ranking(f"path:{splade}", data, store).values(), strict=True):
        np.testing.assert_allclose([hits[f"d{number}"] for number in range(len(DOCUMENTS))], scores, rtol=1e-4)
        order = sorted(range(len(scores)), key=lambda number: -scores[number])
        assert list(hits)[:3] == [f"d{number}" for number in order[:3]]


@pytest.mark.parametrize("kind", ["colbert", "splade"])
def test_documents_are_encoded_once(
    kind: str, data: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    spec = f"path:{request.getfixturevalue(kind)}"
    first = ranking(spec, data, store)
    encode, roles = LateEncoder.encode, []

    def noted(self: LateEncoder, texts: Any, role: Role) -> Ragged:
        roles.append(role)
        return encode(self, texts, role)

    monkeypatch.setattr(LateEncoder, "encode", noted)
    monkeypatch.setattr("r2med.systems.retrieve.stored_search.VERSION", -1)  # the run itself is not read back
    assert ranking(spec, data, store) == first
    assert "document" not in roles


def test_maxsim_reranks_candidates_by_the_scores_of_the_retriever(colbert: Path, data: Dataset, store: Store) -> None:
    whole = ranking(f"path:{colbert}", data, store)
    reranked = ranking(f"bm25 → maxsim(path:{colbert})@3", data, store)
    for query, hits in ranking("bm25", data, store).items():
        candidates = list(hits)[:3]
        assert sorted(list(reranked[query])[:3]) == sorted(candidates)
        assert list(reranked[query])[:3] == sorted(candidates, key=lambda name: -whole[query][name])
        for name in candidates:
            assert reranked[query][name] == pytest.approx(whole[query][name], abs=1e-4)


def test_maxsim_needs_a_multi_vector_model(data: Dataset, store: Store) -> None:
    with pytest.raises(UserError, match=r"maxsim\(minilm\): a model with a vector for each token is needed"):
        ranking("bm25 → maxsim(minilm)@3", data, store)


def test_settings_of_single_vectors_are_refused(colbert: Path, data: Dataset, store: Store) -> None:
    with pytest.raises(UserError, match="dims=4 needs a model with one vector per text"):
        ranking(f"path:{colbert}(dims=4)", data, store)

"""A long document as several passages: its best passage counts, and the model reads all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from r2med import Dataset, Qrels, Query, Runtime, UserError
from r2med.data import Corpus
from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.models.encoders import passages as passage_encoding
from r2med.models.encoders.encoder import Encoder, Role, open_encoder
from r2med.models.encoders.model_cards import Side, resolve_card
from r2med.models.encoders.passages import encode_passages
from r2med.models.encoders.ragged import Ragged
from r2med.models.encoders.tokenize import TextTokenizer
from r2med.systems.retrieve.vectors.embeddings import embed_corpus
from r2med.systems.system import System
from support.by_day import some_by_day
from support.tiny_models import SENTENCES, TEXTS, _word_piece

FILLER = "The tax law of bread is a recipe with many parts and no doctor reads it. "
WORDS = "heart attack tax law lung bread gut bacteria angioedema infarction".split()


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(6)
    texts = [
        "Myocardial infarction is a heart attack.",
        FILLER * 3 + "Myocardial infarction is a heart attack. " + FILLER * 3,
        FILLER * 6,
        "",
        *(" ".join(rng.choice(WORDS, rng.integers(1, 90))) for _ in range(5)),
    ]
    corpus = Corpus.of((f"d{number}", text) for number, text in enumerate(texts))
    queries = (Query("q1", "heart attack"), Query("q2", "bacteria of the gut"))
    return Dataset("small", queries, corpus, Qrels({"q1": {"d0": 1}, "q2": {"d5": 1}}))


def ranking(spec: str, data: Dataset, store: Store) -> dict[str, list[tuple[str, float]]]:
    return {query: list(found) for query, found in System.parse(spec, Setup(store=store)).run(data, 20).run}


@pytest.mark.parametrize("spec", some_by_day(["minilm(passages=24, dims=64)", "minilm(passages=24)"], 2))
def test_the_score_of_a_document_is_that_of_its_best_passage(data: Dataset, store: Store, spec: str) -> None:
    found = ranking(spec, data, store)
    encoder = open_encoder(resolve_card("minilm"), data.instruction, Runtime(), store)
    texts = [text for _, _, batch in data.corpus.batches() for text in batch.to_pylist()]
    passages = encoder.passages(texts, 24)
    assert [len(each) > 1 for each in passages[:4]] == [False, True, True, False]
    dims = 64 if "dims" in spec else 384
    vectors = [encoder.encode(each, "document").vectors[:, :dims].astype(np.float64) for each in passages]
    queries = encoder.encode([query.text for query in data.queries], "query").vectors[:, :dims].astype(np.float64)
    for query, hits in zip(queries, found.values(), strict=True):
        cosines = [each @ query / np.linalg.norm(each, axis=1) / np.linalg.norm(query) for each in vectors]
        expected = {f"d{row}": max(values) for row, values in enumerate(cosines)}
        np.testing.assert_allclose([score for _, score in hits], [expected[name] for name, _ in hits], atol=2e-6)
        assert len(hits) == len(texts)
    order = [name for name, _ in found["q1"]]
    assert order.index("d1") < order.index("d2"), "only a passage of d1 is about the heart"


def test_vectors_of_passages_are_stored_once_and_apart_from_those_of_documents(
    data: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = ranking("minilm", data, store), ranking("minilm(passages=24)", data, store)
    assert whole != cut
    monkeypatch.setattr("r2med.models.encoders.transformer.Tower.__init__", None)  # would fail if a model were loaded
    monkeypatch.setattr("r2med.systems.retrieve.stored_search.VERSION", -1)  # the run itself is not read back
    assert ranking("minilm", data, store) == whole
    assert ranking("minilm(passages=24)", data, store) == cut


def test_the_name_and_the_key_have_the_passages(data: Dataset) -> None:
    def key(spec: str) -> dict[str, Any]:
        system = System.parse(spec)
        assert str(system) == spec
        return system.retriever.key(data, Runtime())

    found = key("minilm(passages=24)")
    assert (found["passages"], found["document"]["passages"]) == (24, 24)
    assert found["query"] == key("minilm")["query"]
    assert "passages" not in str(key("minilm"))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("minilm(passages=-1)", "passages"),
        ("minilm(passages=5000)", r"passages=5000: minilm reads at most \d+ tokens of a document"),
        ("minilm(passages=1)", "the prefix and special tokens take"),
        ("colbertv2(passages=24)", "passages=24 needs a model with one vector per text"),
        ("openai(passages=24)", "passages: openai has no tokenizer on this machine that can cut documents"),
    ],
)
def test_models_and_settings_without_passages_are_one_line(
    spec: str, says: str, data: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with pytest.raises(UserError, match=says) as raised:
        ranking(spec, data, store)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("tokens", [7, 16, 48])
@pytest.mark.parametrize("pair", [False, True])
def test_passages_have_all_words_and_at_most_the_wanted_tokens(tokens: int, pair: bool) -> None:
    tokenizer = TextTokenizer(_word_piece())
    side = Side(max_tokens=48, pair_with_empty=pair)
    for text in [*TEXTS, *SENTENCES, "x" * 500]:
        [passages] = tokenizer.passages([text], side, "", tokens)
        assert "".join("".join(passages).split()) == "".join(text.split())
        lengths = tokenizer(passages, Side(max_tokens=5000, pair_with_empty=pair), "").lengths()
        assert max(lengths) <= tokens
        assert len(passages) > 1 or len(tokenizer([text], Side(max_tokens=5000), "").ids[0]) <= tokens + pair


def test_progress_counts_documents_and_not_their_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    from r2med.models.encoders.encoder import receiving

    monkeypatch.setattr(passage_encoding, "DOCUMENTS_AT_ONCE", 2)
    encoder = open_encoder(resolve_card("minilm"), ANY_DATASET, Runtime())
    received: list[int] = []
    with receiving(received.append):
        encode_passages(encoder, ["heart", FILLER * 4, "lung"], 24)
    assert received == [2, 1]


def test_a_passage_that_is_not_finite_names_its_document(store: Store) -> None:
    class Halves(Encoder):
        def key(self, role: Role) -> dict[str, Any]:
            return {}

        def passages(self, texts: Sequence[str], tokens: int) -> list[list[str]]:
            return [text.split() for text in texts]

        def encode(self, texts: Sequence[str], role: Role) -> Ragged:
            return Ragged.single(np.array([[np.nan if text == "bad" else 1.0] for text in texts]))

    corpus = Corpus.of([("d1", "one two three"), ("d2", "four bad"), ("d3", "five")])
    with pytest.raises(UserError, match="the vector of document 'd2' has NaN"):
        embed_corpus(corpus, Halves(), store, passages=2)

"""Only new texts are encoded. A text keeps the vector from an earlier version of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import r2med
from r2med.data import Corpus
from r2med.data.dataset_cards import ANY_DATASET
from r2med.data.tables.importing import plan_import
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.reporting import Progress, listening
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.encoder import Encoder, Role, open_encoder
from r2med.models.encoders.model_cards import MODELS
from r2med.models.encoders.ragged import Ragged, joined
from r2med.systems.retrieve.vectors import known_vectors
from r2med.systems.retrieve.vectors.embeddings import Embeddings, embed_corpus
from support.api_encoders import opened


class Counting(Encoder):
    """Encoder that counts letters and records its texts."""

    def __init__(self, model: str = "letters", dies: bool = False) -> None:
        self.model, self.dies, self.encoded = model, dies, list[str]()

    def key(self, role: Role) -> dict[str, Any]:
        return {"model": self.model}

    def encode(self, texts: Sequence[str], role: Role) -> Ragged:
        if self.dies:
            raise KeyboardInterrupt
        self.encoded += texts
        vectors = np.array([[text.count(letter) for letter in "abc1234567890"] for text in texts], dtype=np.float32)
        return Ragged.single(vectors, Cost(texts=len(texts), seconds=0.25 * len(texts)))


def notes(count: int) -> list[tuple[str, str]]:
    return [(f"n{number}", f"abc {number}") for number in range(count)]


def all_vectors(found: Embeddings) -> Any:
    return np.concatenate([vectors for _, vectors in found.blocks])


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Encoder, "shard_documents", 4)


@pytest.mark.usefixtures("small_shards")
def test_progress_counts_texts_that_have_vectors_as_done_before(store: Store) -> None:
    embed_corpus(Corpus.of(notes(12)), Counting(), store, reuse=True)
    told: list[Progress] = []
    with listening(told.append):
        embed_corpus(Corpus.of(notes(13)), Counting(), store, reuse=True)
    assert [(step.done, step.before, step.total) for step in told] == [(13, 12, 13)]


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("place", [0, 5, 12])
def test_a_new_document_anywhere_is_the_only_one_that_is_encoded(store: Store, place: int) -> None:
    embed_corpus(Corpus.of(notes(12)), Counting(), store, reuse=True)
    later = notes(12)
    later.insert(place, ("new", "a new note"))
    encoder = Counting()
    found = embed_corpus(Corpus.of(later), encoder, store, reuse=True)
    assert encoder.encoded == ["a new note"]
    whole = embed_corpus(Corpus.of(later), Counting(), Store(store.root / "other"))
    assert np.array_equal(all_vectors(found), all_vectors(whole))
    assert (found.cost.texts, found.cost.seconds) == (whole.cost.texts, pytest.approx(whole.cost.seconds))


@pytest.mark.usefixtures("small_shards")
def test_a_text_keeps_its_vector_wherever_it_moves(store: Store) -> None:
    versions = [notes(12) for _ in range(4)]
    versions[1][5] = ("n5", "abc changed")
    versions[2] = [versions[1][place] for place in (11, 3, 7, 5, 1, 0, 2, 4, 6, 8, 9, 10)]
    versions[3] = [*versions[2][:4], ("new", "cba"), *versions[2][5:]]
    for version, new in zip(versions, (12, 1, 0, 1), strict=True):
        encoder = Counting()
        found = embed_corpus(Corpus.of(version), encoder, store, reuse=True)
        assert len(encoder.encoded) == new
        again = embed_corpus(Corpus.of(version), Counting(dies=True), store, reuse=True)
        whole = embed_corpus(Corpus.of(version), Counting(), Store(store.root / "other"))
        for each in (found, again):
            assert np.array_equal(all_vectors(each), all_vectors(whole))
            assert each.cost.texts == 12


@pytest.mark.usefixtures("small_shards")
def test_vectors_stay_when_those_of_the_earlier_corpus_are_removed(store: Store) -> None:
    embed_corpus(Corpus.of(notes(6)), Counting(), store, reuse=True)
    later = Corpus.of([("new", "cba"), *notes(6)])
    first = all_vectors(embed_corpus(later, Counting(), store, reuse=True))
    for shard in embed_corpus(Corpus.of(notes(6)), Counting(), store).shards:
        store.discard("vectors", shard.path.name)
    assert np.array_equal(all_vectors(embed_corpus(later, Counting(dies=True), store, reuse=True)), first)


def test_a_shard_states_the_libraries_of_copied_vectors(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2med.systems.retrieve.vectors.embeddings.versions_of", lambda encoder: {"torch": ["1.0"]})
    embed_corpus(Corpus.of(notes(3)), Counting(), store, reuse=True)
    monkeypatch.setattr("r2med.systems.retrieve.vectors.embeddings.versions_of", lambda encoder: {"torch": ["2.0"]})
    for corpus, versions in ((notes(2), ["1.0"]), (notes(4), ["1.0", "2.0"])):
        [shard] = embed_corpus(Corpus.of(corpus), Counting(), store, reuse=True).shards
        assert shard.meta["versions"] == {"torch": versions}


def test_a_model_with_vectors_of_another_length_than_before_is_one_line(store: Store) -> None:
    class Wider(Counting):
        def encode(self, texts: Sequence[str], role: Role) -> Ragged:
            return Ragged.single(np.ones((len(texts), 3), dtype=np.float32))

    embed_corpus(Corpus.of(notes(3)), Counting(), store, reuse=True)
    with pytest.raises(UserError, match=r"vectors of different lengths, \[3, 13\]"):
        embed_corpus(Corpus.of(notes(4)), Wider(), store, reuse=True)


def test_the_vectors_of_tokens_are_not_made_again(store: Store) -> None:
    class Tokens(Counting):
        shards_in = "token-vectors"
        shard_documents = 5

        def encode(self, texts: Sequence[str], role: Role) -> Ragged:
            self.encoded += texts
            parts = [{"vectors": np.array([[ord(letter)] for letter in text], np.float16)} for text in texts]
            return joined(parts, Cost(texts=len(texts)))

    words = ["one", "three", "seventeen", "no", "a", "of", "word"]
    embed_corpus(Corpus.of((word, word) for word in words), Tokens(), store, reuse=True)
    words[1:3] = ["change"]
    encoder = Tokens()
    found = embed_corpus(Corpus.of((word, word) for word in words), encoder, store, reuse=True)
    assert encoder.encoded == ["change"]
    read = [
        "".join(map(chr, part.rows("vectors", row)[:, 0].astype(int)))
        for _, part in found.parts
        for row in range(len(part))
    ]
    assert read == words


@pytest.mark.usefixtures("small_shards")
def test_a_removed_document_costs_nothing(store: Store) -> None:
    embed_corpus(Corpus.of(notes(12)), Counting(), store, reuse=True)
    found = embed_corpus(Corpus.of(notes(12)[1:]), Counting(dies=True), store, reuse=True)
    assert all_vectors(found)[:, 0].tolist() == [1.0] * 11


@pytest.mark.usefixtures("small_shards")
def test_a_run_that_fails_at_the_new_document_continues_there(store: Store) -> None:
    embed_corpus(Corpus.of(notes(12)), Counting(), store, reuse=True)
    later = Corpus.of([("new", "a new note"), *notes(12)])
    with pytest.raises(KeyboardInterrupt):
        embed_corpus(later, Counting(dies=True), store, reuse=True)
    encoder = Counting()
    embed_corpus(later, encoder, store, reuse=True)
    assert encoder.encoded == ["a new note"]


@pytest.mark.usefixtures("small_shards")
def test_vectors_of_another_encoder_are_not_reused_and_a_run_that_starts_over_reuses_none(store: Store) -> None:
    embed_corpus(Corpus.of(notes(6)), Counting(), store, reuse=True)
    for encoder, where, reuse, count in (
        (Counting("other"), store, True, 7),
        (Counting(), store.with_policy("fresh"), True, 8),
        (Counting(), store, False, 9),
    ):
        embed_corpus(Corpus.of(notes(count)), encoder, where, reuse=reuse)
        assert len(encoder.encoded) == count


@pytest.mark.usefixtures("small_shards")
def test_a_corpus_does_not_reuse_its_own_shards(store: Store) -> None:
    repeated = Corpus.of([*notes(4), ("again", "abc 1")])
    encoder = Counting()
    embed_corpus(repeated, encoder, store, reuse=True)
    assert len(encoder.encoded) == 5


def test_the_newest_vectors_are_used_if_there_are_too_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for some in (slice(3, 8), slice(3)):
        embed_corpus(Corpus.of(notes(8)[some]), Counting(), store, reuse=True)
    monkeypatch.setattr(known_vectors, "MAX_DOCUMENTS", 4)
    encoder = Counting()
    embed_corpus(Corpus.of(notes(6)), encoder, store, reuse=True)
    assert encoder.encoded == [text for _, text in notes(6)[3:]]


def test_a_real_models_vectors_stay_within_its_rounding(store: Store) -> None:
    documents = [(f"d{i}", "heart attack " * (i % 7) + f"case {i}") for i in range(40)]
    setup = Runtime(device="cpu", tokens_per_batch=60)

    def embedded(where: Store, count: int, reuse: bool) -> Any:
        encoder = open_encoder(MODELS["minilm"], ANY_DATASET, setup)
        return all_vectors(embed_corpus(Corpus.of(documents[:count]), encoder, where, reuse=reuse))

    before = embedded(store, 39, True)
    after = embedded(store, 40, True)
    assert np.array_equal(before, after[:39]), "what was there keeps its bits"
    assert np.abs(after - embedded(Store(store.root / "other"), 40, False)).max() < 1e-6


class Letters:
    """A model object of the user."""

    revision = "1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: list[str]) -> list[list[int]]:
        self.asked.extend(texts)
        return [[1, len(text)] for text in texts]


def test_one_new_note_among_2000_is_one_encoding(tmp_path: Path) -> None:
    model, table, folder = Letters(), tmp_path / "notes.csv", tmp_path / "ward"
    questions = tmp_path / "questions.csv"
    questions.write_text("question,relevant\nWho is patient number 3 of ours?,n3\nWho is patient number 4?,n4\n")

    def imported(count: int) -> int:
        rows = [f"n{number},Patient number {number} had a fever." for number in range(count)]
        table.write_text("\n".join(["id,text", *rows, ""]))
        plan_import([table, questions]).write(folder, update=True)
        before = len(model.asked)
        assert not r2med.run([model], folder, out=None).errors
        return sum("had a fever" in text for text in model.asked[before:])

    assert [imported(2000), imported(2001)] == [2000, 1]


@pytest.mark.usefixtures("marked_keys", "small_shards")
def test_an_api_is_sent_only_the_new_text(store: Store, embedding_server: Any) -> None:
    for count in (6, 7):
        encoder = opened(embedding_server, store.root)
        embed_corpus(Corpus.of(notes(count)), encoder, store, reuse=True)
    sent = [text for request in embedding_server.requests for text in request.texts]
    assert sorted(sent) == sorted(text for _, text in notes(7))

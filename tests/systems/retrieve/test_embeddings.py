"""Embeddings in the store: no text is encoded twice, and an error names its document."""

import numpy as np
import pytest

from r2med.data import Corpus, Query
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.reporting import listening
from r2med.foundation.store import Artefact
from r2med.models.encoders.encoder import Encoder, NotFiniteError, batch_receiver
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.dense.dense_retriever import query_vectors
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, SearchQuery
from r2med.systems.retrieve.vectors import embeddings
from r2med.systems.retrieve.vectors.embeddings import embed_corpus, embed_texts
from support.facts import error_states
from support.processes import python


class LettersEncoder(Encoder):
    """Encoder that counts letters, so that vectors can be checked by hand. It records its texts."""

    def __init__(self, query_prefix="", fail_after=None):
        self.query_prefix, self.fail_after, self.encoded = query_prefix, fail_after, []

    def key(self, role):
        return {"model": "letters", "prefix": self.query_prefix if role == "query" else ""}

    def encode(self, texts, role):
        if self.fail_after is not None and len(self.encoded) >= self.fail_after:
            raise KeyboardInterrupt
        self.encoded += texts
        prefix = self.query_prefix if role == "query" else ""
        vectors = np.array([[(prefix + t).count(c) for c in "abc"] for t in texts], dtype=np.float32)
        return Ragged.single(vectors, Cost(texts=len(texts), seconds=0.5))


@pytest.fixture
def corpus(monkeypatch):
    monkeypatch.setattr(Encoder, "shard_documents", 3)
    return Corpus.of((f"d{i}", "ab" * i + "c") for i in range(10))


def all_vectors(found):
    return np.concatenate([vectors for _, vectors in found.blocks])


def test_vectors_come_in_the_order_of_the_corpus(corpus, store):
    found = embed_corpus(corpus, LettersEncoder(), store)
    assert all_vectors(found).tolist() == [[i, i, 1] for i in range(10)]
    assert [start for start, _ in found.blocks] == [0, 3, 6, 9]
    assert found.dimension == 3


def test_a_second_run_encodes_nothing(corpus, store):
    embed_corpus(corpus, LettersEncoder(), store)
    again = LettersEncoder()
    embed_corpus(corpus, again, store)
    assert again.encoded == []


def damaged(artefact, change):
    """Write other vectors into a folder of the store, as somebody's pack may bring them."""
    path = artefact.path / "vectors.npy"
    vectors = np.load(path)
    path.unlink()
    np.save(path, change(vectors))


SHAPES = {
    "one text less": lambda vectors: vectors[:-1],
    "one text more": lambda vectors: np.concatenate([vectors, vectors[:1]]),
    "no texts": lambda vectors: vectors[:0],
    "no matrix": lambda vectors: vectors[:, 0],
    "integers": lambda vectors: vectors.astype(np.int32),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_stored_vectors_of_another_shape_are_named_in_one_line(shape, corpus, store):
    shard = embed_corpus(corpus, LettersEncoder(), store, reuse=True).shards[1]
    damaged(shard, SHAPES[shape])
    for texts in (corpus, Corpus.of([*corpus, ("d10", "new")])):
        with pytest.raises(UserError, match=r"vectors of 3 texts; remove it to make them again") as raised:
            embed_corpus(texts, LettersEncoder(), store, reuse=True)
        assert str(shard.path) in str(raised.value)
    embed_texts(["a", "b"], "query", LettersEncoder(), store)
    [folder] = (store.root / "query-vectors").iterdir()
    damaged(Artefact(folder, {}), SHAPES[shape])
    with error_states(str(folder), "2 texts", "remove it"):
        embed_texts(["a", "b"], "query", LettersEncoder(), store)


def test_an_encoder_that_states_no_time_is_timed(store, corpus):
    class Untimed(LettersEncoder):
        def encode(self, texts, role):
            return Ragged.single(super().encode(texts, role).vectors, Cost(texts=len(texts)))

    for cost in (embed_corpus(corpus, Untimed(), store).cost, embed_texts(["a"], "query", Untimed(), store).cost):
        assert cost.seconds == cost.encoder_seconds > 0


def test_a_failed_run_continues_at_the_missing_shard(corpus, store):
    with pytest.raises(KeyboardInterrupt):
        embed_corpus(corpus, LettersEncoder(fail_after=6), store)
    second = LettersEncoder()
    found = embed_corpus(corpus, second, store)
    assert len(second.encoded) == 4
    assert all_vectors(found).tolist() == [[i, i, 1] for i in range(10)]


def test_changing_the_query_prefix_encodes_only_queries_again(corpus, store):
    for prefix in ("", "abc"):
        encoder = LettersEncoder(prefix)
        embed_corpus(corpus, encoder, store)
        embed_texts(["a", "b"], "query", encoder, store)
    assert encoder.encoded == ["a", "b"]


def test_queries_are_encoded_once(store):
    embed_texts(["a", "b"], "query", LettersEncoder(), store)
    again = LettersEncoder()
    assert embed_texts(["a", "b"], "query", again, store).arrays["vectors"].tolist() == [[1, 0, 0], [0, 1, 0]]
    assert again.encoded == []


def test_another_corpus_shares_no_shard(corpus, store):
    embed_corpus(corpus, LettersEncoder(), store)
    other = LettersEncoder()
    embed_corpus(Corpus.of([("d0", "other")]), other, store)
    assert other.encoded == ["other"]


@pytest.mark.parametrize("raises", [True, False])
def test_the_error_for_a_vector_that_is_not_finite_names_its_document_and_no_shard_is_saved(corpus, store, raises):
    class Broken(LettersEncoder):
        def encode(self, texts, role):
            vectors = super().encode(texts, role).vectors
            for place, text in enumerate(texts):
                if text.count("a") == 4:
                    if raises:
                        raise NotFiniteError(place)
                    vectors[place, 1] = np.nan
            return Ragged.single(vectors)

    with pytest.raises(UserError, match="document 'd4'"):
        embed_corpus(corpus, Broken(), store)
    second = LettersEncoder()
    embed_corpus(corpus, second, store)
    assert len(second.encoded) == 7


def test_a_wrong_number_of_rows_gives_a_one_line_error(corpus, store):
    class Short(LettersEncoder):
        def encode(self, texts, role):
            return Ragged.single(super().encode(texts, role).vectors[:-1])

    with pytest.raises(UserError, match=r"shape \(2, 3\) for 3 texts"):
        embed_corpus(corpus, Short(), store)


def test_progress_shows_documents_speed_and_earlier_work(corpus, store):
    with pytest.raises(KeyboardInterrupt):
        embed_corpus(corpus, LettersEncoder(fail_after=6), store)
    seen = []
    with listening(seen.append):
        embed_corpus(corpus, LettersEncoder(), store)
    assert [(p.done, p.total, p.before) for p in seen] == [(9, 10, 6), (10, 10, 6)]
    assert seen[-1].seconds_left is None
    assert seen[0].rate > 0


JOINED = "{query}[SEP]{text}"


class BatchedEncoder(LettersEncoder):
    """Encoder that encodes two texts at a time, the longest first, reports each batch, and fails after some."""

    def __init__(self, dies_after=99, stops=KeyboardInterrupt):
        super().__init__()
        self.dies_after, self.stops = dies_after, stops

    def encode(self, texts, role):
        receiver, rows = batch_receiver(), np.zeros((len(texts), 3), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for start in range(0, len(order), 2):
            batch = order[start : start + 2]
            if len(self.encoded) >= self.dies_after:
                raise self.stops
            rows[batch] = super().encode([texts[i] for i in batch], role).vectors
            receiver(len(batch))
        return Ragged.single(rows, Cost(texts=len(texts), tokens=10 * len(texts), seconds=1.0))


@pytest.fixture
def one_shard():
    return Corpus.of((f"d{i}", "ab" * i + "c") for i in range(9))


def test_progress_advances_with_every_batch(one_shard, store):
    seen = []
    with listening(seen.append), pytest.raises(KeyboardInterrupt):
        embed_corpus(one_shard, BatchedEncoder(4), store)
    assert [(p.done, p.before) for p in seen] == [(2, 0), (4, 0)]
    seen.clear()
    with listening(seen.append):
        embed_corpus(one_shard, BatchedEncoder(), store)
    assert [(p.done, p.before) for p in seen] == [(2, 0), (4, 0), (6, 0), (8, 0), (9, 0)]


def asked(text, *generated, form=MEAN):
    return SearchQuery(Query("q", text), generated, dense_form=form)


@pytest.mark.parametrize(
    ("search", "vector"),
    [
        (asked("a"), [1, 0, 0]),
        (asked("a", "b"), [0.5, 0.5, 0]),
        (asked("a", "b"), [0.5, 0.5, 0]),
        (asked("a", "b", "cc"), [0.5, 0.25, 0.5]),
        (asked("a", "bb", form=JOINED), [1, 2, 0]),
        (asked("a {text} {query}", "bb", form=JOINED), [1, 2, 0]),
        (asked("a", "b", form=TEXTS_ALONE), [0, 1, 0]),
    ],
)
def test_generated_text_joins_the_query_s_vector_as_the_benchmark_does(store, search, vector):
    assert query_vectors([search], LettersEncoder(), store).arrays["vectors"].tolist() == [vector]


def test_expanded_and_plain_queries_mix(store):
    searches = [asked("a"), asked("a", "c"), asked("b")]
    expected = [[1, 0, 0], [0.5, 0, 0.5], [0, 1, 0]]
    assert query_vectors(searches, LettersEncoder(), store).arrays["vectors"].tolist() == expected


def test_the_cost_of_vectors_is_reported_again_when_they_are_read(corpus, store):
    queries = [SearchQuery(Query("q", "ab"), ("b",))]
    first = embed_corpus(corpus, LettersEncoder(), store), query_vectors(queries, LettersEncoder(), store)
    again = embed_corpus(corpus, LettersEncoder(), store), query_vectors(queries, LettersEncoder(), store)
    for before, after, texts, seconds in zip(first, again, (10, 2), (2, 1), strict=True):
        assert after.cost == before.cost
        assert (after.cost.texts, after.cost.seconds) == (texts, seconds)


KILLED = """
import os, signal, sys
import numpy as np
from r2med.data import Corpus
from r2med.models.encoders.encoder import Encoder
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.vectors import embeddings
from r2med.foundation.store import Store

class Model(Encoder):
    calls = 0
    def key(self, role): return {"model": "counting"}
    def encode(self, texts, role):
        Model.calls += 1
        if len(sys.argv) > 2 and Model.calls == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return Ragged.single(np.ones((len(texts), 2), dtype=np.float32))

Model.shard_documents = 10
embeddings.embed_corpus(Corpus.of((str(i), str(i)) for i in range(100)), Model(), Store(sys.argv[1]))
print(Model.calls)
"""


def test_killed_at_shard_7_of_10_the_next_start_encodes_the_rest(tmp_path):
    assert python(KILLED, tmp_path, "kill").returncode == -9
    assert python(KILLED, tmp_path).stdout == "4\n"


def test_vectors_of_different_lengths_are_refused(store, monkeypatch):
    class Growing(Encoder):
        width = 1

        def key(self, role):
            return {}

        def encode(self, texts, role):
            self.width += 1
            return Ragged.single(np.ones((len(texts), self.width), dtype=np.float32))

    monkeypatch.setattr(Encoder, "shard_documents", 2)
    with pytest.raises(UserError, match="different lengths"):
        embed_corpus(Corpus.of((str(i), "x") for i in range(4)), Growing(), store)


def test_vectors_of_zeros_are_reported_also_when_they_are_read_again(store, caplog):
    corpus = Corpus.of([("d0", "abc"), ("d1", "xyz"), ("d2", "")])
    for _ in range(2):
        caplog.clear()
        embed_corpus(corpus, LettersEncoder(), store)
        embed_texts(["abc", "xyz"], "query", LettersEncoder(), store)
        assert caplog.messages == [
            "2 of 3 documents have a vector of zeros and match nothing",
            "1 of 2 queries have a vector of zeros and match nothing",
        ]


def test_a_large_corpus_has_fewer_and_larger_shards(corpus, store, monkeypatch):
    monkeypatch.setattr(Encoder, "large_shard_documents", 5)
    assert len(embed_corpus(corpus, LettersEncoder(), store).shards) == 4
    monkeypatch.setattr(embeddings, "MANY_DOCUMENTS", 10)
    assert len(embed_corpus(corpus, LettersEncoder(), store).shards) == 2

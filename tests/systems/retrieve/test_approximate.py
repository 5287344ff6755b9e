"""Approximate indexes: scores are exact, an index is built once, and the record shows its recall."""

import sys
from pathlib import Path

import numpy as np
import pytest

from r2med import Dataset, Qrels, Query, UserError, evaluate
from r2med.data import Corpus
from r2med.evaluation.records.approximate_searches import approximate_searches
from r2med.evaluation.records.record import Record
from r2med.foundation.core.errors import MissingExtraError
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.stage_table import retriever
from r2med.foundation.store import Store
from r2med.foundation.store.files import write_array
from r2med.foundation.store.holdings import holdings
from r2med.systems.retrieve.dense import approximate
from r2med.systems.retrieve.dense.approximate import Hnsw, build_segments
from r2med.systems.retrieve.dense.recall import mean_recall, sampled
from r2med.systems.retrieve.exact.exact_search import search_exact
from r2med.systems.retrieve.vectors.vector_shard import VectorShard
from r2med.systems.system import System
from support.processes import python
from support.scripted_llm import scripted

SIZE = 200
HNSW = Hnsw(links=8, ef=20)


def clustered(count, seed=0, dimension=16):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1).standard_normal((30, dimension))
    return (centres[rng.integers(0, 30, count)] + 0.4 * rng.standard_normal((count, dimension))).astype(np.float32)


def stored(vectors, store, size=SIZE):
    def made(start):
        def build(folder):
            write_array(folder / "vectors.npy", vectors[start : start + size])
            return {"start": start, "cost": {}}

        return VectorShard(store.make("vectors", f"key{start}", build))

    return [made(start) for start in range(0, len(vectors), size)]


def searched(kind, vectors, queries, k, store, cosine=False):
    shards = stored(vectors, store)
    blocks = [block for shard in shards for block in shard.blocks]
    ranks = np.arange(len(vectors), dtype=np.int32)[::-1].copy()
    hits = build_segments(shards, kind, store, cosine=cosine).search(queries, blocks, k, ranks, cosine=cosine)
    return hits, search_exact(queries, blocks, k, ranks, cosine=cosine), ranks


def index_files(store):
    finished = (path for path in store.root.glob("ann/*/index.faiss") if "." not in path.parent.name)
    return {path.parent.name: path.read_bytes() for path in finished}


@pytest.mark.parametrize("cosine", [False, True])
def test_scores_are_exact_and_recall_equals_a_plain_count(store, monkeypatch, cosine):
    monkeypatch.setattr(approximate, "SEGMENT_SHARDS", 3)
    vectors, queries = clustered(1500), clustered(70, seed=2)
    hits, exact, ranks = searched(HNSW, vectors, queries, 100, store, cosine)
    for (rows, scores), query in zip(hits, queries.astype(np.float64), strict=True):
        assert len(set(rows)) == len(rows) == 100
        documents = vectors[rows].astype(np.float64)
        expected = documents @ query
        if cosine:
            expected /= np.linalg.norm(documents, axis=1) * np.linalg.norm(query)
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)
    plain = {}
    for cutoff in (10, 100):
        tops = [[set(rows[np.argsort(-scores)[:cutoff]]) for rows, scores in each] for each in (hits, exact)]
        plain[f"recall@{cutoff}"] = np.mean([len(a & b) / cutoff for a, b in zip(*tops, strict=True)])
    assert mean_recall(hits, exact, 100, ranks) == pytest.approx(plain)
    assert 0.5 < plain["recall@100"] <= plain["recall@10"] <= 1
    assert len(index_files(store)) == 3  # eight shards, three to a segment


def test_the_sample_is_seeded_and_has_all_queries_if_there_are_few():
    assert sampled(7).tolist() == list(range(7))
    assert len(sampled(900)) == len(set(sampled(900))) == 50
    assert (sampled(900) == sampled(900)).all()


def test_the_number_of_threads_does_not_change_the_bytes_of_an_index(tmp_path, monkeypatch):
    monkeypatch.setattr(approximate, "SEGMENT_SHARDS", 2)
    made = []
    for threads in ("1", "4"):
        monkeypatch.setenv("R2MED_THREADS", threads)
        store = Store(tmp_path / threads)
        build_segments(stored(clustered(1200), store), HNSW, store, memory=8 << 30)
        made.append(index_files(store))
    assert made[0] == made[1]
    assert len(made[0]) == 3


@pytest.mark.parametrize("count", [1, 3, 41])
def test_a_corpus_smaller_than_k_and_the_parameters_is_returned_whole(store, count):
    hits, exact, ranks = searched(Hnsw(links=64, ef=1), clustered(count), clustered(2, seed=3), 1000, store)
    assert [sorted(rows) for rows, _ in hits] == [list(range(count))] * 2
    assert set(mean_recall(hits, exact, 1000, ranks).values()) == {1.0}


def test_duplicates_of_a_document_have_its_score(store):
    vectors = clustered(600)
    vectors[::3] = vectors[1]
    [(rows, scores)], _, _ = searched(HNSW, vectors, vectors[1:2], 50, store)
    same = (vectors[rows] == vectors[1]).all(axis=1)
    assert same.any()
    assert len(set(scores[same])) == 1


BUILT = """
import os, signal, sys
from r2med.systems.retrieve.dense import approximate
from r2med.systems.retrieve.dense.approximate import Hnsw, build_segments
from r2med.foundation.store import Store
sys.path.insert(0, sys.argv[2])
from systems.retrieve.test_approximate import clustered, stored

approximate.SEGMENT_SHARDS = 2
os.environ["R2MED_THREADS"] = "1"
write = approximate._build
built = 0

def killed_in_the_third(*arguments):
    global built
    built += 1
    meta = write(*arguments)
    if built == 3:
        os.kill(os.getpid(), signal.SIGKILL)  # its file is written, and not yet under its name
    return meta

if sys.argv[3] == "kill":
    approximate._build = killed_in_the_third
else:
    approximate._build = lambda *arguments: print("built") or write(*arguments)
store = Store(sys.argv[1])
build_segments(stored(clustered(1200), store), Hnsw(8, 20), store)
"""


@pytest.mark.slow
def test_a_killed_build_continues_where_it_stopped(tmp_path):
    tests = Path(__file__).parents[2]
    assert python(BUILT, tmp_path / "killed", tests, "kill").returncode == -9
    assert len(index_files(Store(tmp_path / "killed"))) == 2
    assert python(BUILT, tmp_path / "killed", tests, "go on").stdout.split() == ["built"]
    assert python(BUILT, tmp_path / "calm", tests, "go on").stdout.split() == ["built"] * 3
    assert index_files(Store(tmp_path / "killed")) == index_files(Store(tmp_path / "calm"))


def test_exact_search_is_the_default_and_adds_no_setting():
    assert str(retriever(parse_stage("minilm(index=exact)"))) == "minilm"
    assert retriever(parse_stage("minilm")).settings() == {
        "stage": "minilm"
    }  # so that records of before keep their keys


def test_an_index_and_its_parameters_are_in_the_name_and_the_settings():
    stage = retriever(parse_stage("minilm(ef=300, index=hnsw, links=32)"))
    assert str(stage) == "minilm(index=hnsw, ef=300)"
    assert stage.settings() == {"stage": "minilm", "index": "hnsw", "ef": 300}
    assert retriever(parse_stage(str(stage))) == stage


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("minilm(index=hnws)", r"index=hnws \(did you mean hnsw\?\): exact or hnsw"),
        ("minilm(ef=300)", "minilm: ef is a parameter of index=hnsw"),
        ("minilm(index=hnsw, links=1000)", "links must be 64 or less"),
    ],
)
def test_a_parameter_without_its_index_gives_a_one_line_error(spec, line):
    with pytest.raises(UserError, match=line):
        retriever(parse_stage(spec))


def test_a_missing_library_is_reported_before_encoding(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("r2med.systems.retrieve.vectors.vector_retriever.embed_corpus", None)
    with pytest.raises(MissingExtraError, match=r"an approximate index .*pip install -e '\.\[ann\]' in the clone"):
        System.parse("minilm(index=hnsw)").run(topics(), store, 10)


def topics():
    texts = ["myocardial infarction", "tax law", "pulmonary embolism", "a recipe for bread"]
    corpus = Corpus.of((text, text) for text in texts)
    queries = (Query("q", "heart attack"), Query("r", "clot in the lung"))
    return Dataset("tiny", queries, corpus, Qrels({"q": {texts[0]: 1}, "r": {texts[2]: 1}}))


def test_the_record_shows_the_recall_and_differs_from_that_of_exact_search(store, tmp_path):
    exact = evaluate("minilm", topics(), tmp_path, store=store)
    record = evaluate("bm25+minilm(index=hnsw)", topics(), tmp_path, store=store, k=3)
    [told] = record.stages[-1].approximate
    assert (told.name, told.index, told.parameters) == ("minilm(index=hnsw)", "hnsw", {"links": 32, "ef": 200})
    assert (told.sample, set(told.recall.values())) == (2, {1.0})
    assert exact.stages[-1].approximate == ()
    again = evaluate("minilm(index=hnsw, ef=300)", topics(), tmp_path, store=store)
    assert again.key != exact.key
    assert again.mean == exact.mean
    kept = {(each.kind, each.dataset, each.model) for each in holdings(store)}
    assert {("ann", "tiny", "minilm"), ("recall", "tiny", "minilm")} < kept
    [path] = tmp_path.rglob(f"*{again.key[:10]}.json")
    assert Record.read(path) == again


@pytest.mark.parametrize(
    "expand", ["search-r1(script, by=minilm(index=hnsw))", "hyde(script, rounds=1, by=minilm(index=hnsw))"]
)
def test_the_recall_of_intermediate_searches_is_measured_too(store, tmp_path, expand):
    setup = scripted(
        tmp_path,
        store,
        (["myocardial infarction"], "<answer>myocardial infarction</answer>"),
        (["pulmonary embolism"], "<answer>pulmonary embolism</answer>"),
        (["heart attack"], "<search>damage of the heart</search>"),
        (["clot in the lung"], "<search>blocked lung</search>"),
    )
    system = System.parse(f"{expand} → bm25", setup)
    record = evaluate(system, topics(), tmp_path / "out", store=store)
    [told] = record.stages[0].approximate
    assert (record.stages[0].stage, told.name, told.index) == ("expand", "minilm(index=hnsw)", "hnsw")
    assert (told.sample, set(told.recall.values())) == (2, {1.0})
    assert record.stages[1].approximate == ()
    [line] = approximate_searches([record])
    assert line.startswith("minilm(index=hnsw) is approximate: recall@")

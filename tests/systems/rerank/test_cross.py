"""Cross-encoder rerankers sort by score, and score each pair only once, also after interruptions."""

import sys
from pathlib import Path

import numpy as np
import pytest

from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.data.runs.run import Run
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.names import known_names
from r2med.foundation.core.spec import encoded
from r2med.foundation.engine.reporting import listening
from r2med.foundation.runtime.runtime import Runtime
from r2med.systems.rerank import pair_scores
from r2med.systems.retrieve.retriever import SearchQuery
from support.forgotten_modules import forget_modules
from support.processes import PATIENCE, started
from support.ready import ready_reranker

MODULE = '''
"""A reranker that records its pairs and fails at a given point."""
import os
from pathlib import Path

LOG = Path(__file__).with_name("asked.txt")

class Length:
    revision = "1"

    def predict(self, pairs):
        with LOG.open("a") as log:
            log.writelines(f"{query}|{document}\\n" for query, document in pairs)
        if (fatal := os.environ.get("FATAL")) and any(fatal in document for _, document in pairs):
            os.kill(os.getpid(), 9)
        if (stop := os.environ.get("STOP")) and any(stop in document for _, document in pairs):
            raise RuntimeError("told to stop")
        return [float("nan") if "odd" in document else len(query) * len(document) for query, document in pairs]
'''

LENGTHS = [3, 9, 1, 7, 9, 5, 2, 8]
DOCUMENTS = [(f"d{place}", f"{place}" * length) for place, length in enumerate(LENGTHS)]
BY_LENGTH = ["d4", "d1", "d7", "d3", "d5", "d0", "d6", "d2"]  # d1 and d4 tie: the higher id first


def dataset(documents=DOCUMENTS, queries=("q one", "q two")):
    asked = [Query(f"q{place}", text) for place, text in enumerate(queries)]
    return Dataset("tiny", asked, Corpus.of(documents), Qrels({}))


def first_stage(data, widths=None):
    """Return a run with the given document rows for each query."""
    count = len(data.corpus)
    found = [
        (np.arange(width, dtype=np.int32), np.arange(width, 0, -1, dtype=np.float32))
        for width in widths or [count] * len(data.queries)
    ]
    return Run.ranked([query.id for query in data.queries], found, data.corpus)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder that contains the user's module."""
    (tmp_path / "own_reranker.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_reranker", raising=False)  # each test has its own
    monkeypatch.setattr(pair_scores, "PAIRS_PER_CHUNK", 3)
    return tmp_path


def built(spec="py:own_reranker:Length", depth=100):
    return ready_reranker(f"{spec}@{depth}", Runtime(device="cpu"))


def rerank(data, store, reranker=None, run=None, queries=None):
    queries = queries or [SearchQuery(query) for query in data.queries]
    return (reranker or built()).rerank(data, queries, run or first_stage(data), store)


def order(found, line=0):
    return [identifier for identifier, _ in list(found.run)[line][1]]


def pairs_asked(folder):
    file = folder / "asked.txt"
    return file.read_text().splitlines() if file.exists() else []


def test_documents_are_sorted_by_their_scores_and_ties_by_id(folder, store):
    found = rerank(dataset(), store)
    assert order(found, 0) == order(found, 1) == BY_LENGTH
    cost = found.cost
    assert (cost.texts, cost.tokens, cost.cut, cost.calls, found.failures) == (16, 0, 0, 0, 0)
    assert cost.seconds == cost.encoder_seconds > 0


def test_documents_below_the_depth_keep_their_order(folder, store):
    found = rerank(dataset(), store, built(depth=3))
    assert order(found) == ["d1", "d0", "d2", "d3", "d4", "d5", "d6", "d7"]
    assert found.cost.texts == 6
    scores = [score for _, score in next(iter(found.run))[1]]
    assert scores == sorted(scores, reverse=True)


def test_a_run_shorter_than_the_depth_is_reranked_completely(folder, store):
    data = dataset()
    found = rerank(data, store, run=first_stage(data, [3, 0]))
    assert (order(found, 0), order(found, 1)) == (["d1", "d0", "d2"], [])


def test_an_empty_run_comes_back_with_a_notice(folder, store):
    data = dataset()
    run = first_stage(data, [0, 0])
    found = rerank(data, store, run=run)
    assert found.run is run and "nothing to rerank" in found.notices[0] and not pairs_asked(folder)


def test_a_pair_is_scored_once_for_all_runs(folder, store):
    data = dataset()
    first = rerank(data, store, built(depth=3))
    assert len(pairs_asked(folder)) == 6
    second = rerank(data, store)
    assert sorted(pairs_asked(folder)) == sorted(f"{q.text}|{text}" for q in data.queries for _, text in DOCUMENTS)
    again = rerank(data, store)
    assert len(pairs_asked(folder)) == 16
    assert again.cost == second.cost, "as if they were scored now"
    np.testing.assert_array_equal(again.run.rows, second.run.rows)
    assert first.cost.texts == 6


def test_the_same_texts_under_other_ids_are_the_same_pair(folder, store):
    rerank(dataset(), store)
    other = dataset([(f"x{identifier}", text) for identifier, text in [*DOCUMENTS, ("copy", "0" * 3)]])
    found = rerank(other, store)
    assert len(pairs_asked(folder)) == 16 and found.cost.texts == 18


def test_a_stopped_run_continues_where_it_stopped(folder, store, monkeypatch):
    data = dataset()
    monkeypatch.setenv("STOP", "77777777")
    with pytest.raises(UserError, match="RuntimeError: told to stop"):
        rerank(data, store)
    assert len(pairs_asked(folder)) == 9
    monkeypatch.delenv("STOP")
    (folder / "asked.txt").unlink()
    done = []
    with listening(done.append):
        found = rerank(data, store)
    assert len(pairs_asked(folder)) == 10, "six were kept, of the ten left none twice"
    assert order(found) == BY_LENGTH
    assert (done[-1].what, done[-1].before, done[-1].done, done[-1].total) == ("pairs", 6, 16, 16)


CHILD = """
import os, sys
from r2med.systems.rerank import pair_scores
from r2med.foundation.store import Store
folder, store, tests = sys.argv[1:]
os.chdir(folder)
sys.path += [tests, os.path.dirname(os.path.dirname(tests))]
import test_cross
pair_scores.PAIRS_PER_CHUNK = 3
print(test_cross.order(test_cross.rerank(test_cross.dataset(), Store(store))))
"""


def child(folder, store, **variables):
    return started(["-c", CHILD, folder, store.root, Path(__file__).parent], **variables)


def test_a_killed_process_loses_only_its_current_chunk(folder, store):
    with child(folder, store, FATAL="77777777") as first:
        assert first.wait(PATIENCE) == -9, first.communicate()
    asked = pairs_asked(folder)
    assert len(asked) == 9
    (folder / "asked.txt").unlink()
    assert order(rerank(dataset(), store)) == BY_LENGTH
    assert len(pairs_asked(folder)) == 10 and not set(asked[:6]) & set(pairs_asked(folder))


@pytest.mark.slow
def test_two_processes_score_each_pair_once_between_them(folder, store):
    with child(folder, store) as one, child(folder, store) as two:
        answers = [process.communicate(timeout=PATIENCE) for process in (one, two)]
    assert {answer.strip() for answer, _ in answers} == {str(BY_LENGTH)}, answers
    assert len(pairs_asked(folder)) == 16


def test_a_run_that_starts_over_scores_each_pair_once_more(folder, store):
    data = dataset()
    rerank(data, store)
    fresh = store.with_policy("fresh")
    rerank(data, fresh)
    assert len(pairs_asked(folder)) == 32
    rerank(data, fresh)
    rerank(data, store)
    assert len(pairs_asked(folder)) == 32


def test_a_changed_model_does_not_use_the_old_scores(folder, store):
    rerank(dataset(), store)
    (folder / "own_reranker.py").write_text(MODULE + "\n# changed\n")
    forget_modules(folder)
    rerank(dataset(), store)
    assert len(pairs_asked(folder)) == 32


def test_an_error_for_a_nan_score_names_the_query_and_the_document(folder, store):
    data = dataset([*DOCUMENTS, ("d8", "an odd one")])
    with pytest.raises(UserError, match=r"the score of query q0 and document d8 is NaN or infinite \(from .*predict\)"):
        rerank(data, store)


def test_the_query_may_be_the_expanded_one(folder, store):
    data = dataset(queries=("q",))
    queries = [SearchQuery(data.queries[0], ("a generated text",), "hyde")]
    rerank(data, store, built(depth=1), queries=queries)
    rerank(data, store, built("py:own_reranker:Length(query=expanded)", 1), queries=queries)
    assert pairs_asked(folder) == ["q|000", "q", "", "a generated text|000"]


def test_a_name_shows_all_that_the_user_typed(folder):
    assert built(depth=20).name == "py:own_reranker:Length@20"
    expanded = built("bge-reranker(query=expanded)")
    assert (expanded.name, expanded.stage.depth) == ("bge-reranker(query=expanded)@100", 100)
    assert built("bge-reranker(query=original)", 10).name == "bge-reranker@10"
    assert {"bge-reranker", "monobert", "rankllama"} <= set(known_names("rerank"))


def test_the_description_contains_the_model_the_query_and_the_depth(folder):
    found = built("py:own_reranker:Length(query=expanded)", 7).key(dataset())
    assert (found["stage"], found["query"], found["depth"]) == ("py:own_reranker:Length", "expanded", 7)
    assert found["model"] == "own_reranker:Length" and found["source"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("monobird", r"no reranker 'monobird' \(did you mean monobert\?\)"),
        ("monobert(qery=original)", r"has no setting 'qery' \(did you mean query\?\)"),
        ("monobert(query=orignal)", r"query=orignal \(did you mean original\?\)"),
        ("monobert(o3-mini)", r"does not know what 'o3-mini' is"),
    ],
)
def test_an_invalid_reranker_gives_a_one_line_error(spec, message):
    with pytest.raises(UserError, match=message):
        built(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("path:~nosuch/x", "names the home folder of an unknown user"),
        ("path:" + "a" * 300, "File name too long"),
        ("path:\0", "a path cannot have a null character"),
        ("monobert:nope", "no reranker 'monobert:nope'"),
        ("py:a\0b:C", "no module"),
    ],
)
def test_an_impossible_file_name_gives_a_one_line_error(spec, message):
    with pytest.raises(UserError, match=message):
        built(spec).key(dataset())


def test_rerankers_load_from_folders_with_long_names_and_with_spaces(tmp_path, store):
    from support import tiny_rerankers

    data = dataset([("a", "heart attack"), ("b", "tax law")])
    for name in ("m" * 250, "my reranker (new)"):
        folder = tiny_rerankers.bert(tmp_path / name)
        found = rerank(data, store, built(f"path:{encoded(str(folder))}"))
        assert found.cost.texts == 4
    assert all(len(file.name.encode()) < 160 for file in (store.root / "scores").iterdir())


def test_a_depth_of_zero_gives_a_one_line_error():
    with pytest.raises(UserError, match="depth must be 1 or more, not 0"):
        built("monobert", 0)


def test_a_model_is_not_loaded_while_the_cache_has_all_scores(tmp_path, store, monkeypatch):
    from r2med.models.crossencoders import pair_model
    from support import tiny_rerankers

    data = dataset([("a", "heart attack"), ("b", "tax law"), ("c", tiny_rerankers.LONG)])
    spec = f"path:{tiny_rerankers.bert(tmp_path / 'bert')}"
    first = rerank(data, store, built(spec))
    assert first.cost.texts == 6 and first.cost.cut == 2 and first.cost.tokens > 6

    def no_loading(*_):
        raise AssertionError("loaded again")

    monkeypatch.setattr(pair_model, "load_model", no_loading)
    again = rerank(data, store, built(spec))
    assert again.cost == first.cost
    np.testing.assert_array_equal(again.run.scores, first.run.scores)
    with pytest.raises(AssertionError, match="loaded again"):
        rerank(dataset([("a", "another")]), store, built(spec))

"""Every figure that trec_eval 9 prints for a graded, tied, incomplete run, we compute too."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med import Dataset, run, score
from r2med.data.qrels_file import read_qrels
from r2med.data.runs import Run
from r2med.data.runs.run import IdTable
from r2med.data.runs.run_file import read_rankings
from r2med.evaluation.measure import DEFAULT_MEASURES, Measure
from r2med.foundation.core.errors import UserError
from support.facts import error_states

FOLDER = Path(__file__).parent / "trec_eval"
MEASURES = (*DEFAULT_MEASURES, Measure("nDCG"), Measure("MAP"))


def ranked(**rankings):
    """Return a run in which each query's documents score 1, 1/2, 1/3, …"""
    table = IdTable(tuple(sorted({d for documents in rankings.values() for d in documents})))
    found = [
        (
            np.array([table.table.index(d) for d in documents], dtype=np.int32),
            np.array([1 / (i + 1) for i in range(len(documents))], dtype=np.float32),
        )
        for documents in rankings.values()
    ]
    return Run.ranked(list(rankings), found, table)


def trec_name(measure):
    """Return what trec_eval prints for a measure."""
    base = {"nDCG": "ndcg", "MAP": "map", "R": "recall", "P": "P", "MRR": "recip_rank"}[measure.family]
    if measure.cutoff is None:
        return base
    return f"{base}_cut_{measure.cutoff}" if measure.family in ("nDCG", "MAP") else f"{base}_{measure.cutoff}"


@pytest.mark.parametrize("read", [Run.read, read_rankings])
def test_every_line_that_trec_eval_printed_matches_to_the_digit(read):
    scores = score(read_qrels(FOLDER / "qrels.txt"), read(FOLDER / "run.txt"), MEASURES)
    by_name = {trec_name(measure): measure for measure in MEASURES}
    lines = (FOLDER / "expected.txt").read_text().splitlines()
    assert len(lines) == 875
    for line in lines:
        name, query, printed = line.split()
        value = scores.mean[by_name[name]] if query == "all" else scores.per_query[query][by_name[name]]
        assert f"{value:.4f}" == printed, line


@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.dictionaries(st.sampled_from("uvwxyz"), st.sampled_from([-1, 0.5, 0.5 + 1e-12, 1e99])),
    ),
    st.dictionaries(st.sampled_from("abd"), st.dictionaries(st.sampled_from("vwxyzä"), st.integers(-1, 3))),
)
def test_scores_of_a_mapping_are_those_of_its_run_whatever_the_ties(rankings, qrels):
    ours, arrays = (score(qrels, run, MEASURES) for run in (rankings, Run.of(rankings)))
    assert ours.per_query == arrays.per_query


def test_a_judged_query_that_the_run_lacks_counts_zero_in_the_mean():
    scores = score({"a": {"d": 1}, "b": {"d": 1}}, ranked(a=["d"]), [Measure("nDCG", 10)])
    assert scores.mean[Measure("nDCG", 10)] == 0.5


def test_a_query_without_judgements_is_ignored():
    scores = score({"a": {"d": 1}}, ranked(a=["d"], other=["x"]), [Measure("P", 1)])
    assert scores.queries == ("a",)
    assert scores.mean[Measure("P", 1)] == 1.0


def test_a_query_whose_judgements_are_all_zero_scores_zero_and_counts():
    scores = score({"a": {"d": 0}, "b": {"d": 2}}, ranked(a=["d"], b=["d"]), MEASURES)
    assert all(scores.per_query["a"][measure] == 0 for measure in MEASURES)
    assert scores.mean[Measure("MRR")] == 0.5


def test_negative_grades_are_not_relevant_and_gain_nothing():
    scores = score({"a": {"d": -1, "e": 1}}, ranked(a=["d", "e"]), [Measure("P", 1), Measure("nDCG", 10)])
    assert scores.per_query["a"][Measure("P", 1)] == 0
    assert scores.per_query["a"][Measure("nDCG", 10)] == pytest.approx(1 / np.log2(3))


@pytest.mark.parametrize("grade", [1.9, "1", None])
def test_a_grade_that_is_no_whole_number_is_refused_by_run_and_by_score(grade):
    """A perfect ranking had an nDCG of 0.5263 in `run` and of 1 in `score`."""
    judged = {"q": {"d": grade, "e": 1}}
    for judging in (
        lambda: score(judged, {"q": {"d": 2.0, "e": 1.0}}),
        lambda: run("bm25", Dataset.of({"q": "fever"}, {"d": "fever", "e": "rash"}, judged), out=None),
    ):
        with error_states("query 'q'", "document 'd'", f"grade {grade!r}", "whole number"):
            judging()


def test_run_and_score_agree_about_whole_grades_of_any_type(store):
    judged = {"q": {"d": np.float64(2), "e": -1, "f": np.int8(1)}}
    documents = {"d": "fever fever cough", "e": "fever cough", "f": "rash"}
    [record] = run("bm25", Dataset.of({"q": "fever"}, documents, judged), out=None, store=store).records
    assert record.mean["nDCG@10"] == score(judged, {"q": {"d": 2.0, "e": 1.0}})["nDCG@10"] < 1


def test_the_gain_of_ndcg_is_the_grade_itself():
    scores = score({"a": {"good": 3, "fair": 1}}, ranked(a=["fair", "good"]), [Measure("nDCG", 10)])
    expected = (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert scores.per_query["a"][Measure("nDCG", 10)] == pytest.approx(expected)


def test_an_empty_run_scores_zero_everywhere():
    scores = score({"a": {"d": 1}}, ranked(), MEASURES)
    assert set(scores.mean.values()) == {0.0}


def test_scores_equal_in_single_precision_are_a_tie_unless_they_are_read_as_doubles(tmp_path):
    path = tmp_path / "run"
    path.write_text("q Q0 a 1 0.50000000001 t\nq Q0 b 2 0.5 t\n")
    orders = [[document for document, _ in next(iter(Run.read(path, doubles=doubles)))[1]] for doubles in (False, True)]
    assert orders == [["b", "a"], ["a", "b"]]
    values = [score({"q": {"a": 1}}, Run.read(path, doubles=doubles)).mean[Measure("MRR")] for doubles in (False, True)]
    assert values == [0.5, 1.0]


def test_a_run_of_many_queries_is_scored_as_each_query_alone():
    chance = np.random.default_rng(1)
    documents = [f"d{number}" for number in range(300)]
    rankings = {f"q{number}": list(chance.permutation(documents)[: chance.integers(0, 60)]) for number in range(2100)}
    qrels = {query: {str(d): int(chance.integers(-1, 4)) for d in chance.choice(documents, 9)} for query in rankings}
    qrels["unseen"] = {"d1": 1}
    whole = score(qrels, ranked(**rankings), MEASURES)
    assert whole.queries == tuple(qrels)
    for query in [*list(rankings)[:3], "q1023", "q1024", "q2099", "unseen"]:
        alone = score({query: qrels[query]}, ranked(**{query: rankings.get(query, [])}), MEASURES)
        assert whole.per_query[query] == pytest.approx(alone.per_query[query], abs=1e-12)


@given(st.data())
def test_scores_agree_with_a_plain_loop(data):
    documents = [f"d{i}" for i in range(8)]
    ranking = data.draw(st.permutations(documents))[: data.draw(st.integers(0, 8))]
    grades = data.draw(st.dictionaries(st.sampled_from([*documents, "unseen"]), st.integers(-1, 3), min_size=1))
    cutoff = data.draw(st.integers(1, 10))
    scores = score({"q": grades}, ranked(q=ranking), [Measure(f, cutoff) for f in ("nDCG", "MAP", "R", "P", "MRR")])
    gains = [max(grades.get(d, 0), 0) for d in ranking][:cutoff]
    ideal = sorted((g for g in grades.values() if g > 0), reverse=True)
    discounted = [sum(g / np.log2(i + 2) for i, g in enumerate(list_[:cutoff])) for list_ in (gains, ideal)]
    hits = [i for i, g in enumerate(gains) if g > 0]
    expected = {
        "nDCG": discounted[0] / discounted[1] if ideal else 0,
        "MAP": sum((n + 1) / (i + 1) for n, i in enumerate(hits)) / len(ideal) if ideal else 0,
        "R": len(hits) / len(ideal) if ideal else 0,
        "P": len(hits) / cutoff,
        "MRR": 1 / (hits[0] + 1) if hits else 0,
    }
    for family, value in expected.items():
        assert scores.per_query["q"][Measure(family, cutoff)] == pytest.approx(value, abs=1e-12)


def test_files_are_scored_like_the_values_in_them(tmp_path):
    (tmp_path / "qrels.txt").write_text("q 0 a 1\nr 0 b 1\n")
    (tmp_path / "run.txt").write_text("q Q0 a 1 0.5 t\n")
    of_files = score(tmp_path / "qrels.txt", str(tmp_path / "run.txt"))
    assert of_files.mean == score({"q": {"a": 1}, "r": {"b": 1}}, {"q": {"a": 0.5}}).mean
    assert of_files["MRR"] == 0.5
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(UserError, match=r"empty\.txt has no judgements"):
        score(tmp_path / "empty.txt", tmp_path / "run.txt")
    with pytest.raises(UserError, match="there is no such qrels file"):
        score("nowhere.txt", tmp_path / "run.txt")

"""Datasets of what is in memory."""

from typing import Any

import numpy as np
import pytest

from r2med import Corpus, Dataset, Qrels, Query
from support.facts import error_states

CORPUS = {"d1": "heart", "d2": "brain"}


def test_a_dataset_is_made_of_what_is_in_memory() -> None:
    dataset = Dataset.of({"q": "<i>pain</i>"}, CORPUS, {"q": {"d1": 1, "gone": 0}})
    same = Dataset.of([Query("q", "<i>pain</i>")], list(CORPUS.items()), {"q": {"d1": 1, "gone": 0}}, name="other")
    assert dataset.fingerprint == same.fingerprint
    assert dataset.corpus.text(1) == "brain" and dataset.queries[0].id == "q"
    assert repr(dataset) == "Dataset(mine: 1 query, 2 documents, Qrels(1 query, 1 positive))"
    assert "<td>&lt;i&gt;pain&lt;/i&gt;</td>" in dataset._repr_html_()
    assert len(Dataset.of({}, Corpus.of(CORPUS.items())).queries) == 0


@pytest.mark.parametrize(
    ("queries", "corpus", "qrels", "facts"),
    [
        (["pain"], CORPUS, {}, ["queries", "id -> text"]),
        ({"q": 3}, CORPUS, {}, ["queries", "id -> text"]),
        ({"q": "pain"}, {"d": 3}, {}, ["corpus", "id -> text"]),
        ({"q": "pain"}, [("d", "x"), ("d", "y")], {}, ["id", "once"]),
        ([Query("q", "a"), Query("q", "b")], CORPUS, {}, ["query id 'q'"]),
        ({"q": "pain"}, CORPUS, {"q": {"d3": 1}}, ["judgements", "'d3'"]),
        ({"q": "pain"}, CORPUS, {"p": {"d1": 1}}, ["judgements", "'p'"]),
        ({"q": "pain"}, CORPUS, {"q": ["d1"]}, ["judgements", "document id -> grade"]),
        ({"q": "pain"}, CORPUS, ["q"], ["judgements", "query id -> document id -> grade"]),
    ],
)
def test_what_is_no_dataset_is_told_in_one_line(queries: Any, corpus: Any, qrels: Any, facts: list[str]) -> None:
    with error_states(*facts):
        Dataset.of(queries, corpus, qrels)


@pytest.mark.parametrize(
    ("grade", "fault"),
    [
        (1.9, "1.9 is not a whole number"),
        (float("nan"), "nan is not a whole number"),
        ("1", "'1' is not a whole number"),
        (None, "None is not a whole number"),
        (float("inf"), "out of range"),
        (1 << 32, "out of range"),
    ],
)
def test_a_grade_that_is_no_whole_number_names_its_query_and_document(grade: Any, fault: str) -> None:
    with error_states("query 'q'", "document 'd1'", f"grade {fault}" if fault[0] != "o" else fault):
        Dataset.of({"q": "pain"}, CORPUS, {"q": {"d2": 1, "d1": grade}})


@pytest.mark.parametrize("grade", [2.0, np.int64(2), np.float32(2), np.uint8(2)])
def test_a_whole_number_of_any_type_is_the_same_grade(grade: Any) -> None:
    qrels = Qrels({"q": {"d1": grade, "d2": 0}})
    assert (qrels, type(qrels["q"]["d1"])) == ({"q": {"d1": 2, "d2": 0}}, int)
    assert qrels.fingerprint == Qrels({"q": {"d1": 2, "d2": 0}}).fingerprint

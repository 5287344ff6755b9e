"""Datasets of what is in memory."""

from typing import Any

import pytest

from r2med import Corpus, Dataset, Query
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
        ({"q": "pain"}, CORPUS, {"q": {"d1": "high"}}, ["judgements", "document id -> grade"]),
    ],
)
def test_what_is_no_dataset_is_told_in_one_line(queries: Any, corpus: Any, qrels: Any, facts: list[str]) -> None:
    with error_states(*facts):
        Dataset.of(queries, corpus, qrels)

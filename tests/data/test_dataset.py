"""Datasets of what is in memory."""

from typing import Any

import pytest

from r2med import Corpus, Dataset, Query, UserError

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
    ("queries", "corpus", "qrels", "message"),
    [
        (["pain"], CORPUS, {}, "queries are id -> text"),
        ({"q": 3}, CORPUS, {}, "queries are id -> text"),
        ({"q": "pain"}, {"d": 3}, {}, "a corpus is id -> text, both strings"),
        ({"q": "pain"}, [("d", "x"), ("d", "y")], {}, "every id once"),
        ([Query("q", "a"), Query("q", "b")], CORPUS, {}, "query id 'q' is repeated"),
        ({"q": "pain"}, CORPUS, {"q": {"d3": 1}}, "the judgements name 'd3'"),
        ({"q": "pain"}, CORPUS, {"p": {"d1": 1}}, "the judgements name 'p'"),
        ({"q": "pain"}, CORPUS, {"q": ["d1"]}, "judgements are query id -> document id -> grade"),
        ({"q": "pain"}, CORPUS, {"q": {"d1": "high"}}, "judgements are query id -> document id -> grade"),
    ],
)
def test_what_is_no_dataset_is_told_in_one_line(queries: Any, corpus: Any, qrels: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Dataset.of(queries, corpus, qrels)

"""Tables on documents without a label and on duplicate texts, from plain values."""

from r2med.assessment.audit.unjudged import RankedDataset, duplicate_tables, first_copies, unjudged_table
from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset, Qrels, Query


def test_bpref_counts_relevant_documents_below_rank_100() -> None:
    lists = {"q": [f"d{rank}" for rank in range(1, 151)]}
    table = unjudged_table([RankedDataset("a", "d", {"q": {"d1": 1, "d2": 0, "d120": 1}}, lists)])
    assert table is not None
    # trec_eval's bpref: d1 has nothing above it, d120 one of min(2, 1) judged irrelevant documents.
    assert table.rows[0][-1].value == 50.0 * (1 + (1 - 1 / 1))
    assert "bpref is computed on the whole run" in table.note
    found = unjudged_table([RankedDataset("a", "d", {"q": {"d1": 1, "d2": 1, "d120": 1}}, lists)])
    assert found is not None and found.rows[0][-1].value == 100.0
    assert "Only relevant documents are judged here" in found.note


def test_without_rankings_there_is_no_table() -> None:
    assert unjudged_table([]) is None
    assert list(duplicate_tables({}, [])) == []


def dataset() -> Dataset:
    corpus = Corpus.of([("a", "one text"), ("b", "another"), ("c", "one text"), ("d", "One text"), ("e", "one text")])
    return Dataset("d", [Query("q", "what?")], corpus, Qrels({"q": {"a": 1, "c": 1}}))


def test_copies_are_the_documents_with_exactly_the_text_of_an_earlier_one() -> None:
    assert first_copies(dataset()) == {"c": "a", "e": "a"}


def test_duplicates_are_counted_and_scores_given_if_they_counted_as_one() -> None:
    lists = {"q": ["e", "b", "a", "c"]}
    counts, scores = duplicate_tables({"d": dataset()}, [RankedDataset("s", "d", dataset().qrels, lists)])
    assert counts is not None and counts.rows == [["d", 5, 2, 1]]
    assert scores is not None
    before, after, moved = (cell.value for cell in scores.rows[0][1:])
    assert after == 100.0 and before < 60 and moved == after - before

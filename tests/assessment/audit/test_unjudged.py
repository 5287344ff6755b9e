"""The table on documents without a label, from plain values."""

from r2med.assessment.audit.unjudged import RankedDataset, unjudged_table


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

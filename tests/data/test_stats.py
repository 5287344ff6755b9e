"""Stats: the table of the benchmark's README."""

from pathlib import Path

from r2med.data import load
from r2med.data.stats import Stats, stats
from support.datasets import r2med_folder


def test_sizes_are_means_over_queries_documents_and_judged_queries(tmp_path: Path) -> None:
    folder = r2med_folder(
        tmp_path / "set",
        documents=[{"id": "a", "text": "  one two\tthree\n"}, {"id": "b", "text": " "}, {"id": "c", "text": "漢字 é"}],
        queries=[{"id": "1", "text": "four words are here"}, {"id": "2", "text": "two words"}],
        qrels=[
            {"q_id": "1", "p_id": "a", "score": 2},
            {"q_id": "1", "p_id": "b", "score": 1},
            {"q_id": "1", "p_id": "c", "score": 0},
            {"q_id": "2", "p_id": "c", "score": 1},
        ],
    )
    assert stats(load(folder)) == Stats(
        name="set",
        queries=2,
        documents=3,
        mean_positives=1.5,
        query_words=3.0,
        document_words=5 / 3,
        query_characters=14.0,
        document_characters=21 / 3,
        longest_document=16,
    )


def test_an_empty_dataset_has_zeros(tmp_path: Path) -> None:
    empty = stats(load(r2med_folder(tmp_path / "set", [], [], [])))
    assert empty == Stats("set", 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)

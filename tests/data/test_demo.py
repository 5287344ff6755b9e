"""The bundled demo: the eight datasets in small, complete and honest about what it is."""

import json
import re

import pytest

from r2med.data import Dataset, load
from r2med.data.dataset_cards import Counts, cards, groups


@pytest.fixture(params=groups()["demo"])
def dataset(request: pytest.FixtureRequest) -> Dataset:
    return load(request.param)


def test_the_demo_has_all_eight_datasets() -> None:
    assert groups()["demo"] == tuple(f"demo/{name}" for name in groups()["R2MED"])
    assert len(groups()["demo"]) == 8


def test_a_dataset_has_at_least_six_queries_and_forty_documents(dataset: Dataset) -> None:
    assert len(dataset.queries) >= 6
    assert len(dataset.corpus) >= 40


def test_a_query_has_an_answer_a_body_system_and_a_relevant_document(dataset: Dataset) -> None:
    for query in dataset.queries:
        assert query.answer.strip(), query.id
        assert query.body_system, query.id
        relevant = [document for document, grade in dataset.qrels[query.id].items() if grade > 0]
        assert relevant, query.id
        assert min(dataset.corpus.rows(relevant)) >= 0, query.id


def test_a_query_does_not_give_its_answer_away(dataset: Dataset) -> None:
    for query in dataset.queries:
        assert words(query.answer) not in words(query.text), query.id


@pytest.mark.parametrize("writer", ["author", "qwen-coder"])
def test_a_query_has_an_expansion_by_the_author_and_by_a_small_llm(dataset: Dataset, writer: str) -> None:
    assert dataset.folder is not None
    path = dataset.folder / "hyde" / writer / "query_with_hydoc.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["text"]) for row in rows] == [(query.id, query.text) for query in dataset.queries]
    assert all(row["hy_doc"].strip() for row in rows)


def test_a_dataset_is_of_the_task_of_its_model_and_freely_licensed(dataset: Dataset) -> None:
    model = cards()[dataset.name.removeprefix("demo/")]
    assert dataset.card is not None
    assert (dataset.card.task, dataset.card.instruction) == (model.task, model.instruction)
    assert dataset.card.licence == "CC-BY-4.0"


def test_the_card_has_the_counts_and_the_fingerprint_of_the_dataset(dataset: Dataset) -> None:
    assert dataset.card is not None and dataset.card.counts is not None
    of_query = [sum(grade > 0 for grade in grades.values()) for grades in dataset.qrels.values()]
    assert dataset.card.counts == Counts(
        queries=len(dataset.queries),
        documents=len(dataset.corpus),
        positives=sum(of_query),
        most_positives=max(of_query),
    )
    assert dataset.card.fingerprint == dataset.fingerprint


def words(text: str) -> str:
    """Return text in a form in which neither case nor punctuation hides that two are the same."""
    return " ".join(["", *re.findall(r"[^\W_]+", text.casefold()), ""])

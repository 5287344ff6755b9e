"""The story of a query: what was asked and written, the relevant documents, and their ranks by stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med import UserError, load
from r2med.evaluation.running.batch import plan_run
from r2med.evaluation.running.story import FIRST, query_story
from r2med.foundation.runtime.setup import Setup


@pytest.fixture
def record(tmp_path: Path) -> Path:
    plan_run(["hyde(author) → bm25"], ["demo/MedQA-Diag"], k=100, setup=Setup()).evaluate(tmp_path / "out")
    [path] = (tmp_path / "out").rglob("*-*.json")
    return path


def test_relevant_documents_are_ranked_with_the_question_alone_and_after_each_stage(record: Path) -> None:
    query = load("demo/MedQA-Diag").queries[0]
    story = query_story(record, query.id)
    assert story.query == query
    assert story.generated
    assert list(story.ranks) == ["bm25 (the question alone)", "hyde(author) → bm25"]
    assert all(document.text and document.grade > 0 for document in story.relevant)
    assert set(story.ranks["hyde(author) → bm25"]) <= {document.id for document in story.relevant}


def test_the_text_of_a_query_is_as_good_as_its_id_and_the_first_documents_are_told(record: Path) -> None:
    query = load("demo/MedQA-Diag").queries[0]
    story = query_story(record, query.text)
    assert story == query_story(record, query.id)
    ranks = story.ranks["hyde(author) → bm25"]
    graded = {found.id: found.grade for found in story.first}
    assert len(graded) == FIRST and all(found.text for found in story.first)
    assert {found for found, grade in graded.items() if grade} == {each for each in ranks if ranks[each] <= FIRST}


def test_bad_input_is_one_line(record: Path, tmp_path: Path) -> None:
    for path, query, data, message in (
        (tmp_path / "no.json", "1", None, "there is no such record"),
        (record, "nobody", None, "no judged query 'nobody'"),
        (record, next(iter(load("demo/MedQA-Diag").qrels)), "demo/Biology", "the record was made on other data than"),
        (record, next(iter(load("demo/MedQA-Diag").qrels)), "nowhere", "no dataset or folder 'nowhere'"),
    ):
        with pytest.raises(UserError, match=message):
            query_story(path, query, data)

"""Reviews out and in: CSV that no spreadsheet computes, Label Studio's JSON, and one line for what is wrong."""

import csv
import json

import pytest

from r2med.construction.items import PageChunk, SourceQuestion
from r2med.construction.review.review_book import add_reviews, read_reviews
from r2med.construction.review.review_files import export_reviews, import_reviews
from r2med.construction.review.review_items import ReviewItem
from r2med.construction.review.reviews import Review
from r2med.foundation.core.errors import UserError

QUESTION = SourceQuestion(id="q,1", text="a query", answer="an answer")
ITEMS = [ReviewItem(QUESTION, PageChunk(id=name, text=f"passage {name}", page="")) for name in ("c1", "c2")]
REVIEWS = [
    Review(
        question="q,1", chunk="c1", annotator="Ann", verdict="accept", comment='=1+1 "x",\ny', at="2026-01-02T03:04"
    ),
    Review(question="q,1", chunk="c1", annotator="@Bo", verdict="reject", comment="'quoted"),
    Review(question="q,1", chunk="c1", annotator="Cy", verdict="unsure", comment="\t=2", adjudicated=True),
]


@pytest.mark.parametrize("name", ["reviews.csv", "reviews.json"])
def test_what_goes_out_comes_back_the_same(tmp_path, name):
    export_reviews(tmp_path / name, REVIEWS, ITEMS)
    assert import_reviews(tmp_path / name) == REVIEWS


def test_no_cell_is_a_formula(tmp_path):
    export_reviews(tmp_path / "r.csv", REVIEWS, ITEMS)
    cells = [cell for row in csv.reader((tmp_path / "r.csv").open()) for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for cell in cells)


def test_label_studio_gets_every_candidate_as_a_task_and_its_accounts_are_annotators(tmp_path):
    path = tmp_path / "r.json"
    export_reviews(path, REVIEWS, ITEMS)
    tasks = json.loads(path.read_text())
    assert [len(task["annotations"]) for task in tasks] == [3, 0]
    assert tasks[1]["data"]["passage"] == "passage c2"
    choice = {"from_name": "verdict", "to_name": "passage", "type": "choices", "value": {"choices": ["accept"]}}
    tasks[1]["annotations"] = [
        {"completed_by": {"id": 4, "email": "d@example.org"}, "result": [choice], "was_cancelled": False},
        {"completed_by": 7, "result": [choice]},
        {"completed_by": 8, "result": [], "was_cancelled": True},
    ]
    path.write_text(json.dumps(tasks[1:]))
    assert [(review.annotator, review.verdict) for review in import_reviews(path)] == [
        ("d@example.org", "accept"),
        ("7", "accept"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.csv", "question,chunk,annotator,verdict\nq,c,Ann,perhaps\n", "line 2: verdict='perhaps'"),
        ("r.csv", "question,chunk,verdict\nq,c,accept\n", "line 2: annotator=''"),
        ("r.json", "{", "not an export of Label Studio"),
        ("r.json", '[{"data": {}, "annotations": [{}]}]', "not an export of Label Studio"),
        (
            "r.json",
            '[{"data": {"question_id": 1, "chunk_id": 2}, "annotations": [{"result": []}]}]',
            "task 1: annotator",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_its_position(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError) as error:
        import_reviews(tmp_path / name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_reviews_of_candidates_that_are_not_there_are_refused_all_of_them(tmp_path):
    table = tmp_path / "c.jsonl"
    table.write_text('{"question_id": "q", "id": "c", "question": "x?", "passage": "y"}\n')
    known = Review(question="q", chunk="c", annotator="Ann", verdict="accept")
    with pytest.raises(UserError, match="no candidate 'other'"):
        add_reviews(table, [known, known.model_copy(update={"chunk": "other"})])
    assert read_reviews(table) == []
    assert add_reviews(table, [known]) == 1
    assert add_reviews(table, [known]) == 0
    assert [review.verdict for review in read_reviews(table)] == ["accept"]
    table.write_text('{"question_id": "q", "id": "c", "question": "x?", "passage": "another text"}\n')
    assert read_reviews(table) == []  # a review of another text is none of this one

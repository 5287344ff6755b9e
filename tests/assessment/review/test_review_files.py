"""Reviews out and in: CSV that no spreadsheet computes, and one line for what is wrong."""

import csv

import pytest

from r2med.assessment.review.review_files import export_reviews, import_reviews
from r2med.assessment.review.reviews import Review
from r2med.construction.review_items import add_reviews, read_reviews
from r2med.foundation.core.errors import UserError

REVIEWS = [
    Review(
        question="q,1", chunk="c1", annotator="Ann", verdict="accept", comment='=1+1 "x",\ny', at="2026-01-02T03:04"
    ),
    Review(question="q,1", chunk="c1", annotator="@Bo", verdict="reject", comment="'quoted"),
    Review(question="q,1", chunk="c1", annotator="Cy", verdict="unsure", comment="\t=2", adjudicated=True),
]


def test_what_goes_out_comes_back_the_same(tmp_path):
    export_reviews(tmp_path / "reviews.csv", REVIEWS)
    assert import_reviews(tmp_path / "reviews.csv") == REVIEWS
    with pytest.raises(UserError, match=r"tasks.json does not end in .csv: .* as tasks.csv"):
        export_reviews(tmp_path / "tasks.json", REVIEWS)


def test_no_cell_is_a_formula(tmp_path):
    export_reviews(tmp_path / "r.csv", REVIEWS)
    cells = [cell for row in csv.reader((tmp_path / "r.csv").open()) for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for cell in cells)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("question,chunk,annotator,verdict\nq,c,Ann,perhaps\n", "line 2: verdict='perhaps'"),
        ("question,chunk,verdict\nq,c,accept\n", "no column 'annotator'"),
        ("question,passage,annotator,verdict\nq,c,Ann,accept\n", "no column 'chunk': reviews have question, chunk"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_position(tmp_path, content, message):
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(UserError) as error:
        import_reviews(tmp_path / "r.csv")
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

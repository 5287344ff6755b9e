"""A rubric of one's own: people review the rows of a table whose columns are the rubric's texts."""

import pytest

from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.review_desk import ReviewDesk
from r2med.construction.review_items import items_by_kind, read_reviews, review_rubrics
from r2med.foundation.core.errors import UserError
from support.commands import typed

CARD = """
noun = "summary"
task = "Judge the summary of a note."
[[texts]]
field = "note"
label = "Note"
[[texts]]
field = "summary"
label = "Summary"
rated = true
corrects = true
[[points]]
name = "faithful"
text = "Does it say only what the note says?"
rejects = "not faithful"
[[points]]
name = "Short"
"""


@pytest.fixture
def table(tmp_path):
    (tmp_path / "mine.toml").write_text(CARD)
    (tmp_path / "notes.csv").write_text("id,note,summary\nn1,Long note.,A note.\nn2,Other note.,Other.\n")
    return tmp_path / "notes.csv"


def test_people_review_a_table_by_a_rubric_of_their_own(table, tmp_path, capsys):
    kind = str(tmp_path / "mine.toml")
    _, rubrics = review_rubrics(kind)
    items = items_by_kind(table, kind)["mine"]
    assert [(item.id, item.texts["summary"]) for item in items] == [(("n1", ""), "A note."), (("n2", ""), "Other.")]
    with ReviewBook(reviews_file(table), rubrics) as book:
        desk = ReviewDesk(items, book)
        said = {"faithful": "yes", "Short": "unsure"}
        desk.decide("Ann", items[0].token, said, "", "", correction="A long note.")
        desk.decide("Bo", items[0].token, {**said, "faithful": "no"}, "", "")
    assert read_reviews(table) == [], "a rubric that is not given is left alone"
    typed("review", "export", table, "--kind", kind, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[1].endswith(",mine,yes,unsure,A long note.")
    reviews_file(table).unlink()
    typed("review", "import", table, tmp_path / "out.csv", "--kind", kind)
    assert {each.annotator: each.verdict for each in read_reviews(table, rubrics)} == {"Ann": "accept", "Bo": "reject"}
    typed("review", "show", table, "--kind", kind)
    assert "mine: faithful" in capsys.readouterr().out


def test_a_source_without_the_texts_of_a_rubric_is_named(table, tmp_path):
    (tmp_path / "other.csv").write_text("id,note\nn1,Long note.\n")
    with pytest.raises(UserError, match="no column 'summary': the rubric mine needs the columns note, summary"):
        items_by_kind(tmp_path / "other.csv", str(tmp_path / "mine.toml"))
    with pytest.raises(UserError, match="a build has no text 'note', which the rubric mine shows: it has question"):
        items_by_kind(tmp_path, str(tmp_path / "mine.toml"))

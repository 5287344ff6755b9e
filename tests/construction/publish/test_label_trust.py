"""What a datasheet says about the trust in its labels."""

from pathlib import Path

import pytest

from r2med.assessment.review.reviews import Review
from r2med.assessment.rubrics.rubric import Verdict
from r2med.construction.publish.build_outcome import BuildOutcome
from r2med.construction.publish.label_trust import agreement_page, trust_facts, trust_sections
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.page import Section, Table
from support.written_builds import small_build


def verdict(kind: str, number: int) -> Verdict:
    return "accept" if (kind == "gold") != (number in (2, 3)) else "reject"


def changed(review: Review, verdict: Verdict) -> Review:
    return Review(**{**review.model_dump(), "verdict": verdict, "answers": {}})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> BuildOutcome:
    """Return a build of which two people reviewed six of twelve candidates of each label, and disagreed about one."""
    build = small_build(tmp_path_factory.mktemp("build"))
    reviews = [
        Review(question=f"q{number}", chunk=f"{kind}-{number}", annotator=name, verdict=verdict(kind, number))
        for number in range(1, 7)
        for kind in ("gold", "near", "far")
        for name in ("ann", "bob")
    ]
    reviews[-1] = changed(reviews[-1], "accept")
    return BuildOutcome.read(build, reviews)


def tables(sections: list[Section]) -> dict[str, Table]:
    return {table.title: table for section in sections for table in section.tables}


def test_judges_are_measured_against_people_and_people_against_each_other(made: BuildOutcome) -> None:
    found = tables(trust_sections(made))
    counts = found["Judges against people, number of reviewed candidates"].rows
    assert counts == [("positive", 4, 2, 0), ("discarded", 2, 4, 0), ("negative", 2, 3, 1)]
    share = found["What people accept, by the label that judges gave"].rows[0]
    assert share[1].value == pytest.approx(4 / 6) and share[1].low < 4 / 6 < share[1].high
    assert share[2:] == ("6 of 11", 0)
    [agreement] = found["Agreement of people beyond chance"].rows
    assert agreement[:3] == ("passage", 2, 18) and agreement[3].value == pytest.approx(17 / 18)


def test_facts_name_precision_and_agreement(made: BuildOutcome) -> None:
    facts = {label: (value, note) for label, value, note in trust_facts(made)}
    assert facts["Precision of positives"][0] == "67%"
    assert facts["Reviews without a decision"][0] == "1"
    assert facts["Agreement of people"] == ("α 0.89", "too few reviews for an interval")


def test_open_reviews_are_counted_and_no_part_of_the_share(made: BuildOutcome) -> None:
    """Two people disagree about two of six positives. Nothing may look certain until somebody settles them."""
    reviews = [
        changed(each, "unsure") if (each.chunk, each.annotator) == ("gold-4", "bob") else each
        for each in made.reviews
        if each.chunk.startswith("gold")
    ]
    said: Verdict
    for chunk, verdicts in {"gold-1": ("accept", "reject"), "gold-5": ("unsure", "unsure")}.items():
        rows = [number for number, each in enumerate(reviews) if each.chunk == chunk]
        for number, said in zip(rows, verdicts, strict=True):
            reviews[number] = changed(reviews[number], said)
    found = BuildOutcome.read(made.build, reviews)
    assert found.unsettled == 2
    precision = found.accepted("positive")
    assert (precision.reviewed, precision.undecided) == (6, 2)
    facts = {label: (value, note) for label, value, note in trust_facts(found)}
    assert facts["Precision of positives"][1].startswith("of 4 decided candidates; 95 % interval")
    assert facts["Reviews without a decision"][0] == "2"
    labels = {(label.chunk, label.by) for label in found.labels}
    assert ("gold-1", "unsettled") in labels
    (row, *_) = tables(trust_sections(found))["What people accept, by the label that judges gave"].rows
    assert row[3] == 2
    settled = Review(question="q1", chunk="gold-1", annotator="eve", verdict="accept", adjudicated=True)
    assert BuildOutcome.read(made.build, [*reviews, settled]).unsettled == 1


def test_what_is_not_known_is_said(made: BuildOutcome, tmp_path: Path) -> None:
    unreviewed = BuildOutcome.read(made.build)
    text = " ".join(str(part) for section in trust_sections(unreviewed) for part in section.parts)
    assert "People have not reviewed a sample" in text and "No item was reviewed by two people" in text
    with pytest.raises(UserError, match="there is no such build or table"):
        agreement_page(tmp_path / "nothing")

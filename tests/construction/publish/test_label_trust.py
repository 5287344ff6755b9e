"""What a datasheet says about the trust in its labels."""

from pathlib import Path

import pytest

from r2med.construction.publish.build_outcome import BuildOutcome
from r2med.construction.publish.label_trust import agreement_page, trust_facts, trust_sections
from r2med.construction.review.review_kinds import Verdict
from r2med.construction.review.reviews import Review
from r2med.core.errors import UserError
from r2med.pages.page import Section, Table
from support.written_builds import small_build


def verdict(kind: str, number: int) -> Verdict:
    return "accept" if (kind == "gold") != (number in (2, 3)) else "reject"


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
    reviews[-1] = reviews[-1].model_copy(update={"verdict": "accept"})
    return BuildOutcome.read(build, reviews)


def tables(sections: list[Section]) -> dict[str, Table]:
    return {table.title: table for section in sections for table in section.tables}


def test_judges_are_measured_against_people_and_people_against_each_other(made: BuildOutcome) -> None:
    found = tables(trust_sections(made))
    counts = found["Judges against people, number of reviewed candidates"].rows
    assert counts == [("positive", 4, 2, 0), ("discarded", 2, 4, 0), ("negative", 2, 3, 1)]
    [rates] = found["Each judge against people"].rows
    accepted = 11 * 4 / 6, 12 * 2 / 6 + 12 * 2 / 5
    assert rates[0] == "qwq-32b" and rates[4] == 17
    assert rates[1].value == pytest.approx(accepted[0] / sum(accepted))
    [agreement] = found["Agreement of people beyond chance"].rows
    assert agreement[:3] == ("passage", 18, 2) and agreement[3] == pytest.approx(17 / 18)


def test_facts_name_precision_recall_and_agreement(made: BuildOutcome) -> None:
    facts = {label: (value, note) for label, value, note in trust_facts(made)}
    assert facts["Precision of positives"][0] == "67%"
    assert facts["Recall of positives"][1].startswith("among candidates; 95 % interval")
    assert facts["Agreement of people"] == ("α 0.89", "too few reviews for an interval")


def test_what_is_not_known_is_said(made: BuildOutcome, tmp_path: Path) -> None:
    unreviewed = BuildOutcome.read(made.build)
    text = " ".join(str(part) for section in trust_sections(unreviewed) for part in section.parts)
    assert "People have not reviewed a sample" in text and "No item was reviewed by two people" in text
    only = BuildOutcome.read(made.build, [review for review in made.reviews if review.chunk.startswith("gold")])
    text = " ".join(str(part) for section in trust_sections(only) for part in section.parts)
    assert "because people did not review some candidates of each label" in text
    with pytest.raises(UserError, match="there is no such build or table"):
        agreement_page(tmp_path / "nothing")

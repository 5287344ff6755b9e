"""How far the labels of a build can be trusted: judges against people, agreement and controls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan
from pathlib import Path

from r2med.assessment.panels.control_table import control_table
from r2med.assessment.panels.ratings import RaterAgreement, agreement_table
from r2med.assessment.review.people_agreement import agreement_by_point
from r2med.assessment.review.reviews import VERDICTS, Review, Rubrics
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.construction.judge_quality import AcceptedShare, Confusion, judge_confusions, judge_ratings
from r2med.construction.labels import LabelName
from r2med.construction.publish.build_outcome import BuildOutcome
from r2med.construction.publish.reviewers import reviewers
from r2med.construction.review_items import finished_build, read_guideline, read_reviews
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Column, Estimate, shown
from r2med.foundation.pages.page import Content, Page, Section, Table
from r2med.foundation.text.plurals import counted

OPEN_NOTE = "as many people said yes as no, or nobody was sure; r2med review serve DIR settles them"
LABEL_NAMES: tuple[LabelName, ...] = ("positive", "discarded", "negative")


def trust_sections(made: BuildOutcome) -> list[Section]:
    """Return the sections about the trust in the labels of a build."""
    return [
        Section("How far the labels can be trusted", list(_judges_and_people(made))),
        _of_people(made.reviews),
        Section("Agreement of judges", list(_judges(made))),
    ]


def agreement_page(source: Path, rubrics: Rubrics = RUBRICS) -> Page:
    """Return the sections about trust for the reviews so far of a build, or those about people for a table."""
    if not source.exists():
        raise UserError(f"{source}: there is no such build or table: r2med review show DIR takes the folder of one")
    reviews = read_reviews(source, rubrics)
    words = ""
    if source.is_dir():
        made = BuildOutcome.read(finished_build(source), reviews)
        sections, words = trust_sections(made), made.plan.reviewers
    else:
        sections = [_of_people(reviews)]
    if reviews:
        people = reviewers(words, read_guideline(source), reviews)
        sections.append(Section("Who reviewed", list(people)))
    return Page(f"Reviews of {source}", sections)


def trust_facts(made: BuildOutcome) -> Iterator[tuple[str, str, str]]:
    """Yield the precision of the labels and the agreement of people, each with its interval."""
    precision = made.accepted("positive")
    if precision.share:
        yield "Precision of positives", _share(precision.share), _note(precision, precision.share)
    else:
        why = "people reviewed nothing that judges called positive" if made.decisions else "people reviewed no sample"
        yield "Precision of positives", "unknown", why
    if made.unsettled:
        yield "Reviews without a decision", f"{made.unsettled:,}", OPEN_NOTE
    for each in agreement_by_point(made.reviews):
        if each.name == "passage":
            name, found = ("AC", each.found.gwet) if isnan(each.found.alpha.value) else ("α", each.found.alpha)
            yield "Agreement of people", f"{name} {found.value:.2f}", _interval(found, ".2f")


def _note(precision: AcceptedShare, share: Estimate) -> str:
    if precision.accepted + precision.rejected == precision.items:
        return "people reviewed all of them"
    return f"of {counted(precision.accepted + precision.rejected, 'decided candidate')}; {_interval(share, '.0%')}"


def _share(estimate: Estimate) -> str:
    return shown(estimate, Column("", "share", 0))


def _interval(estimate: Estimate, form: str) -> str:
    return "too few reviews for an interval" if estimate.low is None else f"95 % interval {estimate.interval(form)}"


# Labels by judges and decisions of people.


def _judges_and_people(made: BuildOutcome) -> Iterator[Content]:
    rows = [
        (f"{word}, accepted by people", each.share, f"{each.reviewed:,} of {each.items:,}", each.undecided)
        for word in LABEL_NAMES
        if (each := made.accepted(word)).reviewed
    ]
    if rows:
        yield (
            "People reviewed a sample of what the judges labelled. Each share is that of the reviewed candidates with "
            "a decision, with Wilson’s 95 % interval. It holds for all candidates of the label if the sample was drawn "
            "at random among them (r2med review serve DIR --sample N)."
        )
        columns = (Column("label"), Column("share", "share", 1), Column("reviewed"), Column("undecided", "integer"))
        yield Table(columns, rows, "What people accept, by the label that judges gave")
        if made.unsettled:
            yield f"{counted(made.unsettled, 'reviewed candidate')} without a decision: {OPEN_NOTE}."
        yield _confusions(made)
    else:
        yield "People have not reviewed a sample, so it is not known how many positives are right (r2med review serve)."
    yield from _controls(made)


def _confusions(made: BuildOutcome) -> Table:
    """Return the counts of labels and decisions, of all judges together and of each if there are several."""
    judges = judge_confusions(made.streams.judgements(), made.decisions, made.plan.labels)
    confusions: dict[str, Confusion] = {"": made.confusion(), **(judges if len(judges) > 1 else {})}
    rows: list[tuple[str | int, ...]] = [
        (f"{judge}: {word}" if judge else word, *(confusion[word, verdict] for verdict in VERDICTS))
        for judge, confusion in confusions.items()
        for word in LABEL_NAMES
    ]
    return Table.of(("judges say", *VERDICTS), rows, "Judges against people, number of reviewed candidates")


def _controls(made: BuildOutcome) -> Iterator[Content]:
    if not any(test.counts for test in made.judge_tests.values()):
        yield "No controls were planted, so it is not known how often the judges are wrong."
        return
    yield (
        "Judges are tested with controls: texts that cannot be evidence, and passages that the source itself cites or "
        "that another LLM wrote as evidence. Controls that were planted are not in the qrels."
    )
    yield control_table(made.judge_tests, "Controls of the judges")


# Agreement.


def _of_people(reviews: Iterable[Review]) -> Section:
    return Section("Agreement of reviewers", list(_people(reviews)))


def _people(reviews: Iterable[Review]) -> Iterator[Content]:
    """Yield the agreement of reviewers for each kind of item and each point, and why coefficients differ."""
    found = agreement_by_point(reviews)
    if not found:
        yield "No item was reviewed by two people, so their agreement is not known."
        return
    rows = [((each.name, len(each.found.raters)), each.found) for each in found]
    note = "Only first verdicts count, not those that settle a disagreement."
    yield agreement_table(("reviewed", "people"), rows, "Agreement of people beyond chance", note=note)
    yield from (each.paradox for each in found if each.paradox)
    if constant := ", ".join(each.name for each in found if each.is_constant):
        yield f"All reviewers gave the same answer to all items, so α and κ are not defined: {constant}."


def _judges(made: BuildOutcome) -> Iterator[Content]:
    found = judge_ratings(made.streams.judgements(), made.plan.labels)
    rows = [([about, _title(each)], each) for about, ratings in found.items() for each in ratings.agreements()]
    if not rows:
        yield "At most one LLM judged the candidates, so there is no agreement of judges."
        return
    title = "Agreement of judges beyond chance"
    yield agreement_table(("about", "judges"), rows, title, note="Controls do not count.")


def _title(found: RaterAgreement) -> str:
    return " and ".join(found.raters) if len(found.raters) == 2 else f"all {len(found.raters)}"

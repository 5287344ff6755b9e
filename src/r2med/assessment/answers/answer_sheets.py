"""Sheets of answers before and after a judge, and what a record and a page say about the judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from r2med.assessment.answers.answer_judge import JudgeOfAnswers
from r2med.assessment.panels.planted_controls import UNTESTED, ControlTest
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import Nuggets
from r2med.evaluation.records.answer_facts import GivenAnswer, JudgeFacts
from r2med.evaluation.records.answer_words import RIGHT
from r2med.models.llm.llm_cards import LLMCard


@dataclass(frozen=True)
class AnswerSheet:
    """The answers of one reader to the questions of one dataset, with the results of one system."""

    dataset: Dataset
    reader: LLMCard
    answers: Sequence[GivenAnswer]
    nuggets: Nuggets | None = None


Place = tuple[int, int]
"""Number of a sheet, and of an answer in it."""


@dataclass(frozen=True)
class JudgedSheet:
    """The answers of a sheet with the verdicts of a judge."""

    answers: tuple[GivenAnswer, ...]
    failures: Mapping[str, int]
    """Kind of failure -> number of questions without a usable answer."""


@dataclass(frozen=True)
class JudgedSheets:
    """The answers of all sheets with verdicts, and how the judge answered its controls."""

    sheets: tuple[JudgedSheet, ...]
    grades: ControlTest
    tests: Mapping[str, ControlTest]
    """Measures of nuggets and of citations -> the test that decides about them."""
    withheld: tuple[str, ...]
    """A sentence for each of these that the judge could not do."""

    def facts(self, number: int, judge: JudgeOfAnswers, reader: LLMCard) -> JudgeFacts:
        """Return what the record of a sheet says about the judge."""
        sheet = self.sheets[number]
        both = [each for each in sheet.answers if can_be_judged(each) and None not in (each.by_rule, each.grade)]
        tests = (self.grades, *self.tests.values())
        return JudgeFacts(
            judge=judge.name,
            controls={count.kind: (count.right, count.asked) for test in tests for count in test.counts},
            trust=self.grades.trust,
            agreed=sum(each.by_rule == (each.grade == RIGHT) for each in both),
            both=len(both),
            own_family=bool(judge.grades.shared_families(reader)),
            failures=dict(sheet.failures),
        )


def can_be_judged(answer: GivenAnswer) -> bool:
    """Return True for an answer in the reader's own words."""
    return answer.status == "answered" and not answer.options


def judge_notices(judge: JudgeOfAnswers, reader: LLMCard, facts: JudgeFacts) -> Iterator[str]:
    """Yield what a reader of the scores should know about the judge, one sentence each."""
    if facts.trust == UNTESTED:
        yield f"The judge {facts.judge} was not tested, because the answers give too few controls."
    if shared := judge.grades.shared_families(reader):
        yield (
            f"{facts.judge} judges the answers of {reader.spec}, and both belong to the family "
            f"{', '.join(shared)}. Judges tend to favour the texts of their own family."
        )
    if 2 * facts.agreed < facts.both:
        yield (
            f"{facts.judge} calls {facts.both - facts.agreed:,} of {facts.both:,} answers wrong that are the "
            "reference word for word: look at some of its verdicts."
        )
    yield from judge.tally.notices(facts.judge)

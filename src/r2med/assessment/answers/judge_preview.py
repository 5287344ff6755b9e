"""Estimate what a judge would cost before any answer exists. Stand-ins of a usual length take the place of answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

from r2med.assessment.answers.answer_judge import AnswerJudge
from r2med.assessment.answers.reader_prompts import ReaderQuestion
from r2med.assessment.answers.scoring import scored
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import Nuggets
from r2med.evaluation.records.answer_record import CitedSentence, GivenAnswer
from r2med.models.llm.costs import CostPreview

SENTENCES = 3
"""Number of cited sentences that an answer is assumed to have."""


def judge_preview(
    judge: AnswerJudge, dataset: Dataset, nuggets: Nuggets | None, questions: Sequence[ReaderQuestion], system: str
) -> CostPreview | None:
    """Return what a judge would be asked about the answers to these questions. None if it would be asked nothing."""
    judge.previews = []
    answers = [_stand_in(each, system, judge.reader.spec) for each in questions if not each.options]
    scored(answers, dataset, judge, nuggets)
    note = f"a guess: the answers are not known, and each is assumed to have {SENTENCES} cited sentences"
    return reduce(add, [CostPreview(judge.card, (), (), note=note), *judge.previews]) if judge.previews else None


def _stand_in(question: ReaderQuestion, system: str, reader: str) -> GivenAnswer:
    """Return an answer whose text differs from all others, since equal questions are asked only once."""
    read = question.read.documents
    where = f"{question.condition}, {system}, {reader}"
    sentences = tuple(
        CitedSentence(text=f"{question.query.answer} ({where}, {number}).", documents=read[number : number + 1])
        for number in range(SENTENCES)
    )
    text = " ".join(sentence.text for sentence in sentences)
    given = {"query": question.query.id, "condition": question.condition, "read": read}
    return GivenAnswer(**given, status="answered", text=text, sentences=sentences)

"""The plan of `r2med answer`: the calls of systems, readers and the judge, from the sizes of the datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from r2med.assessment.answers.answering import AnswerPlan
from r2med.assessment.answers.nugget_matching import MAX_SENTENCES
from r2med.assessment.answers.reader import AnswerReader
from r2med.assessment.answers.reading import asked_queries
from r2med.assessment.panels.planted_controls import CONTROLS, WARNING_CONTROLS
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import nuggets_of
from r2med.evaluation.records.answer_words import SEARCHED
from r2med.evaluation.running.plan_page import Plan, PlanRow
from r2med.evaluation.running.planning import PlannedDataset, planned_data, prompt_notes, system_row
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.setup import Setup
from r2med.models.ask.ask import TRIES
from r2med.models.encoders.devices import devices
from r2med.models.llm.chat import ChatRequest
from r2med.models.llm.llm_cards import resolve_llm
from r2med.models.llm.llm_needs import INSTRUCTION_TOKENS, llm_needs, typical_answer_tokens

SENTENCES = 3
"""Number of cited sentences that an answer usually has."""
SAME_FOR_ALL = ("closed book", "relevant")
"""Conditions in which a reader reads the same for every system, so that it is asked once."""
JUDGE_NOTE = (
    "What a judge is asked is a guess: the answers are not known, and each is assumed to have 3 cited sentences. "
    "Controls are included."
)


def planned_answers(work: AnswerPlan, repeats: int) -> Plan:
    """Return what is asked in all repeats. Nothing is asked. Raises UserError if a dataset has no such questions."""
    retrieval, runtime = work.retrieval, work.runtime
    with planned_data(retrieval.data, runtime, reads=True) as data:
        asked = [replace(each, size=_asked(work, each)) for each in data]
        searched = asked if SEARCHED in work.conditions else data
        rows = [system_row(retrieval, system, searched) for system in retrieval.systems]
        rows += _reader_rows(work, asked)
        if work.judge and (judged := [each for each in asked if _is_judged(work, each)]):
            rows.append(PlanRow(f"{work.judge} as judge", (_judge_needs(work, judged),)))
        read = next((each.dataset for each in data if each.dataset is not None), None)
        prompts = _examples(work, read) if read else {}
    times = tuple(replace(row, needs=tuple(_repeated(need, repeats) for need in row.needs)) for row in rows)
    notes = [*prompt_notes(retrieval.data, runtime), *([JUDGE_NOTE] if work.judge else [])]
    return Plan(times, prompts, tuple(notes), devices(runtime.setup.device)[0])


def _repeated(need: Needs, repeats: int) -> Needs:
    """Return the needs of all repeats. What asks no LLM is done once."""
    return need.times(repeats) if need.most_calls else need


def _asked(work: AnswerPlan, each: PlannedDataset) -> Size:
    """Return the size of a dataset with the questions that are asked: those with a reference answer, if it was read."""
    if each.dataset is None:
        return replace(each.size, queries=min(each.size.queries, work.queries or each.size.queries))
    return replace(each.size, queries=len(asked_queries(each.dataset, work.queries)))


def _is_judged(work: AnswerPlan, each: PlannedDataset) -> bool:
    """Return True if answers are in the reader's own words. A choice is right or wrong without a judge."""
    return (work.form_of(each.dataset) if each.dataset else work.form) != "choice"


def _reader_rows(work: AnswerPlan, asked: Sequence[PlannedDataset]) -> list[PlanRow]:
    rows = []
    for name, (reader, systems) in _readers(work).items():
        needs = [_reader_needs(work, name, reader, systems, each.size) for each in asked]
        rows += [PlanRow(f"{name} as reader", (reduce(add, needs),))] if set(work.conditions) != {SEARCHED} else []
    return rows


def _readers(work: AnswerPlan) -> dict[str, tuple[AnswerReader, int]]:
    """Return each reader with the number of systems that it reads from."""
    readers: dict[str, tuple[AnswerReader, int]] = {}
    for system in work.retrieval.systems:
        for reader in work.readers(system):
            readers[reader.card.spec] = reader, readers.get(reader.card.spec, (reader, 0))[1] + 1
    return readers


def _reader_needs(work: AnswerPlan, name: str, reader: AnswerReader, systems: int, size: Size) -> Needs:
    """Return the calls of a reader: a question for each query and condition."""
    calls = read = 0
    for condition in work.conditions:
        if condition == SEARCHED:
            continue  # the agent itself asks and answers
        questions = size.queries * (1 if condition in SAME_FOR_ALL else systems)
        passages = 0 if condition == "closed book" else work.passages
        calls += questions
        read += questions * (INSTRUCTION_TOKENS + size.query_tokens + passages * size.document_tokens)
    return llm_needs(f"{name} as reader", reader.card, work.runtime.setup, calls, read, (TRIES * calls, TRIES * read))


def _judge_needs(work: AnswerPlan, judged: Sequence[PlannedDataset]) -> Needs:
    """Return the calls of the judge: a grade for each answer, its nuggets, the sentences that cite, and controls."""
    setup, needs = work.runtime.setup, Needs(f"{work.judge} as judge")
    card = resolve_llm(work.judge, setup)
    tasks = 1
    for each in judged:
        has_nuggets = bool(work.nuggets or (each.dataset and nuggets_of(each.dataset)))
        tasks = max(tasks, 2 + has_nuggets)
        for _, (reader, systems) in _readers(work).items():
            needs += _grading(work, setup, reader, systems, each.size, has_nuggets)
    controls = CONTROLS * tasks
    most = TRIES * (CONTROLS + WARNING_CONTROLS) * tasks
    tokens = INSTRUCTION_TOKENS + typical_answer_tokens(card)
    return needs + llm_needs("", card, setup, controls, controls * tokens, (most, most * tokens))


def _grading(
    work: AnswerPlan, setup: Setup, reader: AnswerReader, systems: int, size: Size, has_nuggets: bool
) -> Needs:
    """Return the judge's calls about the answers of a reader."""
    card = resolve_llm(work.judge, setup)
    answers = cited = 0
    for condition in work.conditions:
        given = size.queries * (1 if condition in SAME_FOR_ALL else systems)
        answers += given
        cited += given if condition != "closed book" else 0
    tokens = INSTRUCTION_TOKENS + size.query_tokens + typical_answer_tokens(reader.card) + size.document_tokens
    calls = answers * (1 + has_nuggets) + cited * SENTENCES
    most = TRIES * (answers * (1 + has_nuggets) + cited * MAX_SENTENCES)
    return llm_needs("", card, setup, calls, calls * tokens, (most, most * tokens))


def _examples(work: AnswerPlan, dataset: Dataset) -> dict[str, ChatRequest]:
    """Return a request to each reader. Passages of another question stand for those that a system finds."""
    found = {
        f"{name} as reader": reader.example(work.questions(reader, dataset, None))
        for name, (reader, _) in _readers(work).items()
    }
    system = work.retrieval.systems[0]
    if SEARCHED in work.conditions:
        found[system.name] = system.retriever.example(dataset, system.runtime)
    return {name: request for name, request in found.items() if request is not None}

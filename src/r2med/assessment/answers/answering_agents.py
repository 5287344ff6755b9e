"""Systems that answer by themselves: a retriever that is an agent searches, opens documents, answers and cites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from r2med.assessment.answers.answer_options import lettered, options_of
from r2med.assessment.answers.answer_scores import is_right
from r2med.assessment.answers.browsecomp_figures import NO_CONFIDENCE, GradedFile, browsecomp_figures
from r2med.assessment.answers.reader import AnswerReader
from r2med.assessment.answers.reading import asked_queries
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.evaluation.records.answer_record import GivenAnswer
from r2med.evaluation.records.answer_words import SEARCHED, AnswerForm
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Command, Setting
from r2med.foundation.core.plan import Plan
from r2med.foundation.net.offline import planning
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.text.plurals import counted
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import LLMCard, find_llm
from r2med.systems.agents.agent_retriever import RankingStage
from r2med.systems.agents.agent_run import UNKNOWN_MODEL, AgentRun
from r2med.systems.agents.agent_run_files import AgentRunFile, file_of_trace
from r2med.systems.agents.expander import AgentStage
from r2med.systems.expand.expansion import AskingStage
from r2med.systems.system import System


def answering_system(system: System, without: Literal["", "relevant"] = "") -> System:
    """Return a system whose agent answers the question. Raises UserError if it is not an agent."""
    stage = system.retriever
    if isinstance(stage, RankingStage):
        return replace(system, retriever=stage.answering(without))
    if isinstance(stage, AgentRun):
        if without:
            raise UserError(f"{system.name} has searched already, so nothing can be hidden from it")
        return system
    writes = system.expander if isinstance(system.expander, AgentStage) else None
    form = f"{writes.name}-finds({writes.llm}, by=[{stage}])" if writes else "agent(LLM, by=[SYSTEM])"
    raise UserError(f"{system.name} is not an agent that searches, so it cannot answer by itself: write {form}")


def agent_reader(system: System, datasets: Sequence[Dataset], runtime: Runtime) -> AnswerReader:
    """Return the LLM of an agent that answers. That of others' files is the model which they name."""
    stage = system.retriever
    if isinstance(stage, RankingStage):
        return AnswerReader.open(stage.llm, runtime)
    assert isinstance(stage, AgentRun)
    models = (stage.read(dataset, runtime.store).model for dataset in datasets)
    name = next(filter(None, models), UNKNOWN_MODEL)
    card = find_llm(name, runtime.setup) or LLMCard(name=name, model=name)
    with planning():  # it is only named, and never asked, so it may be anywhere
        return AnswerReader(card, open_chat(card, runtime))


def check_conditions(systems: Sequence[System], conditions: Sequence[str]) -> None:
    """Raise UserError if an LLM that cannot be asked would have to answer in another condition."""
    others = [condition for condition in conditions if condition != SEARCHED]
    for system in systems:
        if others and isinstance(system.retriever, AgentRun):
            raise UserError(f"{system.name} has answers of the condition {SEARCHED} only, not of {others[0]}")


def agent_preview(system: System, dataset: Dataset) -> Plan:
    """Return what the conversations of an agent would cost. Nothing is asked."""
    if isinstance(system.retriever, AgentRun):
        return Plan(note="the answers are in the files; nothing is asked")
    return cast(AskingStage, system.bound_retriever).preview(dataset, system.runtime.store)


def agent_questions(dataset: Dataset, form: AnswerForm, limit: int) -> Dataset:
    """Return the dataset with the questions that an agent works on: all, the first ones, or those with options.

    An agent that answers in its own words works on all queries, also on those without a reference answer, so that its
    ranking is one of the whole dataset. Raises UserError if questions have no options.
    """
    if form == "open" and not limit:
        return dataset
    asked, others = asked_queries(dataset, limit), asked_queries(dataset)
    part = f"the first {counted(len(asked), 'question')}" if limit else ""
    if form == "choice":
        chosen = {query.id: options_of(query, others) for query in asked}
        asked = [with_options(query, chosen[query.id]) for query in asked if len(chosen[query.id]) > 1]
        part = f"{part or 'all questions'} with their options"
    if not asked:
        raise UserError(
            f"{dataset.name} has fewer than two different answers: ask with ", Command("answer", form="open")
        )
    labels: dict[str, Any] = {
        "qrels": Qrels({query.id: dataset.qrels[query.id] for query in asked}),
        "aspects": {query.id: dataset.aspects[query.id] for query in asked if query.id in dataset.aspects},
    }
    return replace(dataset, queries=tuple(asked), part=part, **labels)


def with_options(query: Query, options: Sequence[str]) -> Query:
    """Return a question with its options, as an agent is asked."""
    text = (
        f"{query.text}\n\nOptions:\n{lettered(options)}\n\nBegin the answer with the letter of one option, such as A."
    )
    return replace(query, text=text, options=tuple(options))


def check_forms(systems: Sequence[System], datasets: Sequence[Dataset], form: Callable[[Dataset], AnswerForm]) -> None:
    """Raise UserError if options are asked for, but an agent has answered in its own words."""
    for dataset in datasets if any(isinstance(system.retriever, AgentRun) for system in systems) else ():
        if form(dataset) == "choice":
            raise UserError(
                f"{dataset.name} asks for one of several options, but the files have answers in an agent's own words: "
                "give ",
                Setting("answer", form="open"),
            )


def run_files(system: System, dataset: Dataset, traces: Mapping[str, Sequence[Any]]) -> list[AgentRunFile]:
    """Return the run files of an agent: those that it left, or those that its conversations would be."""
    stage = system.retriever
    return list(stage.read(dataset, system.runtime.store).files) if isinstance(stage, AgentRun) else files_of(traces)


def files_of(traces: Mapping[str, Sequence[Any]]) -> list[AgentRunFile]:
    """Return conversations as run files."""
    return [AgentRunFile.parse(file_of_trace(query, own[0], "")) for query, own in traces.items() if own]


def figures_as_browsecomp(
    run: Sequence[AgentRunFile], dataset: Dataset, answers: Sequence[GivenAnswer], judged: bool
) -> dict[str, float]:
    """Return the figures of an agent as BrowseComp-Plus computes them; empty if a question has no judged document."""
    given = {each.query: each for each in answers if each.condition == SEARCHED}
    files = [file for file in run if file.query in given]
    first = {file.query: file for file in reversed(files)}
    graded = [_graded(file, given[file.query], judged, first[file.query]) for file in files]
    try:
        return browsecomp_figures(graded, {query: list(grades) for query, grades in dataset.qrels.items()})
    except UserError:
        return {}


def _graded(file: AgentRunFile, answer: GivenAnswer, judged: bool, first: AgentRunFile) -> GradedFile:
    """Return a file with the verdict of its answer. Of several files about a question only the first was judged."""
    if file.answer != first.answer:
        return GradedFile(file.query, file.is_completed, file.answer, file.retrieved, None, None, file.tool_calls)
    stated = answer.search.confidence if answer.search else None
    confidence = NO_CONFIDENCE if stated is None else 100 * stated
    verdict = is_right(answer, judged=judged)
    return GradedFile(file.query, file.is_completed, file.answer, file.retrieved, verdict, confidence, file.tool_calls)

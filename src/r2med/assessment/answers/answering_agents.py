"""Systems that answer by themselves: a retriever that is an agent searches, opens documents, answers and cites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from r2med.assessment.answers.answer_options import lettered, options_of
from r2med.assessment.answers.reader import AnswerReader
from r2med.assessment.answers.reading import asked_queries
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.evaluation.records.answer_words import AnswerForm
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.text.plurals import counted
from r2med.systems.agents.ranking_agent import RankingAgent
from r2med.systems.agents.writing_agent import WritingAgent
from r2med.systems.system import System


def answering_system(system: System, without: Literal["", "relevant"] = "") -> System:
    """Return a system whose agent answers the question. Raises UserError if it is not an agent."""
    stage = system.retriever
    if isinstance(stage, RankingAgent):
        return replace(system, retriever=stage.answering(without))
    writes = system.expander if isinstance(system.expander, WritingAgent) else None
    form = f"{writes.name}-finds({writes.llm}, by=[{stage}])" if writes else "agent(LLM, by=[SYSTEM])"
    raise UserError(f"{system.name} is not an agent that searches, so it cannot answer by itself: write {form}")


def agent_reader(system: System, runtime: Runtime) -> AnswerReader:
    """Return the LLM of an agent that answers."""
    return AnswerReader.open(cast(RankingAgent, system.retriever).llm, runtime)


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
        raise UserError(f"{dataset.name} has fewer than two different answers: ask with r2med answer --form open")
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

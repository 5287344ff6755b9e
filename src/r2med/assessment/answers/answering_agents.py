"""Systems that answer by themselves: a retriever that is an agent searches, opens documents, answers and cites."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

from r2med.data.dataset import Dataset
from r2med.evaluation.records.answer_words import AnswerForm
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.core.plan import Plan
from r2med.systems.agents.agent_retriever import RankingStage
from r2med.systems.agents.expander import AgentStage
from r2med.systems.expand.expansion import AskingStage
from r2med.systems.system import System


def answering_stage(system: System) -> RankingStage:
    """Return the agent of a system. Raises UserError if its retriever is not an agent."""
    if isinstance(system.retriever, RankingStage):
        return system.retriever
    writes = system.expander if isinstance(system.expander, AgentStage) else None
    form = f"{writes.name}-finds({writes.llm}, by=[{system.retriever}])" if writes else "agent(LLM, by=[SYSTEM])"
    raise UserError(f"{system.name} is not an agent that searches, so it cannot answer by itself: write {form}")


def answering_system(system: System, without: Literal["", "relevant"] = "") -> System:
    """Return a system whose agent answers the question. Raises UserError if it is not an agent."""
    return replace(system, retriever=answering_stage(system).answering(without))


def agent_preview(system: System, dataset: Dataset) -> Plan:
    """Return what the conversations of an agent would cost. Nothing is asked."""
    return cast(AskingStage, system.bound_retriever).preview(dataset, system.runtime.store)


def check_form(dataset: Dataset, form: AnswerForm) -> None:
    """Raise UserError if the questions of a dataset are choices: an agent answers in its own words."""
    if form == "choice":
        raise UserError(
            f"{dataset.name} asks for one of several options, but an agent answers in its own words: give ",
            Setting("answer", form="open"),
        )

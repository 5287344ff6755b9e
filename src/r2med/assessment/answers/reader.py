"""Ask a reader, through the journal, and turn its replies into answers with a status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.citations import cited_sentences, without_citations
from r2med.assessment.answers.reader_prompts import ReaderQuestion, as_sent, reader_question
from r2med.assessment.answers.reading import ReadPassages, random_passages, relevant_passages, retrieved_passages
from r2med.assessment.answers.remarks import remarks_on
from r2med.assessment.answers.stated_option import stated_option
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.records.answer_facts import GivenAnswer
from r2med.evaluation.records.answer_words import AnswerForm, AnswerStatus, Condition
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.ask.answers import OpenAnswer, WrittenChoice
from r2med.models.ask.ask import Tally, ask_json
from r2med.models.llm.chat import FROM_THE_MODEL, ChatRequest
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, resolve_llm, sampling_of

CUT_OFF = "truncated"
"""The failure of an answer that the LLM wrote until its token limit. A second one would cost as much and end there."""


@dataclass(frozen=True)
class ReaderAnswers:
    """An answer to each question, and what they cost."""

    given: list[GivenAnswer]
    cost: Cost
    costs: dict[Condition, Cost]
    """Condition -> cost of its questions."""


@dataclass(frozen=True)
class AnswerReader:
    """An LLM that answers questions."""

    card: LLMCard
    chat: JournaledChat
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def open(cls, name: str, runtime: Runtime) -> AnswerReader:
        """Return the reader of this name. Nothing is asked. Raises UserError if there is no such LLM."""
        card = resolve_llm(name, runtime.setup)
        return cls(card, open_chat(card, runtime))

    @property
    def varies(self) -> bool:
        """True if it can give another answer in another repeat."""
        return self.chat.varies(sampling_of(self.card).temperature)

    def about(self, *datasets: str) -> AnswerReader:
        """Return this reader for questions of some datasets. Saved answers get their labels."""
        return replace(self, chat=self.chat.about(*datasets))

    def questions(
        self,
        dataset: Dataset,
        queries: Sequence[Query],
        others: Sequence[Query],
        lists: Mapping[str, Sequence[str]],
        form: AnswerForm,
        conditions: Sequence[Condition],
        passages: int,
    ) -> list[ReaderQuestion]:
        """Return all questions about a dataset. `lists` is the ranking: query -> documents, best first.

        `others` are all queries with an answer, from which options are drawn.
        """
        found: list[ReaderQuestion] = []
        for query in queries:
            options = options_of(query, others) if form == "choice" else ()
            if form == "choice" and len(options) < 2:  # a choice without a wrong option is right by itself
                continue
            found += self._of_query(dataset, query, options, lists, conditions, passages)
        return found

    def _of_query(
        self,
        dataset: Dataset,
        query: Query,
        options: tuple[str, ...],
        lists: Mapping[str, Sequence[str]],
        conditions: Sequence[Condition],
        count: int,
    ) -> Iterator[ReaderQuestion]:
        def asked(condition: Condition, passages: ReadPassages) -> ReaderQuestion:
            return reader_question(self.card, query, condition, passages, options)

        retrieved = asked("retrieved", retrieved_passages(dataset, query, lists, count))
        for condition in conditions:
            match condition:
                case "closed book":
                    yield asked(condition, ReadPassages())
                case "retrieved":
                    yield retrieved
                case "relevant":
                    yield asked(condition, relevant_passages(dataset, query, count))
                case "random":
                    yield asked(condition, random_passages(dataset, query, retrieved.read.tokens))
                case "searched":
                    continue  # the agent itself asks and answers
                case other:
                    assert_never(other)

    def example(self, questions: Sequence[ReaderQuestion]) -> ChatRequest | None:
        """Return the first request with passages, or the first one if none has any."""
        fitting = sorted((each for each in questions if each.prompt.fits), key=lambda each: not each.read.documents)
        return fitting[0].prompt.request(self.card) if fitting else None

    def ask(self, questions: Sequence[ReaderQuestion]) -> ReaderAnswers:
        """Ask all questions."""
        prompts = {number: each.prompt for number, each in enumerate(questions)}
        asked = ask_json(self.chat, prompts, _read, self.tally, otherwise=_read_prose, final={CUT_OFF})
        given = [
            _given(as_sent(each, asked.prompts.get(number)), asked.outcomes.get(number), asked.failures.get(number, ""))
            for number, each in enumerate(questions)
        ]
        costs: dict[Condition, Cost] = {each.condition: NOTHING for each in questions}
        for number, each in enumerate(questions):
            costs[each.condition] += asked.costs.get(number, NOTHING)
        return ReaderAnswers(given, asked.cost, costs)


def _read(number: int, answer: OpenAnswer | WrittenChoice) -> str:
    return answer.choice if isinstance(answer, WrittenChoice) else answer.answer


def _read_prose(number: int, text: str) -> str | None:
    """Return an answer in prose. It is not asked again, because the reader has answered, if not in JSON."""
    return None if "{" in text else text.strip()


def _given(question: ReaderQuestion, reply: str | None, failure: str) -> GivenAnswer:
    answer = GivenAnswer(
        query=question.query.id,
        condition=question.condition,
        read=question.read.documents,
        cut=question.cut,
        tokens=question.tokens,
        options=question.options,
        status="answered",
    )
    if reply is None:
        return answer.model_copy(update={"status": failed_status(failure), "failure": failure})
    if question.options:
        return answer.model_copy(update=chosen(reply, question.options))
    return answer.model_copy(update=said(reply, question.query, question.read))


def chosen(text: str, options: Sequence[str]) -> dict[str, Any]:
    """Return the fields of an answer to a choice: the option that it states, or that it states none."""
    number = stated_option(without_citations(text), options)
    if number is None:
        return {"status": "no option", "text": text}
    return {"choice": number, "text": options[number]}


def said(text: str, query: Query, read: ReadPassages) -> dict[str, Any]:
    """Return the fields of an open answer: its text, its sentences with their citations, and remarks."""
    sentences = cited_sentences(text, read.documents, read.texts)
    return {"text": text, "sentences": sentences, "remarks": remarks_on(text, query.text, read.texts)}


def failed_status(failure: str) -> AnswerStatus:
    """Return the status of a question without an answer, from the kind of its failure."""
    if failure == "refused":
        return "refused"
    if failure == CUT_OFF:
        return "cut off"
    # What the model itself said is an answer, if not a usable one. All other failures are asked again by the next run.
    return "unreadable" if failure == "unreadable" or failure in FROM_THE_MODEL else "failed"

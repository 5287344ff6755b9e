"""Turn the conversations of an agent into answers: what it said, cited and believed, and how it got there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from r2med.assessment.answers.citations import cited_sentences, without_citations
from r2med.assessment.answers.reader import chosen, failed_status, said
from r2med.assessment.answers.reading import ReadPassages, passages_of
from r2med.assessment.panels.control_texts import names_answer
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.records.answer_facts import GivenAnswer, SearchFacts
from r2med.evaluation.records.answer_words import SEARCHED, AnswerForm, AnswerStatus, NamedBy
from r2med.foundation.core.cost import Cost
from r2med.models.llm.costs import dollars, is_priced
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.fitting import first_words
from r2med.systems.agents.agent_state import SHOWN_WORDS
from r2med.systems.agents.tools import confidence_of

MAX_NAME_WORDS = 8
"""A reference answer of more words is not a name that a query could contain."""
NOT_ANSWERED = "missing"
"""The failure of a question that an agent has no conversation about."""

_CONFIDENCE = re.compile(r"[\s(*_]*\bconfidence\b[\s*_:=]*(\d{1,3}(?:\.\d{1,9})?\s*%?)[\s)*_.]*$", re.IGNORECASE)

Trace = Mapping[str, Any]


@dataclass(frozen=True)
class AgentConversation:
    """The trace of a conversation, as far as it tells what became of documents."""

    trace: Trace

    @property
    def turns(self) -> list[Trace]:
        """The turns of the model."""
        return list(self.trace.get("turns", ()))

    @property
    def searches(self) -> list[list[str]]:
        """The documents of each search, in the order of the searches."""
        found = (turn.get("documents") for turn in self.turns)
        return [[str(hit["id"]) for hit in documents] for documents in found if documents is not None]

    @property
    def repeated(self) -> int:
        """Number of searches whose query was searched before, carried out or not."""
        queries = [" ".join(str(turn["query"]).casefold().split()) for turn in self.turns if turn.get("query")]
        return len(queries) - len(set(queries)) + self.refused

    @property
    def refused(self) -> int:
        """Number of searches that were not carried out, because their query had been searched."""
        return sum(turn.get("status") == "repeated" for turn in self.turns)

    def new_relevant(self, grades: Mapping[str, int]) -> Iterator[int]:
        """Yield, search by search, the number of relevant documents that no earlier search returned."""
        seen: set[str] = set()
        for documents in self.searches:
            relevant = {document for document in documents if grades.get(document, 0) > 0}
            yield len(relevant - seen)
            seen |= relevant

    def named(self, query: Query, dataset: Dataset) -> NamedBy | None:
        """Return how a query of the agent came to name the reference answer; None if none did.

        A reference that is not a name, or that the question contains, says nothing about the path. A model writes all
        calls of a turn before it sees the result of any of them.
        """
        if len(query.answer.split()) > MAX_NAME_WORDS or names_answer(query.text, query.answer):
            return None
        seen = shown = False
        for turn in self.turns:
            seen = seen if turn.get("further") else shown
            if names_answer(str(turn.get("query") or ""), query.answer):
                return "find" if seen else "guess"
            shown = shown or any(names_answer(text, query.answer) for text in _shown_texts(turn, dataset))
        return None


def _shown_texts(turn: Trace, dataset: Dataset) -> list[str]:
    """Return the texts of documents that the model was shown after a turn.

    Where it read them in a separate call, what stands in the conversation is its own text, so the documents count.
    """
    if turn.get("information") and not turn.get("analysis"):
        return [str(turn["information"])]
    if "shown" in turn:
        shown = [str(document) for document in turn["shown"]]
    else:
        shown = [str(hit["id"]) for hit in turn.get("documents") or ()]
    return [first_words(text, SHOWN_WORDS) for text in passages_of(dataset, shown).texts]


def searched_answer(
    query: Query, trace: Trace | None, dataset: Dataset, card: LLMCard | None, form: AnswerForm = "open"
) -> GivenAnswer:
    """Return the answer of an agent to one question, from the trace of its conversation; None if it has none.

    `card` is the agent's LLM, for its prices. A choice is the one of the query's options that the answer states.
    """
    options = query.options if form == "choice" else ()
    if trace is None:
        return GivenAnswer(query=query.id, condition=SEARCHED, status="failed", failure=NOT_ANSWERED, options=options)
    conversation = AgentConversation(trace)
    facts = search_facts(query, conversation, dataset, card)
    read = tuple(dict.fromkeys(document for documents in conversation.searches for document in documents))
    answer = GivenAnswer(
        query=query.id,
        condition=SEARCHED,
        read=read,
        tokens=facts.tokens,
        options=options,
        status="answered",
        search=facts,
    )
    failure = (trace.get("failure") or {}).get("kind", "")
    if failure:
        return _without_answer(answer, failure)
    text, confidence = without_confidence(str(trace.get("text", "")))
    if not without_citations(text):
        return _without_answer(answer, "empty")
    if facts.confidence is None:
        facts = facts.model_copy(update={"confidence": confidence})
    answer = answer.model_copy(update={"search": facts})
    passages = ReadPassages(read, passages_of(dataset, read).texts)
    if not options:
        return answer.model_copy(update=said(text, query, passages))
    sentences = cited_sentences(text, read, passages.texts)
    return answer.model_copy(update={**chosen(text, options), "sentences": sentences})


def _without_answer(answer: GivenAnswer, failure: str) -> GivenAnswer:
    """Return an answer that could not be read. It has no text, so it cites nothing."""
    facts = answer.search
    if facts and facts.steps.get("cited"):
        facts = facts.model_copy(update={"steps": {**facts.steps, "cited": ()}})
    return answer.model_copy(update={"status": searched_status(failure), "failure": failure, "search": facts})


def searched_status(failure: str) -> AnswerStatus:
    """Return the status of a conversation without an answer.

    An agent that fills the context of its LLM has done so itself. Asked again, it would do so again: it is wrong.
    """
    return "cut off" if failure == "context_length" else failed_status(failure)


def search_facts(query: Query, conversation: AgentConversation, dataset: Dataset, card: LLMCard | None) -> SearchFacts:
    """Return what an agent did before it answered."""
    total = conversation.trace.get("total") or {}
    read, wrote = int(total.get("prompt_tokens", 0)), int(total.get("completion_tokens", 0))
    steps = conversation.trace.get("steps") or {}
    return SearchFacts(
        steps={step: tuple(map(str, documents)) for step, documents in steps.items()},
        confidence=conversation.trace.get("confidence"),
        searches=int(total.get("searches", 0)) + conversation.refused,
        repeated=conversation.repeated,
        new_relevant=tuple(conversation.new_relevant(dataset.qrels.get(query.id, {}))),
        named=conversation.named(query, dataset),
        turns=int(total.get("turns", 0)),
        prompt_tokens=read,
        completion_tokens=wrote,
        dollars=dollars(card, read, wrote) if card and is_priced(card) else None,
        seconds=float(total.get("seconds", 0.0)),
    )


def without_confidence(text: str) -> tuple[str, float | None]:
    """Return a text without a confidence at its end, and that confidence, from 0 to 1; None if it has none."""
    match = _CONFIDENCE.search(text)
    if match is None:
        return text.strip(), None
    return text[: match.start()].strip(), confidence_of(match[1])


def agent_cost(answers: Sequence[GivenAnswer]) -> Cost:
    """Return what the LLM of an agent spent on some questions. It is a part of the cost of the search."""
    facts = [each.search for each in answers if each.search]
    unpriced = sum(each.turns for each in facts if each.dollars is None)
    return Cost(
        dollars=sum(each.dollars or 0.0 for each in facts),
        unpriced=unpriced,
        seconds=sum(each.seconds for each in facts),
        calls=sum(each.turns for each in facts),
        prompt_tokens=sum(each.prompt_tokens for each in facts),
        completion_tokens=sum(each.completion_tokens for each in facts),
    )


def searching_means(answers: Sequence[GivenAnswer]) -> dict[str, float]:
    """Return the means of what an agent did, over all questions that it worked on. Unknown values are left out."""
    facts = [each.search for each in answers if each.search]
    if not facts:
        return {}
    count, searches = len(facts), sum(each.searches for each in facts)
    known = [each.dollars for each in facts if each.dollars is not None]
    return {
        "searches": searches / count,
        "repeated": sum(each.repeated for each in facts) / count,
        **({"new_relevant": sum(sum(each.new_relevant) for each in facts) / searches} if searches else {}),
        "turns": sum(each.turns for each in facts) / count,
        "tokens": sum(each.tokens for each in facts) / count,
        **({"dollars": sum(known) / count} if len(known) == count else {}),
        "seconds": sum(each.seconds for each in facts) / count,
        "guess": sum(each.named == "guess" for each in facts) / count,
        "find": sum(each.named == "find" for each in facts) / count,
    }

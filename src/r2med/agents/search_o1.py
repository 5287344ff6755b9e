"""Search-o1: a reasoning model searches in the middle of its thoughts, and reads what was found in a call apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field

from r2med.agents.conversation import (
    WORDS,
    Agent,
    Answered,
    AwaitReading,
    AwaitSearch,
    Conversation,
    Hit,
    not_done,
)
from r2med.agents.expander import MAX_TOPK, MAX_TURNS, AgentStage
from r2med.agents.sources import title_and_text
from r2med.llm.chat import Failure, Message, RawAnswer
from r2med.llm.cleaning import clean
from r2med.llm.costs import approximate_tokens
from r2med.llm.llm_cards import AnswerStyle, LLMCard
from r2med.prompts.fitting import first_words, fit
from r2med.prompts.templates import Template, Templates

BEGIN_QUERY, END_QUERY = "<|begin_search_query|>", "<|end_search_query|>"
BEGIN_RESULT, END_RESULT = "<|begin_search_result|>", "<|end_search_result|>"

TOKENS = 8192
"""New tokens of a turn, where the LLM's card does not say."""
DOCUMENT_FIELDS = ("reasoning", "search", "passages")
"""What the template of reading documents may name."""

INFORMATION = "**Final Information**"
NOTHING = "No helpful information found."
LIMIT_REACHED = "The limit of searches is reached. Go on without searching."
ASKED_BEFORE = "This query was searched before: see the earlier result."
SEARCH_IS_OFF = "The search is closed: there is no room for more results. Finish with what is known."

_FINAL = re.compile(
    r"\*\*\s*Final Passage\s*:?\s*\*\*:?|^[ \t]*#+[ \t]*Final Passage[ \t]*:?[ \t]*$|^[ \t]*Final Passage[ \t]*(?::|$)",
    re.IGNORECASE | re.MULTILINE,
)
"""What the prompt asks to write before the text, and how models write it instead: as a heading, or without the stars.
One whose thoughts have an end of their own may leave it out."""
_QUERY = re.compile(f"{re.escape(BEGIN_QUERY)}((?:(?!{re.escape(BEGIN_QUERY)}).)*?){re.escape(END_QUERY)}", re.DOTALL)

ALL_STEPS = 4
LAST_STEPS = 3
"""So many steps are shown whole; of more, the first, the last three, and those with a query or a result. In the
original the numbers are one higher, but there the reasoning ends in an empty step, which counts."""


class SearchO1(AgentStage):
    """Let a reasoning LLM search in the middle of its thoughts, and read what is found in a call apart (Search-o1)."""

    prompt_fields: ClassVar[tuple[str, ...] | None] = ("query", "limit")
    drawn: ClassVar[Mapping[str, Any]] = {"temperature": 0.7, "top_p": 0.8, "top_k": 20}
    drawn_reading: ClassVar[Mapping[str, Any]] = {"repetition_penalty": 1.05}
    answer_style: ClassVar[AnswerStyle | None] = "think"

    name: str = "search-o1"
    turns: int = Field(15, ge=1, le=MAX_TURNS, description="turns of the LLM at most")
    topk: int = Field(10, ge=1, le=MAX_TOPK, description="documents of a search")
    searches: int = Field(10, ge=1, le=MAX_TURNS, description="searches at most")

    @property
    def most_calls(self) -> int:
        """How many calls of the LLM a conversation can take: its turns, and those in which documents are read."""
        return self.turns + min(self.searches, self.turns - 1)

    def turn_tokens(self, card: LLMCard) -> int:
        """Return how many tokens a turn may have."""
        return card.agent_max_tokens or min(TOKENS, card.max_tokens)

    def agent(self, templates: Templates, kind: str, card: LLMCard, room: int) -> Agent:
        """Return the agent for one kind of task."""
        reader = Reader(templates.template("search-o1-documents", fields=DOCUMENT_FIELDS), room)
        template = templates.template(self.name, kind)
        return SearchO1Agent(template, reader, card, self.turns, self.searches, self.via == "completion")


@dataclass(frozen=True)
class SearchO1Agent:
    """The loop of Search-o1."""

    template: Template
    reader: Reader
    card: LLMCard
    turns: int = 15
    searches: int = 10
    one_text: bool = False
    """Whether the transcript is one text that the model goes on with: thoughts that it closed then stay closed. In a
    chat every turn begins with thoughts of its own."""
    stop: tuple[str, ...] = (END_QUERY,)

    def start(self, question: str) -> Conversation:
        """Return the conversation before its first turn."""
        prompt = self.template.render({"query": question, "limit": str(self.searches)})
        return Conversation((Message("user", prompt),))

    def on_completion(self, conversation: Conversation, completion: RawAnswer) -> Conversation:
        """Return what follows from a turn, or from what the model made of documents."""
        if isinstance(conversation.state, AwaitReading):
            return self._after_reading(conversation, completion)
        text, query = last_query(completion.content, completion.finish_reason)
        after = conversation.with_turn(completion, text, query)
        if failure := not_done(completion):
            return after.waiting_for(failure)
        if not query:
            return after.waiting_for(self._final(conversation, text, completion))
        if conversation.search_off or len(after.turns) >= self.turns:
            why = "when the search was off" if conversation.search_off else f"in the last of {self.turns} turns"
            return after.waiting_for(Failure("no_marker", f"the model searched again {why}"))
        if after.searches >= self.searches:
            return after.with_message(result(LIMIT_REACHED), notice=LIMIT_REACHED)
        earlier = {turn.query.casefold() for turn in after.turns[:-1] if turn.documents is not None}
        if query.casefold() in earlier:
            return after.with_message(result(ASKED_BEFORE), notice=ASKED_BEFORE)
        return after.waiting_for(AwaitSearch(query))

    def on_documents(self, conversation: Conversation, documents: tuple[Hit, ...]) -> Conversation:
        """Return the conversation waiting for the documents to be read; where there are none, nobody need read."""
        reasoning = "".join(part.content for part in conversation.parts[1:])
        prompt, kept = self.reader.prompt(reasoning, conversation.turns[-1].query, documents)
        seen = conversation.with_last_turn(documents=documents, cut=kept < len(documents))
        return seen.waiting_for(AwaitReading(prompt)) if kept else _nothing(seen)

    def on_overflow(self, conversation: Conversation) -> Conversation:
        """Return the conversation with the search off, or its end; what cannot be read is as if nothing were found."""
        if isinstance(conversation.state, AwaitReading):
            return _nothing(conversation)
        return conversation.without_search(SEARCH_IS_OFF, result(SEARCH_IS_OFF))

    def _after_reading(self, conversation: Conversation, completion: RawAnswer) -> Conversation:
        information = final_information(completion)
        turn = replace(conversation.turns[-1].plus(completion), information=information, analysis=completion.content)
        return replace(conversation, turns=(*conversation.turns[:-1], turn)).with_message(result(information))

    def _final(self, before: Conversation, text: str, completion: RawAnswer) -> Answered | Failure:
        """Return what comes after the thoughts of the last turn; never the thoughts."""
        closed = self.one_text and any("</think>" in part.content for part in before.parts if part.role == "assistant")
        card = self.card.model_copy(update={"answer": "plain"}) if closed else self.card
        answer = clean(RawAnswer(text, "", completion.finish_reason), card, keep_cut=True)
        if isinstance(answer, Failure):
            return answer
        cut = answer.finish_reason == "length"
        marked = closed or card.answer != "plain" or "</think>" in text or _FINAL.search(answer.text)
        if cut and not marked:  # it may be nothing but thoughts
            return Failure("truncated", "the model reached its limit of tokens before its passage began")
        passage = _FINAL.split(answer.text)[-1].strip()
        if BEGIN_QUERY in passage or BEGIN_RESULT in passage:
            return Failure("no_marker", "the text ends within a search, not with a passage")
        return Answered(passage, cut) if passage else Failure("empty", "the passage is empty")


def last_query(text: str, finish_reason: str) -> tuple[str, str]:
    """Return a text up to its last query, and the query; where there is none, all of it and an empty string.

    Servers leave out the mark that they stopped at: it is put back. What a model wrote after a query that was not
    answered yet was made up.
    """
    if text.rfind(BEGIN_QUERY) > text.rfind(END_QUERY) and finish_reason != "length":
        text += END_QUERY
    queries = list(_QUERY.finditer(text))
    query = " ".join(queries[-1][1].split()) if queries else ""
    return (text[: queries[-1].end()], query) if query else (text, "")


def result(text: str) -> str:
    """Return a text as a result stands in the reasoning."""
    return f"\n\n{BEGIN_RESULT}{text}{END_RESULT}\n\n"


def _nothing(conversation: Conversation) -> Conversation:
    return conversation.with_message(result(NOTHING), information=NOTHING)


@dataclass(frozen=True)
class Reader:
    """Reason-in-documents: before results enter the reasoning, the model reads them in a call apart.

    It sees its earlier reasoning in short, what it searched for, and the documents, and writes down what helps.
    """

    template: Template
    room: int
    """Tokens that the prompt may have."""

    def prompt(self, reasoning: str, search: str, documents: Sequence[Hit]) -> tuple[str, int]:
        """Return the prompt, and how many documents are in it; where not all fit, the worst are left out."""
        blocks = list(entries(documents))

        def render(count: int) -> str:
            passages = "\n\n".join(blocks[:count])
            return self.template.render({"reasoning": shortened(reasoning), "search": search, "passages": passages})

        fitted = fit(render, approximate_tokens, self.room, 0, len(blocks))
        return fitted or (render(0), 0)


def entries(documents: Sequence[Hit]) -> Iterator[str]:
    """Yield each document as it stands in the prompt."""
    for number, hit in enumerate(documents, 1):
        title, text = title_and_text(hit.contents)
        yield f"Document {number}{f' ({title})' if title else ''}: {first_words(text, WORDS)}"


def shortened(reasoning: str) -> str:
    """Return reasoning in numbered steps, one a line of it; a long one without most of its middle."""
    lines = [line.strip() for line in reasoning.splitlines() if line.strip()]
    steps = [f"Step {number}: {line}" for number, line in enumerate(lines, 1)]
    if len(steps) <= ALL_STEPS:
        return "\n\n".join(steps)
    kept: list[str] = []
    for index, step in enumerate(steps):
        if index == 0 or index >= len(steps) - LAST_STEPS or BEGIN_QUERY in step or BEGIN_RESULT in step:
            kept.append(step)
        elif kept[-1] != "...":
            kept.append("...")
    return "\n\n".join(kept)


def final_information(completion: RawAnswer) -> str:
    """Return what the model found helpful; its thoughts about the documents are none of it."""
    text = completion.content.rpartition("</think>")[2]
    if INFORMATION not in text or "<think>" in text or completion.finish_reason != "stop":
        return NOTHING
    # One line, so that it stays one step of the reasoning.
    return " ".join(text.rpartition(INFORMATION)[2].strip().strip("`").split()) or NOTHING

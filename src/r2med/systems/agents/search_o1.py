"""Search-o1: a reasoning model searches in the middle of its thoughts. A separate call reads the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field

from r2med.models.llm.chat import Failure, Message, RawAnswer
from r2med.models.llm.cleaning import clean
from r2med.models.llm.costs import approximate_tokens
from r2med.models.llm.llm_cards import AnswerStyle, LLMCard
from r2med.models.prompts.fitting import first_words, fit
from r2med.models.prompts.templates import Template, Templates
from r2med.systems.agents.agent_stage import MAX_TOPK, MAX_TURNS, TaggedAgent
from r2med.systems.agents.agent_state import (
    SHOWN_WORDS,
    Agent,
    Answered,
    AwaitReading,
    AwaitSearch,
    Conversation,
    Hit,
    not_done,
)
from r2med.systems.agents.ranking_agent import RankingAgent
from r2med.systems.agents.sources import title_and_text
from r2med.systems.agents.writing_agent import WritingAgent

BEGIN_QUERY, END_QUERY = "<|begin_search_query|>", "<|end_search_query|>"
BEGIN_RESULT, END_RESULT = "<|begin_search_result|>", "<|end_search_result|>"

TURN_TOKENS = 8192
"""Maximum number of new tokens of a turn, unless the LLM's card says otherwise."""
DOCUMENT_FIELDS = ("reasoning", "search", "passages")
"""Fields of the template for reading documents."""

INFORMATION = "**Final Information**"
NOTHING = "No helpful information found."
LIMIT_REACHED = "The limit of searches is reached. Go on without searching."
ASKED_BEFORE = "This query was searched before: see the earlier result."
SEARCH_IS_OFF = "The search is closed: there is no room for more results. Finish with what is known."


def _marker(words: str) -> re.Pattern[str]:
    return re.compile(
        rf"\*\*\s*{words}\s*:?\s*\*\*:?|^[ \t]*#+[ \t]*{words}[ \t]*:?[ \t]*$|^[ \t]*{words}[ \t]*(?::|$)",
        re.IGNORECASE | re.MULTILINE,
    )


_FINAL_PASSAGE, _FINAL_ANSWER = _marker("Final Passage"), _marker("Final Answer")
"""The marker before the final text, in the forms that models use: bold as the prompt asks, a heading, or plain.
A model that marks the end of its thoughts may leave it out."""
_QUERY = re.compile(f"{re.escape(BEGIN_QUERY)}((?:(?!{re.escape(BEGIN_QUERY)}).)*?){re.escape(END_QUERY)}", re.DOTALL)

MAX_WHOLE_STEPS = 4
LAST_STEPS = 3
"""Up to `MAX_WHOLE_STEPS` steps are all shown. Of more steps, the first, the last `LAST_STEPS` and those with a query
or a result are shown. The numbers of the original are one higher, because there an empty last step counts too."""


class SearchO1Rules(TaggedAgent):
    """The limits and the rules of Search-o1."""

    author_sampling: ClassVar[Mapping[str, Any]] = {"temperature": 0.7, "top_p": 0.8, "top_k": 20}
    reading_sampling: ClassVar[Mapping[str, Any]] = {"repetition_penalty": 1.05}

    turns: int = Field(15, ge=1, le=MAX_TURNS, description="maximum number of turns of the LLM")
    topk: int = Field(10, ge=1, le=MAX_TOPK, description="number of documents that a search returns")
    searches: int = Field(10, ge=1, le=MAX_TURNS, description="maximum number of searches")

    @property
    def max_calls(self) -> int:
        """Maximum number of LLM calls in a conversation: its turns, and the calls that read documents."""
        return self.turns + min(self.searches, self.turns - 1)

    @property
    def max_searches(self) -> int:
        """Maximum number of searches in a conversation."""
        return self.searches

    @property
    def template_name(self) -> str:
        """The name of the prompt template."""
        return "search-o1-answer" if self.gives_answer else "search-o1"

    def turn_tokens(self, card: LLMCard) -> int:
        """Return the maximum number of tokens of a turn."""
        return card.agent_max_tokens or min(TURN_TOKENS, card.max_tokens)

    def agent(self, templates: Templates, kind: str, card: LLMCard, room: int) -> Agent:
        """Return the agent for one kind of task."""
        reader = Reader(templates.template("search-o1-documents", fields=DOCUMENT_FIELDS), room)
        template = templates.template(self.template_name, kind, fields=("query", "limit"))
        final = _FINAL_ANSWER if self.gives_answer else _FINAL_PASSAGE
        return SearchO1Agent(template, reader, card, self.turns, self.searches, self.via == "completion", final)


class SearchO1(SearchO1Rules, WritingAgent):
    """Let a reasoning LLM search in the middle of its thoughts. A separate call reads the documents (Search-o1)."""

    prompt_fields: ClassVar[tuple[str, ...] | None] = ("query", "limit")
    answer_style: ClassVar[AnswerStyle | None] = "think"

    name: str = "search-o1"


class SearchO1Finds(SearchO1Rules, RankingAgent):
    """Rank the documents that the searches of Search-o1 found, by reciprocal rank; those of the retriever follow."""

    name: str = "search-o1-finds"


@dataclass(frozen=True)
class SearchO1Agent:
    """The loop of Search-o1."""

    template: Template
    reader: Reader
    card: LLMCard
    turns: int = 15
    searches: int = 10
    one_text: bool = False
    """True if the transcript is one text that the model continues. Closed thoughts then stay closed. In a chat, every
    turn starts with new thoughts."""
    final: re.Pattern[str] = _FINAL_PASSAGE
    """The marker before the final text."""
    stop: tuple[str, ...] = (END_QUERY,)

    def start(self, question: str) -> Conversation:
        """Return the conversation before its first turn."""
        prompt = self.template.render({"query": question, "limit": str(self.searches)})
        return Conversation((Message("user", prompt),))

    def on_completion(self, conversation: Conversation, completion: RawAnswer) -> Conversation:
        """Return the conversation after a turn, or after the model has read documents."""
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
        """Return the conversation, which waits until the documents are read. Without documents it goes on at once."""
        reasoning = "".join(part.content for part in conversation.parts[1:])
        prompt, kept = self.reader.prompt(reasoning, conversation.turns[-1].query, documents)
        shown = tuple(hit.id for hit in documents[:kept])
        seen = conversation.with_last_turn(documents=documents, cut=kept < len(documents), shown=shown)
        return seen.waiting_for(AwaitReading(prompt)) if kept else _nothing(seen)

    def on_overflow(self, conversation: Conversation) -> Conversation:
        """Return the conversation with the search off, or its end. Documents that do not fit count as not found."""
        if isinstance(conversation.state, AwaitReading):
            return _nothing(conversation.with_last_turn(shown=()))
        return conversation.without_search(SEARCH_IS_OFF, result(SEARCH_IS_OFF))

    def _after_reading(self, conversation: Conversation, completion: RawAnswer) -> Conversation:
        information = final_information(completion)
        turn = replace(conversation.turns[-1].plus(completion), information=information, analysis=completion.content)
        return replace(conversation, turns=(*conversation.turns[:-1], turn)).with_message(result(information))

    def _final(self, before: Conversation, text: str, completion: RawAnswer) -> Answered | Failure:
        """Return the text after the thoughts of the last turn, never the thoughts themselves."""
        closed = self.one_text and any("</think>" in part.content for part in before.parts if part.role == "assistant")
        card = self.card.model_copy(update={"answer": "plain"}) if closed else self.card
        answer = clean(RawAnswer(text, "", completion.finish_reason), card, keep_cut=True)
        if isinstance(answer, Failure):
            return answer
        cut = answer.finish_reason == "length"
        marked = closed or card.answer != "plain" or "</think>" in text or self.final.search(answer.text)
        if cut and not marked:  # the text may consist of thoughts only
            return Failure("truncated", "the model reached its limit of tokens before its passage began")
        passage = self.final.split(answer.text)[-1].strip()
        if BEGIN_QUERY in passage or BEGIN_RESULT in passage:
            return Failure("no_marker", "the text ends within a search, not with a passage")
        return Answered(passage, cut) if passage else Failure("empty", "the passage is empty")


def last_query(text: str, finish_reason: str) -> tuple[str, str]:
    """Return a text up to its last query, and the query. Without a query, return the whole text and an empty string.

    A server leaves out the mark at which it stopped, so the mark is put back. The text after a query that was not yet
    answered is dropped, because the model made it up.
    """
    if text.rfind(BEGIN_QUERY) > text.rfind(END_QUERY) and finish_reason != "length":
        text += END_QUERY
    queries = list(_QUERY.finditer(text))
    query = " ".join(queries[-1][1].split()) if queries else ""
    return (text[: queries[-1].end()], query) if query else (text, "")


def result(text: str) -> str:
    """Return a text in the form of a search result inside the reasoning."""
    return f"\n\n{BEGIN_RESULT}{text}{END_RESULT}\n\n"


def _nothing(conversation: Conversation) -> Conversation:
    return conversation.with_message(result(NOTHING), information=NOTHING)


@dataclass(frozen=True)
class Reader:
    """Reason-in-documents: before results enter the reasoning, the model reads them in a separate call.

    The prompt shows the earlier reasoning in short, the search query and the documents. The model writes what helps.
    """

    template: Template
    room: int
    """Maximum number of tokens of the prompt."""

    def prompt(self, reasoning: str, search: str, documents: Sequence[Hit]) -> tuple[str, int]:
        """Return the prompt, and how many documents it holds. If not all fit, the last ones are left out."""
        blocks = list(entries(documents))

        def render(count: int) -> str:
            passages = "\n\n".join(blocks[:count])
            return self.template.render({"reasoning": shortened(reasoning), "search": search, "passages": passages})

        fitted = fit(render, approximate_tokens, self.room, 0, len(blocks))
        return fitted or (render(0), 0)


def entries(documents: Sequence[Hit]) -> Iterator[str]:
    """Yield each document in the form of the prompt."""
    for number, hit in enumerate(documents, 1):
        title, text = title_and_text(hit.contents)
        yield f"Document {number}{f' ({title})' if title else ''}: {first_words(text, SHOWN_WORDS)}"


def shortened(reasoning: str) -> str:
    """Return the reasoning as numbered steps, one for each line. Of a long reasoning most middle steps are left out."""
    lines = [line.strip() for line in reasoning.splitlines() if line.strip()]
    steps = [f"Step {number}: {line}" for number, line in enumerate(lines, 1)]
    if len(steps) <= MAX_WHOLE_STEPS:
        return "\n\n".join(steps)
    kept: list[str] = []
    for index, step in enumerate(steps):
        if index == 0 or index >= len(steps) - LAST_STEPS or BEGIN_QUERY in step or BEGIN_RESULT in step:
            kept.append(step)
        elif kept[-1] != "...":
            kept.append("...")
    return "\n\n".join(kept)


def final_information(completion: RawAnswer) -> str:
    """Return the helpful part that the model wrote, without its thoughts about the documents."""
    text = completion.content.rpartition("</think>")[2]
    if INFORMATION not in text or "<think>" in text or completion.finish_reason != "stop":
        return NOTHING
    # One line, so that the information is one step of the reasoning.
    return " ".join(text.rpartition(INFORMATION)[2].strip().strip("`").split()) or NOTHING

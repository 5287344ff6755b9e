"""Search-R1: the model thinks, searches with <search>, reads <information>, and ends with <answer>."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field

from r2med.models.llm.chat import Failure, Message, RawAnswer
from r2med.models.llm.cleaning import whole_sentences
from r2med.models.llm.llm_cards import AnswerStyle, LLMCard
from r2med.models.prompts.fitting import first_words
from r2med.models.prompts.templates import Template, Templates
from r2med.systems.agents.agent_stage import MAX_TOPK, MAX_TURNS, TaggedAgent
from r2med.systems.agents.agent_state import (
    SHOWN_WORDS,
    Agent,
    Answered,
    AwaitSearch,
    Conversation,
    Hit,
    no_answer,
    not_done,
)
from r2med.systems.agents.ranking_agent import RankingAgent
from r2med.systems.agents.sources import title_and_text
from r2med.systems.agents.writing_agent import WritingAgent

TURN_TOKENS = 1024
"""Maximum number of new tokens of a turn."""

_TAG = re.compile(r"<(?=/?\s*(information|answer|search|think)\b)", re.IGNORECASE)
_CLOSED = re.compile(r"</(search|answer)>")
_OPENED = re.compile(r"<(search|answer)>")
_ACTION = re.compile(r"<(search|answer)>((?:(?!<\1>).)*)</\1>$", re.DOTALL)

_NO_CONTENT = frozenset({"and", "query", "your query", "passage", "report", "result", "answer"})
"""Texts between tags that are only mentioned, as in "between <search> and </search>" or in our own prompts."""

RETRY = """\
That was no valid action. To look something up, I write the query as <search>query</search>. To finish, I write the \
result as <answer>result</answer>. I will try again."""
NOTHING_FOUND = "Nothing was found for this query."
SEARCH_IS_OFF = "The search is closed: there is no room for more documents. Give the answer now."


class SearchR1Rules(TaggedAgent):
    """The limits and the rules of Search-R1."""

    author_sampling: ClassVar[Mapping[str, Any]] = {"temperature": 0.7}

    turns: int = Field(
        4, ge=1, le=MAX_TURNS, description="number of turns of the LLM; one more follows with the search off"
    )
    topk: int = Field(3, ge=1, le=MAX_TOPK, description="number of documents that a search returns")

    @property
    def max_calls(self) -> int:
        """Maximum number of LLM calls in a conversation."""
        return self.turns + 1

    @property
    def max_searches(self) -> int:
        """Maximum number of searches in a conversation."""
        return self.turns

    @property
    def template_name(self) -> str:
        """The name of the prompt template."""
        return "search-r1-answer" if self.gives_answer else "search-r1"

    def turn_tokens(self, card: LLMCard) -> int:
        """Return the maximum number of tokens of a turn."""
        return min(TURN_TOKENS, card.max_tokens)

    def agent(self, templates: Templates, kind: str, card: LLMCard, room: int) -> Agent:
        """Return the agent for one kind of task."""
        return SearchR1Agent(templates.template(self.template_name, kind, fields=("query",)), self.turns)


class SearchR1(SearchR1Rules, WritingAgent):
    """Let an LLM think, search with <search>, read <information>, and end with <answer> (Search-R1)."""

    prompt_fields: ClassVar[tuple[str, ...] | None] = ("query",)
    answer_style: ClassVar[AnswerStyle | None] = "answer-tag"

    name: str = "search-r1"


class SearchR1Finds(SearchR1Rules, RankingAgent):
    """Rank the documents that the searches of Search-R1 found, by reciprocal rank; those of the retriever follow."""

    name: str = "search-r1-finds"


@dataclass(frozen=True)
class SearchR1Agent:
    """The loop of Search-R1's own inference: some turns, then one last turn with the search off."""

    template: Template
    turns: int = 4
    stop: tuple[str, ...] = ("</search>", "</answer>")

    def start(self, question: str) -> Conversation:
        """Return the conversation before its first turn."""
        return Conversation((Message("user", self.template.render({"query": question})),))

    def on_completion(self, conversation: Conversation, completion: RawAnswer) -> Conversation:
        """Return the conversation after the action at the end of the model's text."""
        text = cut(completion.content, completion.finish_reason)
        action, content = action_of(text)
        query = content if action == "search" else ""
        after = conversation.with_turn(completion, text, query)
        if failure := not_done(completion):
            return after.waiting_for(failure)
        if action == "answer":
            return after.waiting_for(Answered(content) if content else Failure("empty", "the answer is empty"))
        if conversation.search_off:
            if begun := answer_begun(text, completion.finish_reason):
                return after.waiting_for(Answered(begun, cut=True))
            done = "searched again" if query else "gave no answer"
            return after.waiting_for(no_answer(completion, f"the model {done} when the search was off"))
        if query:
            return after.waiting_for(AwaitSearch(query))
        return self._counted(after.with_message(f"\n{RETRY}\n", notice=RETRY))

    def on_documents(self, conversation: Conversation, documents: tuple[Hit, ...]) -> Conversation:
        """Return the conversation with the documents shown."""
        shown = listed(documents)
        ids = tuple(hit.id for hit in documents)
        extended = conversation.with_message(information(shown), documents=documents, information=shown, shown=ids)
        return self._counted(extended)

    def on_overflow(self, conversation: Conversation) -> Conversation:
        """Return the conversation with the search off, or its end."""
        return conversation.without_search(SEARCH_IS_OFF, information(SEARCH_IS_OFF))

    def _counted(self, conversation: Conversation) -> Conversation:
        return replace(conversation, search_off=len(conversation.turns) >= self.turns)


def cut(text: str, finish_reason: str) -> str:
    """Return a text up to its first closing tag. A server leaves out the tag at which it stopped, so it is put back."""
    if closed := _CLOSED.search(text):
        return text[: closed.end()]
    opened = list(_OPENED.finditer(text))
    return f"{text}</{opened[-1][1]}>" if opened and finish_reason != "length" else text


def action_of(text: str) -> tuple[str, str]:
    """Return the action at the end of a text, "search" or "answer", and its content; two empty strings without one."""
    match = _ACTION.search(text)
    action, content = (match[1], match[2].strip()) if match else ("", "")
    if action == "search":
        content = " ".join(content.split())
    if content.casefold() in _NO_CONTENT or (not content and action == "search"):
        return "", ""
    return action, content


def answer_begun(text: str, finish_reason: str) -> str:
    """Return the whole sentences of an answer that the token limit cut; otherwise an empty text."""
    opened = list(_OPENED.finditer(text))
    if finish_reason != "length" or not opened or opened[-1][1] != "answer":
        return ""
    before, content = text[: opened[-1].start()], text[opened[-1].end() :]
    if before.rfind("<think>") > before.rfind("</think>") or _CLOSED.search(content):  # the tag is inside the thoughts
        return ""
    kept = whole_sentences(content)
    return "" if kept.casefold() in _NO_CONTENT else kept


def information(text: str) -> str:
    """Return a text in the form that the model was trained to read, with its blank lines."""
    return f"\n\n<information>{text}</information>\n\n"


def _defused(text: str) -> str:
    """Return the text of a document with broken tags, so that a document cannot act as the model."""
    return _TAG.sub("< ", text)


def listed(documents: Sequence[Hit]) -> str:
    """Return the documents in the form that the models were trained to read."""
    lines = []
    for number, hit in enumerate(documents, 1):
        title, text = title_and_text(hit.contents)
        lines.append(_defused(f"Doc {number}(Title: {title}) {first_words(text, SHOWN_WORDS)}"))
    return "\n".join(lines) or NOTHING_FOUND

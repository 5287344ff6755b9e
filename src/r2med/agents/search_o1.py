"""Search-o1: a reasoning model searches in the middle of its thoughts, and reads what was found in a call apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

from r2med.agents.contracts import Answered, Conversation, Document, Failed, Look, Part, Read, Said
from r2med.agents.limits import declined, without_search
from r2med.agents.reason_in_documents import (
    BEGIN_QUERY,
    BEGIN_RESULT,
    END_QUERY,
    END_RESULT,
    NOTHING,
    Reader,
    final_information,
)
from r2med.llm.cleaning import clean
from r2med.llm.contracts import Failure, RawAnswer
from r2med.llm.llm_cards import LLMCard
from r2med.prompts.templates import Template

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


@dataclass(frozen=True)
class SearchO1:
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
        return Conversation((Part("user", prompt),))

    def wrote(self, conversation: Conversation, said: Said) -> Conversation:
        """Return what follows from a turn, or from what the model made of documents."""
        if isinstance(conversation.wait, Read):
            return self._read(conversation, said)
        text, query = last_query(said.text, said.finish_reason)
        after = conversation.said(said, text, query)
        if refusal := declined(said):
            return after.now(refusal)
        if not query:
            return after.now(self._final(conversation, text, said))
        if conversation.search_off or len(after.turns) >= self.turns:
            why = "when the search was off" if conversation.search_off else f"in the last of {self.turns} turns"
            return after.now(Failed("no_marker", f"the model searched again {why}"))
        if after.searches >= self.searches:
            return after.told(result(LIMIT_REACHED), notice=LIMIT_REACHED)
        if _plain(query) in {_plain(turn.query) for turn in after.turns[:-1] if turn.documents is not None}:
            return after.told(result(ASKED_BEFORE), notice=ASKED_BEFORE)
        return after.now(Look(query))

    def found(self, conversation: Conversation, documents: tuple[Document, ...]) -> Conversation:
        """Return the conversation waiting for the documents to be read; where there are none, nobody need read."""
        reasoning = "".join(part.text for part in conversation.parts[1:])
        prompt, kept = self.reader.prompt(reasoning, conversation.turns[-1].query, documents)
        seen = conversation.noted(documents=documents, cut=kept < len(documents))
        return seen.now(Read(prompt)) if kept else seen.told(result(NOTHING), information=NOTHING)

    def too_long(self, conversation: Conversation) -> Conversation:
        """Return the conversation with the search off, or its end; what cannot be read is as if nothing were found."""
        if isinstance(conversation.wait, Read):
            return conversation.told(result(NOTHING), information=NOTHING)
        return without_search(conversation, SEARCH_IS_OFF, result(SEARCH_IS_OFF))

    def _read(self, conversation: Conversation, said: Said) -> Conversation:
        information = final_information(said)
        turn = conversation.turns[-1].billed(said)
        bill = {name: getattr(turn, name) for name in ("prompt_tokens", "completion_tokens", "seconds")}
        return conversation.told(result(information), information=information, analysis=said.text, **bill)

    def _final(self, before: Conversation, text: str, said: Said) -> Answered | Failed:
        """Return what comes after the thoughts of the last turn; never the thoughts."""
        closed = self.one_text and any("</think>" in part.text for part in before.parts if part.role == "model")
        card = self.card.model_copy(update={"answer": "plain"}) if closed else self.card
        answer = clean(RawAnswer(text, "", said.finish_reason), card)
        if isinstance(answer, Failure):
            return Failed(answer.kind, answer.message)
        passage = _FINAL.split(answer.text)[-1].strip()
        if BEGIN_QUERY in passage or BEGIN_RESULT in passage:
            return Failed("no_marker", "the text ends within a search, not with a passage")
        return Answered(passage) if passage else Failed("empty", "the passage is empty")


def last_query(text: str, finish_reason: str) -> tuple[str, str]:
    """Return a text up to its last query, and the query; where there is none, all of it and an empty string.

    Servers leave out the mark that they stopped at: it is put back. What a model wrote after a query that was not
    answered yet was made up.
    """
    if text.rfind(BEGIN_QUERY) > text.rfind(END_QUERY) and finish_reason != "length":
        text += END_QUERY
    found = list(_QUERY.finditer(text))
    query = " ".join(found[-1][1].split()) if found else ""
    return (text[: found[-1].end()], query) if query else (text, "")


def result(text: str) -> str:
    """Return a text as a result stands in the reasoning."""
    return f"\n\n{BEGIN_RESULT}{text}{END_RESULT}\n\n"


def _plain(query: str) -> str:
    return query.casefold()

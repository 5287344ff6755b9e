"""Search-R1: the model thinks, asks in <search>, is shown <information>, and ends with <answer>."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from r2med.agents.contracts import Answered, Conversation, Document, Failed, Look, Part, Said
from r2med.agents.limits import WORDS, declined, no_answer, without_search
from r2med.prompts.fitting import first_words
from r2med.prompts.templates import Template
from r2med.retrieve.contents import title_and_text

TOKENS = 1024
"""New tokens of a turn."""

_CLOSED = re.compile(r"</(search|answer)>")
_OPENED = re.compile(r"<(search|answer)>")
_ACTION = re.compile(r"<(search|answer)>((?:(?!<\1>).)*)</\1>$", re.DOTALL)

_NO_CONTENT = frozenset({"and", "query", "your query", "passage", "report", "result", "answer"})
"""What stands between tags that are only talked of: "between <search> and </search>", or in our own prompts."""

RETRY = """\
That was no valid action. To look something up, I write the query as <search>query</search>. To finish, I write the \
result as <answer>result</answer>. I will try again."""
NOTHING_FOUND = "Nothing was found for this query."
SEARCH_IS_OFF = "The search is closed: there is no room for more documents. Give the answer now."


@dataclass(frozen=True)
class SearchR1:
    """The loop of Search-R1's own inference: so many turns, then one last generation with the search off."""

    template: Template
    turns: int = 4
    stop: tuple[str, ...] = ("</search>", "</answer>")

    def start(self, question: str) -> Conversation:
        """Return the conversation before its first turn."""
        return Conversation((Part("user", self.template.render({"query": question})),))

    def wrote(self, conversation: Conversation, said: Said) -> Conversation:
        """Return what follows from the action that the model's text ends with."""
        text = cut(said.text, said.finish_reason)
        action, content = action_of(text)
        query = content if action == "search" else ""
        after = conversation.said(said, text, query)
        if refusal := declined(said):
            return after.now(refusal)
        if action == "answer":
            return after.now(Answered(content) if content else Failed("empty", "the answer is empty"))
        if conversation.search_off:
            done = "searched again" if query else "gave no answer"
            return after.now(no_answer(said, f"the model {done} when the search was off"))
        if query:
            return after.now(Look(query))
        return self._counted(after.told(f"\n{RETRY}\n", notice=RETRY))

    def found(self, conversation: Conversation, documents: tuple[Document, ...]) -> Conversation:
        """Return the conversation with the documents shown."""
        shown = listed(documents)
        return self._counted(conversation.told(information(shown), documents=documents, information=shown))

    def too_long(self, conversation: Conversation) -> Conversation:
        """Return the conversation with the search off, or its end."""
        return without_search(conversation, SEARCH_IS_OFF, information(SEARCH_IS_OFF))

    def _counted(self, conversation: Conversation) -> Conversation:
        return replace(conversation, search_off=len(conversation.turns) >= self.turns)


def cut(text: str, finish_reason: str) -> str:
    """Return a text up to its first closing tag. Servers leave out the tag that they stopped at: it is put back."""
    if found := _CLOSED.search(text):
        return text[: found.end()]
    opened = list(_OPENED.finditer(text))
    return f"{text}</{opened[-1][1]}>" if opened and finish_reason != "length" else text


def action_of(text: str) -> tuple[str, str]:
    """Return (search or answer, its content), or two empty strings: what a text that was cut ends with."""
    found = _ACTION.search(text)
    action, content = (found[1], found[2].strip()) if found else ("", "")
    if action == "search":
        content = " ".join(content.split())
    if content.casefold() in _NO_CONTENT or (not content and action == "search"):
        return "", ""
    return action, content


def information(text: str) -> str:
    """Return a text as it is shown to the model, between the blank lines that it was trained with."""
    return f"\n\n<information>{text}</information>\n\n"


def listed(documents: Sequence[Document]) -> str:
    """Return documents as the models were trained to read them."""
    lines = []
    for number, document in enumerate(documents, 1):
        title, text = title_and_text(document.contents)
        lines.append(f"Doc {number}(Title: {title}) {first_words(text, WORDS)}")
    return "\n".join(lines) or NOTHING_FOUND

"""Prompts that fit the LLM: passages are cut first, then the draft, and the query never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.errors import UserError
from r2med.llm.chat import Failure, Message
from r2med.llm.costs import approximate_tokens, prompt_tokens
from r2med.llm.llm_cards import LLMCard
from r2med.prompts.templates import Template

NO_PASSAGES = "(none were found)"


@dataclass(frozen=True)
class Fitted:
    """A prompt, and whether something had to be left out of it."""

    messages: tuple[Message, ...]
    cut: bool = False


@dataclass(frozen=True)
class Fitter:
    """Fills templates within the context of one LLM. All it is given are strings: no field of a query but its text."""

    card: LLMCard
    system: str

    def __post_init__(self) -> None:
        if self.budget < 1:
            limits = f"its answers may take {self.card.max_tokens} tokens of a context of {self.card.context_length}"
            raise UserError(f"{self.card.name} has no room for a prompt: {limits}")

    @property
    def budget(self) -> int:
        """Tokens that a prompt may have, when the longest answer is to fit after it."""
        return self.card.context_length - self.card.max_tokens

    def fit(
        self, template: Template, query: str, examples: str = "", passages: Sequence[str] = (), draft: str = ""
    ) -> Fitted | Failure:
        """Return the prompt; a failure where not even the bare query fits."""

        system = [Message("system", self.system)] if self.system else []  # some servers refuse an empty one

        def messages(passages: str, draft: str) -> tuple[Message, ...]:
            values = {"query": query, "examples": examples, "passages": passages, "draft": draft}
            return *system, Message("user", template.render(values))

        bare = prompt_tokens(messages("", ""))
        if bare > self.budget:
            why = f"the question alone takes about {bare} tokens, {self.card.name} has {self.budget} for a prompt"
            return Failure("context_length", why, attempts=0)
        # Rounding up twice, once for each part, is a token at most.
        room = self.budget - bare - 2
        kept_draft = _start_of(draft, room)
        whole = "\n\n".join(f"[{number}] {passage}" for number, passage in enumerate(passages, 1)) or NO_PASSAGES
        whole = whole if template.names("passages") else ""
        kept = _start_of(whole, room - approximate_tokens(kept_draft))
        return Fitted(messages(kept, kept_draft), cut=kept_draft != draft or kept != whole)


def first_words(text: str, words: int) -> str:
    """Return the start of a text; white space is left as it is."""
    parts = text.split(maxsplit=words)
    return text if len(parts) <= words else text[: len(text) - len(parts[-1])].rstrip()


def _start_of(text: str, tokens: int) -> str:
    """Return as much of the start of a text as so many tokens hold, up to a word's end; the best passages are first."""
    if approximate_tokens(text) <= tokens:
        return text
    start = text.encode()[: max(tokens, 0) * 4].decode(errors="ignore")
    words, space, _ = start.rpartition(" ")
    return (words if space else start).rstrip()

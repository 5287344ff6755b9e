"""Fit prompts to the context of an LLM. Other parts are cut, but never the query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from r2med.foundation.core.errors import UserError
from r2med.models.llm.chat import Failure, Generation, Message
from r2med.models.llm.costs import approximate_tokens, prompt_tokens
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.templates import Template

NO_PASSAGES = "(none were found)"

MAX_SHORTENINGS = 10
"""Number of times that a prompt is shortened because a server finds it too long."""
UNKNOWN_SHARE = 0.85
"""Share of a prompt that is tried next if the server does not say by how much it was too long."""
MAX_SHARE = 0.98
"""Largest share that is tried next. The passages of a prompt have more tokens per byte than the rest of it."""

T = TypeVar("T")


def fit(
    render: Callable[[int], T], tokens: Callable[[T], int], room: int, least: int, most: int
) -> tuple[T, int] | None:
    """Return `render(size)` with the largest size from `least` to `most` that has room, and that size.

    Returns None if even the smallest does not fit. A larger size must not take fewer tokens.
    """
    if tokens(whole := render(most)) <= room:
        return whole, most
    if tokens(render(least)) > room:
        return None
    low, high = least, most  # low fits, high does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tokens(render(middle)) <= room else (low, middle)
    return render(low), low


@dataclass(frozen=True)
class Fitted:
    """A prompt, and True if something had to be left out of it."""

    messages: tuple[Message, ...]
    cut: bool = False
    text: str | None = None
    """A raw text that the model continues, in place of messages."""
    refit: Callable[[int], Fitted | Failure] | None = field(default=None, compare=False, repr=False)
    """Fits the prompt again, to fewer tokens. None: it cannot be shortened."""

    @property
    def tokens(self) -> int:
        """Estimated number of tokens."""
        return approximate_tokens(self.text) if self.text is not None else prompt_tokens(self.messages)

    def shorter(self, share: float) -> Fitted | None:
        """Return the prompt with this share of its tokens, or None if it cannot be shortened so far."""
        again = self.refit(int(self.tokens * share)) if self.refit else None
        return again if isinstance(again, Fitted) and again.tokens < self.tokens else None


def ask_fitted(
    prompts: Mapping[int, Fitted], ask: Callable[[Mapping[int, Fitted]], Sequence[Generation | Failure]]
) -> dict[int, tuple[Fitted, Generation | Failure]]:
    """Return each prompt as it was sent last, and its answer.

    Tokens are only estimated before a prompt is sent. A prompt that the server finds too long is shortened and sent
    again. `ask` answers prompts in their order.
    """
    answered: dict[int, tuple[Fitted, Generation | Failure]] = {}
    waiting = dict(prompts)
    for _ in range(MAX_SHORTENINGS + 1):
        if not waiting:
            break
        answered |= dict(zip(waiting, zip(waiting.values(), ask(waiting), strict=True), strict=True))
        shorter = {number: _shortened(*answered[number]) for number in waiting}
        waiting = {number: prompt for number, prompt in shorter.items() if prompt is not None}
    return answered


def _shortened(prompt: Fitted, answer: Generation | Failure) -> Fitted | None:
    """Return a shorter prompt, if the server found this one too long."""
    if not isinstance(answer, Failure) or answer.kind != "context_length":
        return None
    return prompt.shorter(min(answer.fits, MAX_SHARE) or UNKNOWN_SHARE)


@dataclass(frozen=True)
class Fitter:
    """Fills templates within the context of one LLM. It gets only strings, so no field of a query except its text."""

    card: LLMCard
    system: str

    def __post_init__(self) -> None:
        if self.room < 1:
            limits = f"its answers may take {self.card.max_tokens} tokens of a context of {self.card.context_length}"
            raise UserError(f"{self.card.name} has no room for a prompt: {limits}")

    @property
    def room(self) -> int:
        """Maximum number of tokens of a prompt that leaves room for the longest answer."""
        return self.card.context_length - self.card.max_tokens

    def fit(
        self, render: Callable[[int], str], least: int, most: int, smallest: str, room: int | None = None
    ) -> Fitted | Failure:
        """Return the prompt of the largest size that fits, or a failure if even the smallest does not fit.

        `render` returns the user's message for a size. `smallest` describes the smallest message, for the failure.
        `room` is the number of tokens, if it is smaller than that of the LLM.
        """
        room = self.room if room is None else room
        system = (Message("system", self.system),) if self.system else ()  # some servers refuse an empty message

        def messages(size: int) -> tuple[Message, ...]:
            return *system, Message("user", render(size))

        fitted = fit(messages, prompt_tokens, room, least, most)
        if fitted is None:
            needed = prompt_tokens(messages(least))
            why = f"{smallest} takes about {needed} tokens, {self.card.name} has {room} for a prompt"
            return Failure("context_length", why, attempts=0)
        refit = (lambda tokens: self.fit(render, least, most, smallest, tokens)) if least < most else None
        return Fitted(fitted[0], cut=fitted[1] < most, refit=refit)

    def fill(
        self,
        template: Template,
        query: str,
        examples: str = "",
        passages: Sequence[str] = (),
        draft: str = "",
        *,
        more: Mapping[str, str] | None = None,
    ) -> Fitted | Failure:
        """Return a filled template. The worst passages are cut first, then the other passages, then the draft.

        `more` are the values of further fields.
        """
        numbered = "\n\n".join(f"[{number}] {passage}" for number, passage in enumerate(passages, 1)) or NO_PASSAGES
        shown = numbered if template.names("passages") else ""
        of_draft = approximate_tokens(draft)

        def render(tokens: int) -> str:
            values = {"passages": start_of(shown, tokens - of_draft), "draft": start_of(draft, tokens)}
            return template.render({**(more or {}), "query": query, "examples": examples, **values})

        return self.fit(render, 0, of_draft + approximate_tokens(shown), "the question alone")


def first_words(text: str, words: int) -> str:
    """Return the start of a text with its white space unchanged."""
    parts = text.split(maxsplit=min(words, len(text)))
    return text if len(parts) <= words else text[: len(text) - len(parts[-1])].rstrip()


def start_of(text: str, tokens: int) -> str:
    """Return the start of a text that has at most this many tokens, up to the end of a word."""
    if approximate_tokens(text) <= tokens:
        return text
    start = text.encode()[: max(tokens, 0) * 4].decode(errors="ignore")
    words, space, _ = start.rpartition(" ")
    return (words if space else start).rstrip()

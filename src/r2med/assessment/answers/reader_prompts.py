"""Write the prompt of a reader. Passages are cut by tokens until the prompt fits the reader's window."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from r2med.assessment.answers.answer_options import lettered
from r2med.assessment.answers.reading import ReadPassages
from r2med.data.dataset import Query
from r2med.evaluation.records.answer_words import READ_CONDITIONS, AnswerForm, Condition
from r2med.foundation.store import digest
from r2med.models.ask.answers import LLMAnswer, OpenAnswer, written_choice_of
from r2med.models.ask.ask import SYSTEM, JsonQuestion, framed_fields
from r2med.models.llm.chat import Failure, Message
from r2med.models.llm.costs import approximate_tokens, prompt_tokens
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.fitting import NO_PASSAGES, Fitted, Fitter, fit, start_of
from r2med.models.prompts.templates import Template, packaged_template

MIN_PASSAGE_TOKENS = 60
"""A passage is not cut below this number of tokens. The last passages are left out instead."""


@dataclass(frozen=True)
class ReaderPrompt(Fitted):
    """The prompt of a reader, and the passages that it shows."""

    read: ReadPassages = field(default_factory=ReadPassages)
    cut_passages: int = 0
    """Number of passages that were shortened or left out."""


@dataclass(frozen=True)
class ReaderQuestion:
    """One question to a reader: the query, what the reader reads, and the prompt."""

    query: Query
    condition: Condition
    options: tuple[str, ...]
    read: ReadPassages
    """The passages as they are shown."""
    cut: int
    """Number of passages that were shortened or left out."""
    prompt: JsonQuestion

    @property
    def tokens(self) -> int:
        """About how many tokens the prompt has; 0 if it does not fit."""
        prompt = self.prompt.prompt
        return prompt_tokens(prompt.messages) if isinstance(prompt, Fitted) else 0


def reader_question(
    card: LLMCard,
    query: Query,
    condition: Condition,
    passages: ReadPassages,
    options: tuple[str, ...] = (),
    room: int | None = None,
) -> ReaderQuestion:
    """Return the question, with as many and as long passages as fit. `options` make it a choice.

    `room` is the number of tokens of the prompt, if it is smaller than that of the LLM.
    """
    template = reader_template("choice" if options else "open", condition)
    room = Fitter(card, SYSTEM).room if room is None else room
    answer: type[LLMAnswer] = written_choice_of(len(options)) if options else OpenAnswer
    shown = passages

    def messages(size: int) -> tuple[Message, ...]:
        fields = {"question": query.text, "options": lettered(options), "text": _numbered(shown, size)}
        return Message("system", SYSTEM), Message("user", template.render(framed_fields(fields)))

    while True:
        longest = max(map(approximate_tokens, shown.texts), default=0)
        fitted = fit(messages, prompt_tokens, room, min(longest, MIN_PASSAGE_TOKENS), longest)
        if fitted is not None or not shown.texts:
            break
        shown = shown.first(len(shown.texts) - 1)
    if fitted is None:
        needed = prompt_tokens(messages(0))
        why = f"the question alone takes about {needed} tokens, {card.name} has {room} for a prompt"
        unfit = Failure("context_length", why, attempts=0)
        return ReaderQuestion(
            query, condition, options, ReadPassages(), len(passages.texts), JsonQuestion(unfit, answer)
        )
    prompt, size = fitted
    read = ReadPassages(shown.documents, tuple(start_of(text, size) for text in shown.texts))
    whole = sum(a == b for a, b in zip(read.texts, passages.texts, strict=False))
    cut = len(passages.texts) - whole

    def refit(tokens: int) -> Fitted | Failure:
        return reader_question(card, query, condition, passages, options, tokens).prompt.prompt

    shown_prompt = ReaderPrompt(prompt, cut > 0, refit=refit, read=read, cut_passages=cut)
    return ReaderQuestion(query, condition, options, read, cut, JsonQuestion(shown_prompt, answer))


def as_sent(question: ReaderQuestion, sent: Fitted | None) -> ReaderQuestion:
    """Return a question with the prompt that was sent last, which may be shorter than the first one."""
    if not isinstance(sent, ReaderPrompt) or sent is question.prompt.prompt:
        return question
    prompt = replace(question.prompt, prompt=sent)
    return replace(question, read=sent.read, cut=sent.cut_passages, prompt=prompt)


def _numbered(passages: ReadPassages, size: int) -> str:
    texts = (start_of(text, size) for text in passages.texts)
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1)) or NO_PASSAGES


def reader_template(form: AnswerForm, condition: Condition) -> Template:
    """Return the prompt of a form. Without passages, it does not speak of any."""
    match condition:
        case "closed book":
            name = f"{form}-closed-book"
        case "retrieved" | "relevant" | "random":
            name = form
        case "searched":
            raise ValueError("an agent that searches has prompts of its own")
        case other:
            assert_never(other)
    return packaged_template("r2med.assessment.answers", name)


def prompts_digest(form: AnswerForm) -> str:
    """Return a digest of the prompts of a form."""
    texts = dict.fromkeys(reader_template(form, condition).text for condition in READ_CONDITIONS)
    return digest([SYSTEM, *texts])[:12]

"""The prompts of LLM rerankers: turns of a conversation or one raw text, in the layout that a card declares.

A prompt file holds its turns after lines such as <<system>>, <<user>> and <<assistant>>. The turns after <<each user>>
and <<each assistant>> are repeated for every passage. <<completion>> is one text that the model continues, without a
chat template. A file without such a line is one turn of the user.

No text of a query or a passage can open or close a tag of its card's layout, or write a special token of the model. If
a prompt is too long for the LLM, all passages are cut to the same length. The query is cut only where a card says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources.abc import Traversable
from typing import Literal, assert_never

from r2med.foundation.core.errors import UserError
from r2med.models.llm.chat import Failure, Message
from r2med.models.llm.costs import approximate_tokens
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.fitting import Fitted, Fitter, fit
from r2med.models.prompts.templates import Template, open_templates
from r2med.systems.rerank.llm_answers import passage_labels
from r2med.systems.rerank.llm_reranker_cards import Limit, LLMRerankerCard, Unit
from r2med.systems.rerank.reranking import query_text
from r2med.systems.retrieve.retriever import SearchQuery

FIELDS = ("query", "passages", "count", "passage", "number")
MIN_PASSAGE_WORDS = 20
"""Minimum number of words that show what a passage is about."""
EMPTY_PASSAGE = "(no text)"
NO_LIMIT = Limit(most=1_000_000, unit="characters")

TURN_LINE = re.compile(r"^<<[^<>\n]*>>[^\S\n]*$", re.MULTILINE)
"""A line that begins a turn, or is meant to."""

_TURN = re.compile(r"^<<(system|user|assistant|each user|each assistant|completion)>>$", re.MULTILINE)
_BRACKETED = re.compile(r"\[(\d+)\]")
_TAG = re.compile(r"</?([A-Za-z]\w*)")
# The beginning of what some servers read as a special token, or a model as the end of its thought.
_SPECIAL = r"<(?=\||/?s>|/?think>)|\[(?=/?INST\])"
_PER_WORD: dict[Unit, float] = {"words": 1.0, "tokens": 4 / 3, "characters": 16 / 3}

Role = Literal["system", "user", "assistant", "completion"]


@dataclass(frozen=True)
class Turn:
    """One turn of a prompt file."""

    role: Role
    template: Template
    each: bool = False
    """True if it is repeated for every passage."""


@dataclass(frozen=True)
class Question:
    """Passages of a query to show in one call. It contains only text and scores, no other field of the query."""

    query: str
    """The query as the prompt shows it."""
    passages: tuple[str, ...]
    hints: tuple[float, ...] = ()
    """Scores of the previous stage, if the prompt shows them."""
    sample: int = 0
    thought: str | None = None
    """The text that the model wrote before, if it continues one text."""


@dataclass(frozen=True)
class RerankPrompts:
    """The turns of a prompt file for one kind of task, and the layout that a card declares for them."""

    card: LLMRerankerCard
    turns: tuple[Turn, ...]
    limit: Limit
    """How much of a passage is shown at most."""
    digest: str

    @property
    def is_raw(self) -> bool:
        """True if the model continues a raw text, without a chat template."""
        return any(turn.role == "completion" for turn in self.turns)

    @property
    def size(self) -> int:
        """The largest size of a passage, in the unit of the limit."""
        return self.limit.most

    def query(self, asked: SearchQuery, which: str) -> str:
        """Return a query as the prompt shows it, with its generated text if `which` is "expanded"."""
        if self.card.expanded and query_text(asked, which) != asked.query.text:
            query, generated = self._query(asked.query.text), "\n\n".join(text.strip() for text in asked.generated)
            return _filled(self.card.expanded, query=query, generated=self._plain(generated))
        return self._query(query_text(asked, which))

    def _query(self, text: str) -> str:
        return _filled(self.card.query, text=self._plain(_cut(text.strip(), self.card.query_limit or NO_LIMIT)))

    def shortened(self, text: str, size: int) -> str:
        """Return the part of a passage that is shown."""
        text = " ".join(text.split()) if self.card.one_line else text.strip()
        return _cut(text, self.limit.model_copy(update={"most": min(size, self.limit.most)}))

    def fitted(self, question: Question, llm: LLMCard, size: int, room: int | None = None) -> Fitted | Failure:
        """Return the prompt of a question. All passages are cut to one length if it would not fit the LLM.

        `room` is the number of tokens of the prompt, if it is smaller than that of the LLM.
        """
        room = Fitter(llm, system="").room if room is None else room
        # Without a limit, sizes are counted up to the longest passage.
        most = min(size, max((len(passage) for passage in question.passages), default=0) or 1)
        least = min(most, round(MIN_PASSAGE_WORDS * _PER_WORD[self.limit.unit]))
        found = fit(lambda size: self._rendered(question, size), lambda prompt: prompt.tokens, room, least, most)
        if found is None:
            needed = self._rendered(question, least).tokens
            smallest = f"a query with {least} {self.limit.unit} of each of {len(question.passages)} passages"
            why = f"{smallest} takes about {needed} tokens, {llm.name} has {room} for a prompt"
            return Failure("context_length", why, attempts=0)
        rendered, chosen = found
        thought = question.thought or ""
        if thought:
            rendered = replace(rendered, text=f"{rendered.text}{thought}")

        def refit(tokens: int) -> Fitted | Failure:
            return self.fitted(question, llm, size, tokens - approximate_tokens(thought))

        return replace(rendered, cut=chosen < most, refit=refit)

    def _rendered(self, question: Question, size: int) -> Fitted:
        texts = [self._plain(self.shortened(text, size)) or EMPTY_PASSAGE for text in question.passages]
        names = passage_labels(self.card, len(texts))
        values = {
            "query": question.query,
            "passages": self._listed(names, texts, question.hints),
            "count": str(len(texts)),
        }
        numbered = [{"number": name, "passage": text} for name, text in zip(names, texts, strict=True)]
        turns = [(turn.role, text) for turn, text in self._filled_turns(values, numbered)]
        if turns[0][0] == "completion":
            return Fitted((), text=turns[0][1])
        return Fitted(tuple(Message(role, text) for role, text in turns if role != "completion"))

    def _listed(self, names: Sequence[str], texts: Sequence[str], hints: Sequence[float]) -> str:
        """Return all passages one after the other. With hints, each is shown with its score."""
        layout = self.card.scored if hints and self.card.scored else self.card.passage
        scores = [f"{hint:.2f}" for hint in hints] or [""] * len(texts)
        head = [self.card.scored_head] if hints and self.card.scored_head else []
        shown = (
            _filled(layout, number=name, text=text, score=score)
            for name, text, score in zip(names, texts, scores, strict=True)
        )
        return self.card.separator.join([*head, *shown])

    def _filled_turns(self, values: dict[str, str], passages: Sequence[dict[str, str]]) -> Iterator[tuple[Turn, str]]:
        """Yield all turns; neighbouring turns that are repeated go through the passages together."""
        waiting: list[Turn] = []
        for turn in [*self.turns, None]:
            if turn is not None and turn.each:
                waiting.append(turn)
                continue
            for passage in passages if waiting else ():
                yield from ((repeated, repeated.template.render({**values, **passage})) for repeated in waiting)
            waiting = []
            if turn is not None:
                yield turn, turn.template.render({**values, "passage": "", "number": "", **(passages or [{}])[0]})

    def _plain(self, text: str) -> str:
        layouts = (self.card.query, self.card.expanded, self.card.passage, self.card.scored)
        text = _shielded(frozenset(_TAG.findall("".join(layouts)))).sub("‹", text)
        return _BRACKETED.sub(r"(\1)", text) if self.card.brackets == "round" else text


@cache
def _shielded(tags: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of what a text must not write: special tokens, and the beginning of these tags."""
    of_layout = rf"|<(?=\s*/?\s*(?:{'|'.join(sorted(tags))})\b)" if tags else ""
    return re.compile(f"{_SPECIAL}{of_layout}", re.IGNORECASE)


def open_prompts(card: LLMRerankerCard, kind: str, folder: Traversable | None = None, words: int = 0) -> RerankPrompts:
    """Return the prompts of a card for a kind of task. Files of a prompt set replace those of plugins and of r2med.

    `words` replaces the card's limit of a passage. Raises UserError if the prompt file is missing or wrong.
    """
    templates = open_templates(folder, [kind])
    template = templates.template(card.template, kind, FIELDS)
    if not (template.names("passages") or template.names("passage")):
        raise UserError(
            f"{template.file}: the template does not contain {{passages}}, so the model would see no passages"
        )
    turns = tuple(_turns(template))
    if card.system and turns[0].role not in ("system", "completion"):
        system = templates.template(card.system, fields=())
        turns = (Turn("system", system), *turns) if system.text else turns  # some servers refuse an empty message
    if any(turn.role == "completion" for turn in turns) and len(turns) > 1:
        raise UserError(f"{template.file}: <<completion>> is one text: the file has other turns beside it")
    if card.answer == "true-false" and turns[0].role != "completion":
        raise UserError(f"{template.file}: {card.name} continues one raw text: begin the file with <<completion>>")
    return RerankPrompts(card, turns, card.limit(kind, words) or NO_LIMIT, templates.digest)


def _turns(template: Template) -> Iterator[Turn]:
    for heading in TURN_LINE.findall(template.text):
        if not _TURN.fullmatch(heading):
            turns = "<<system>>, <<user>>, <<assistant>>, <<each user>>, <<each assistant>> or <<completion>>"
            raise UserError(f"{template.file}: {heading} is not a turn: write {turns}")
    parts = _TURN.split(template.text)
    if len(parts) == 1:
        yield Turn("user", template)
        return
    if parts[0].strip():
        raise UserError(f"{template.file}: the text before its first turn belongs to no turn: begin with <<user>>")
    for head, text in zip(parts[1::2], parts[2::2], strict=True):
        each, _, role = head.rpartition(" ")
        # The end of a raw text counts: the model continues right after it. A last line break is the file's.
        body = text.removeprefix("\n").removesuffix("\n") if role == "completion" else text.strip()
        yield Turn(role, Template(template.file, body), bool(each))  # type: ignore[arg-type]


def _filled(form: str, **values: str) -> str:
    return Template("", form).render(values)


def _cut(text: str, limit: Limit) -> str:
    """Return the beginning of a text within a limit; tokens are cut at a word's end."""
    match limit.unit:
        case "characters":
            return text[: limit.most]
        case "words":
            return _capped(" ".join(text.split(" ")[: limit.most]), limit)
        case "tokens":
            if approximate_tokens(text) <= limit.most:
                return text
            start = text.encode("utf-8", "replace")[: limit.most * 4].decode("utf-8", "ignore")
            return start.rpartition(" ")[0] or start
        case other:
            assert_never(other)


def _capped(text: str, limit: Limit) -> str:
    """Return the beginning of a text that has at most as many characters as its limit of words allows."""
    most = limit.most * limit.word_characters if limit.word_characters else len(text)
    if len(text) <= most:
        return text
    return text[:most].rpartition(" ")[0] or text[:most]

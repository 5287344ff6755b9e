"""From what a model wrote to what it answered: the reasoning apart, and no reasoning ever taken for an answer.

The same for answers that are asked for and for texts that were recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from r2med.llm.chat import Failure, Generation, RawAnswer, finish_reason
from r2med.llm.llm_cards import AnswerStyle, Cleaning, LLMCard
from r2med.text.unicode import to_unicode

VERSION = 4
"""Goes into the record: raw answers are what is journaled, so a change here changes texts without a call."""

_OPEN = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSE = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_CHANNEL = "<|channel|>"  # gpt-oss, where a server does not parse it
_FINAL_CHANNEL = "<|channel|>final<|message|>"
# A heading or bold line, or a line of the words, a colon or nothing; not the words inside a sentence of reasoning.
_FINAL = re.compile(
    r"^[ \t>]*(?:\#+[ \t]*|\*\*|__)+final[ \t]response(?:\*\*|__)?[ \t]*:?[ \t]*(?:\*\*|__)?(?:[ \t]*\#+[ \t]*$)?"
    r"|^[ \t]*final[ \t]response(?:\*\*|__)?[ \t]*(?::(?:\*\*|__)?|$)",
    re.IGNORECASE | re.MULTILINE,
)
_PUBLISHED_FINAL = re.compile(r"Final Response")  # the benchmark's: anywhere, in this spelling
_OPEN_ANSWER = re.compile(r"<answer>", re.IGNORECASE)
_CLOSE_ANSWER = re.compile(r"</answer>", re.IGNORECASE)
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<(?:answer|search)>", re.IGNORECASE)
_THINKING_HEADING = re.compile(r"^\s*\#+[ \t]*thinking[ \t]*:?\s*", re.IGNORECASE)
# A stop after a letter, a digit or a bracket, perhaps a quote, before white space: also "kg." and "e.g.", which is a
# sentence's end too seldom to matter for where a cut text ends.
_SENTENCE_END = re.compile(r"[\w)\]%][.!?]+[\"'”’)\]]*(?=\s|$)|[。！？][”’」）]*")


@dataclass(frozen=True)
class Parts:
    """A text taken apart."""

    reasoning: str
    answer: str


def clean(raw: RawAnswer, card: LLMCard, *, keep_cut: bool = False) -> Generation | Failure:
    """Return the answer in a model's output, or why there is none.

    With `keep_cut`, an answer that was cut at its token limit is kept up to its last whole sentence.
    """
    content, reasoning = to_unicode(raw.content), to_unicode(raw.reasoning)
    ended = finish_reason(raw.finish_reason)
    if ended == "refusal":
        words = " ".join(content.split())[:200]
        return Failure.of(raw, "refused", f"{card.name} declined to answer{f': {words}' if words else ''}")
    cut = ended == "length"
    if cut and not keep_cut:
        return Failure.of(raw, "truncated", f"{card.name} reached its limit of tokens before it was done")
    if ended not in ("stop", "length"):
        return Failure.of(
            raw, "unfinished", f"{card.name} ended its answer for another reason than being done ({ended})"
        )
    style = _style(card, content, reasoning)
    parts = _split(content, style, card.cleaning, cut)
    if parts is None:
        if cut:
            return Failure.of(raw, "truncated", f"{card.name} reached its limit of tokens before its answer began")
        return Failure.of(raw, "no_marker", f"{card.name} ended without {_MARKERS[style]}")
    answer = whole_sentences(parts.answer) if cut else parts.answer.strip()
    if not answer:
        thought = " but reasoning" if reasoning.strip() or parts.reasoning.strip() else ""
        return Failure.of(raw, "truncated" if cut else "empty", f"{card.name} wrote nothing{thought}")
    whole = "\n\n".join(filter(None, (reasoning.strip(), parts.reasoning.strip())))
    return Generation(
        answer,
        whole,
        "length" if cut else "stop",
        raw.prompt_tokens,
        raw.completion_tokens,
        raw.seconds,
        raw.first_choices,
        raw.last_tokens,
    )


def recorded_answers(
    texts: Sequence[str], style: AnswerStyle = "plain", cleaning: Cleaning = "strict"
) -> list[str | None]:
    """Return the answers in the recorded texts of one file, which may have been cleaned before; None: there is none.

    `style` is how the LLM's card says that it marks its answers, if it has a card. A file is taken as the model wrote
    it where most texts have the marker (where any has it, the published way); one without it is then reasoning that was
    cut off. In a file that has none, the texts are answers already.
    """
    written = [text for text in texts if text.strip()]
    enough = 0 if cleaning == "published" else len(written) / 2
    styles: tuple[AnswerStyle, ...] = (style, "think", "final-response")
    marks = _PUBLISHED_MARKS if cleaning == "published" else _MARKS
    marked = {each: sum(bool(marks[each].search(text)) for text in written) for each in styles if each != "plain"}
    of_file: AnswerStyle = next((each for each, count in marked.items() if count > enough), "plain")
    parts = [_split(to_unicode(text), _recorded_style(text, style, of_file), cleaning, cut=False) for text in texts]
    return [None if part is None else part.answer.strip() for part in parts]


def _recorded_style(text: str, style: AnswerStyle, of_file: AnswerStyle) -> AnswerStyle:
    # A search agent's text with a tag in it was never cleaned, whatever the others are.
    return "answer-tag" if style == "answer-tag" and _TAG.search(text) else of_file


def whole_sentences(text: str) -> str:
    """Return a text up to the end of its last whole sentence; up to its last whole word if there is none."""
    text = text.strip()
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    if ends:
        return text[: ends[-1]].rstrip()
    return text.rpartition(" ")[0].rstrip() or text


def _style(card: LLMCard, content: str, reasoning: str) -> AnswerStyle:
    """Return how to split: a server that keeps the reasoning apart, or a switch that is off, leaves no marker."""
    if card.answer != "think" or _CLOSE.search(content):
        return card.answer
    # With reasoning in a field of its own and nothing else, it is empty: there was nothing but reasoning.
    return "plain" if reasoning.strip() or card.thinking is False else "think"


def _split(text: str, style: AnswerStyle, cleaning: Cleaning, cut: bool) -> Parts | None:
    """Return the reasoning and the answer; None where the answer never began. `cut`: it need not have ended."""
    if cleaning == "published":
        return _first_marker(text, style)
    return _SPLIT[style](text, cut)


def _first_marker(text: str, style: AnswerStyle) -> Parts:
    if style == "answer-tag" and (tag := _ANSWER.search(text)):
        return Parts(text[: tag.start()], tag.group(1))
    mark = _PUBLISHED_MARKS[style].search(text) if style in ("think", "final-response") else None
    return Parts(text[: mark.start()], text[mark.end() :]) if mark else Parts("", text)


def _think(text: str, cut: bool) -> Parts | None:
    marks = list(_CLOSE.finditer(text))
    if not marks or _OPEN.search(text, marks[-1].end()):  # never closed, or opened again after the answer
        return None
    return Parts(_OPEN.sub("", text[: marks[-1].start()], count=1).strip(), text[marks[-1].end() :])


def _plain(text: str, cut: bool) -> Parts | None:
    """Split off the reasoning that a model wrote although its card expects none, however it marks it."""
    if _OPEN.search(text) or _CLOSE.search(text):
        return _think(text, cut)
    if _CHANNEL in text:
        thought, marker, answer = text.rpartition(_FINAL_CHANNEL)
        return Parts(thought, answer) if marker and _CHANNEL not in answer else None
    return _final_response(text, cut) if _THINKING_HEADING.match(text) else Parts("", text)


def _final_response(text: str, cut: bool) -> Parts | None:
    marks = list(_FINAL.finditer(text))
    if not marks:
        return None
    return Parts(_THINKING_HEADING.sub("", text[: marks[-1].start()]), text[marks[-1].end() :])


def _answer_tag(text: str, cut: bool) -> Parts | None:
    opened = list(_OPEN_ANSWER.finditer(text)) if cut else []
    if opened and not _CLOSE_ANSWER.search(text, opened[-1].end()):
        return Parts(text[: opened[-1].start()], text[opened[-1].end() :])
    tags = list(_ANSWER.finditer(text))
    return Parts(text[: tags[-1].start()], tags[-1].group(1)) if tags else None


_SPLIT: Mapping[AnswerStyle, Callable[[str, bool], Parts | None]] = {
    "plain": _plain,
    "think": _think,
    "final-response": _final_response,
    "answer-tag": _answer_tag,
}
_MARKS: Mapping[AnswerStyle, re.Pattern[str]] = {
    "think": _CLOSE,
    "final-response": _FINAL,
    "answer-tag": _CLOSE_ANSWER,
}
_PUBLISHED_MARKS: Mapping[AnswerStyle, re.Pattern[str]] = {**_MARKS, "final-response": _PUBLISHED_FINAL}
_MARKERS: Mapping[AnswerStyle, str] = {
    "plain": "the end of its reasoning",
    "think": "</think>",
    "final-response": "Final Response",
    "answer-tag": "<answer>",
}

"""Extract the answer from a model's text and separate its reasoning. Reasoning is never returned as an answer.

The same code is used for new answers and for recorded texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from r2med.foundation.text.unicode import to_unicode
from r2med.models.llm.chat import Failure, Generation, RawAnswer, finish_reason
from r2med.models.llm.llm_cards import AnswerStyle, Cleaning, LLMCard

VERSION = 4
"""Version of the cleaning, for the record.

The journal has raw answers, so a change here changes texts without a call.
"""

_THINK_START = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_CHANNEL = "<|channel|>"  # gpt-oss, if the server does not parse it.
_FINAL_CHANNEL = "<|channel|>final<|message|>"
# A heading, a bold line, or a line of only these words with an optional colon. Not the words inside a sentence of
# reasoning.
_FINAL_RESPONSE = re.compile(
    r"^[ \t>]*(?:\#+[ \t]*|\*\*|__)+final[ \t]response(?:\*\*|__)?[ \t]*:?[ \t]*(?:\*\*|__)?(?:[ \t]*\#+[ \t]*$)?"
    r"|^[ \t]*final[ \t]response(?:\*\*|__)?[ \t]*(?::(?:\*\*|__)?|$)",
    re.IGNORECASE | re.MULTILINE,
)
_PUBLISHED_FINAL = re.compile(r"Final Response")  # As in the benchmark: anywhere, in exactly this spelling.
_ANSWER_START = re.compile(r"<answer>", re.IGNORECASE)
_ANSWER_END = re.compile(r"</answer>", re.IGNORECASE)
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<(?:answer|search)>", re.IGNORECASE)
_THINKING_HEADING = re.compile(r"^\s*\#+[ \t]*thinking[ \t]*:?\s*", re.IGNORECASE)
# A full stop after a letter, digit or bracket, with an optional quote, before white space. This also matches "kg." and
# "e.g.", which rarely matters for the end of a cut text.
_SENTENCE_END = re.compile(r"[\w)\]%][.!?]+[\"'”’)\]]*(?=\s|$)|[。！？][”’」）]*")


@dataclass(frozen=True)
class Parts:
    """The reasoning and the answer of a text."""

    reasoning: str
    answer: str


def clean(raw: RawAnswer, card: LLMCard, *, keep_cut: bool = False) -> Generation | Failure:
    """Return the answer in a model's output, or a failure if there is no answer.

    With `keep_cut`, an answer that was cut at its token limit is kept up to its last whole sentence.
    """
    content, reasoning = to_unicode(raw.content), to_unicode(raw.reasoning)
    ended = finish_reason(raw.finish_reason)
    if ended == "refusal":
        words = " ".join(content.split())[:200]
        return Failure.of(raw, "refused", f"{card.name} refused to answer{f': {words}' if words else ''}")
    cut = ended == "length"
    if cut and not keep_cut:
        return Failure.of(raw, "truncated", f"{card.name} reached its token limit before it was finished")
    if ended not in ("stop", "length"):
        return Failure.of(raw, "unfinished", f"{card.name} stopped before its answer was finished ({ended})")
    style = _style(card, content, reasoning)
    parts = _split(content, style, card.cleaning, cut)
    if parts is None:
        if cut:
            return Failure.of(raw, "truncated", f"{card.name} reached its token limit before its answer began")
        return Failure.of(raw, "no_marker", f"{card.name} ended without {_MARKERS[style]}")
    answer = whole_sentences(parts.answer) if cut else parts.answer.strip()
    if not answer:
        thought = ", only reasoning" if reasoning.strip() or parts.reasoning.strip() else ""
        return Failure.of(raw, "truncated" if cut else "empty", f"{card.name} wrote no answer{thought}")
    whole = "\n\n".join(filter(None, (reasoning.strip(), parts.reasoning.strip())))
    ended = "length" if cut else "stop"
    return Generation(answer, whole, ended, raw.first_choices, raw.last_tokens, **raw.usage)


def recorded_answers(
    texts: Sequence[str], style: AnswerStyle = "plain", cleaning: Cleaning = "strict"
) -> list[str | None]:
    """Return the answers in the recorded texts of one file, or None for each text without one.

    The texts may have been cleaned before. `style` is the answer style of the LLM's card, if it has one. If most texts
    of a file have the marker, the file is raw output, and a text without the marker is unfinished reasoning. With the
    published cleaning, one text with the marker is enough. In a file without markers, the texts are already answers.
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
    # A search agent's text with such a tag was never cleaned, even if the other texts were.
    return "answer-tag" if style == "answer-tag" and _TAG.search(text) else of_file


def whole_sentences(text: str) -> str:
    """Return a text up to the end of its last whole sentence, or up to its last whole word if there is no sentence."""
    text = text.strip()
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    if ends:
        return text[: ends[-1]].rstrip()
    return text.rpartition(" ")[0].rstrip() or text


def _style(card: LLMCard, content: str, reasoning: str) -> AnswerStyle:
    """Return the style for splitting.

    There is no marker if the server returns reasoning separately or if thinking is switched off.
    """
    if card.answer != "think" or _THINK_END.search(content):
        return card.answer
    # If there is reasoning in a separate field and nothing else, the answer is empty.
    return "plain" if reasoning.strip() or card.thinking is False else "think"


def _split(text: str, style: AnswerStyle, cleaning: Cleaning, cut: bool) -> Parts | None:
    """Return the reasoning and the answer, or None if the answer never began. With `cut`, it may be incomplete."""
    if cleaning == "published":
        return _first_marker(text, style)
    return _SPLITTERS[style](text, cut)


def _first_marker(text: str, style: AnswerStyle) -> Parts:
    if style == "answer-tag" and (tag := _ANSWER.search(text)):
        return Parts(text[: tag.start()], tag.group(1))
    mark = _PUBLISHED_MARKS[style].search(text) if style in ("think", "final-response") else None
    return Parts(text[: mark.start()], text[mark.end() :]) if mark else Parts("", text)


def _think(text: str, cut: bool) -> Parts | None:
    marks = list(_THINK_END.finditer(text))
    if not marks or _THINK_START.search(text, marks[-1].end()):  # Never closed, or opened again after the answer.
        return None
    return Parts(_THINK_START.sub("", text[: marks[-1].start()], count=1).strip(), text[marks[-1].end() :])


def _plain(text: str, cut: bool) -> Parts | None:
    """Separate reasoning that a model wrote although its card expects none, with any known marker."""
    if _THINK_START.search(text) or _THINK_END.search(text):
        return _think(text, cut)
    if _CHANNEL in text:
        thought, marker, answer = text.rpartition(_FINAL_CHANNEL)
        return Parts(thought, answer) if marker and _CHANNEL not in answer else None
    return _final_response(text, cut) if _THINKING_HEADING.match(text) else Parts("", text)


def _final_response(text: str, cut: bool) -> Parts | None:
    marks = list(_FINAL_RESPONSE.finditer(text))
    if not marks:
        return None
    return Parts(_THINKING_HEADING.sub("", text[: marks[-1].start()]), text[marks[-1].end() :])


def _answer_tag(text: str, cut: bool) -> Parts | None:
    opened = list(_ANSWER_START.finditer(text)) if cut else []
    if opened and not _ANSWER_END.search(text, opened[-1].end()):
        return Parts(text[: opened[-1].start()], text[opened[-1].end() :])
    tags = list(_ANSWER.finditer(text))
    return Parts(text[: tags[-1].start()], tags[-1].group(1)) if tags else None


_SPLITTERS: Mapping[AnswerStyle, Callable[[str, bool], Parts | None]] = {
    "plain": _plain,
    "think": _think,
    "final-response": _final_response,
    "answer-tag": _answer_tag,
}
_MARKS: Mapping[AnswerStyle, re.Pattern[str]] = {
    "think": _THINK_END,
    "final-response": _FINAL_RESPONSE,
    "answer-tag": _ANSWER_END,
}
_PUBLISHED_MARKS: Mapping[AnswerStyle, re.Pattern[str]] = {**_MARKS, "final-response": _PUBLISHED_FINAL}
_MARKERS: Mapping[AnswerStyle, str] = {
    "plain": "the end of its reasoning",
    "think": "</think>",
    "final-response": "Final Response",
    "answer-tag": "<answer>",
}

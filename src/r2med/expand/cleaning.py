"""Recorded texts that were stored as the model wrote them: the answer without its reasoning, or nothing.

The chat layer cleans what it asked for by the LLM's card. A file tells nothing of how it was made, so here only the
marks in the texts themselves count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLOSE, _OPEN = "</think>", "<think>"
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)
# HuatuoGPT-o1 writes two headings; the words alone may stand in any sentence.
_THINKING = re.compile(r"^\s*\#+[ \t]*Thinking\b")
_FINAL = re.compile(r"^\#+[ \t]*Final Response\b[ \t]*:?", re.MULTILINE)


def clean(text: str) -> str:
    """Return the answer in a recorded text; empty if it ends before there is one."""
    if _CLOSE in text:
        text = text.rpartition(_CLOSE)[2]
    if _OPEN in text:  # never closed, or opened again after the answer: either way no end was reached
        return ""
    if _THINKING.match(text):
        marks = list(_FINAL.finditer(text))
        return text[marks[-1].end() :].strip() if marks else ""
    if answers := _ANSWER.findall(text):
        return str(answers[-1]).strip()
    if "<answer>" in text or "<search>" in text:  # a search agent that was cut off
        return ""
    return text.strip()


def is_raw(texts: Iterable[str]) -> bool:
    """Tell whether a file holds reasoning as well, by the closing mark in most of its texts.

    Some chat templates put the opening mark into the prompt. In such a file a text without the closing one is
    nothing but reasoning that was cut off.
    """
    closed = [_CLOSE in text for text in texts]
    return sum(closed) * 2 > len(closed)


def is_cut_off(text: str, raw: bool) -> bool:
    """Tell whether a text of a raw file lacks the mark that its answer comes after."""
    return raw and _CLOSE not in text

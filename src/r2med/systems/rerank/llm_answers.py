"""Read the answers of LLM rerankers in the form that a card declares. An answer in another form is not usable."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from r2med.models.ask.json_in_text import MAX_CHARACTERS, Parsed
from r2med.models.llm.chat import Generation, Logprobs
from r2med.systems.rerank.llm_reranker_cards import LLMRerankerCard
from r2med.systems.rerank.parse_order import Order, completed, parse_order
from r2med.systems.rerank.parse_scores import parse_score, parse_scores

LETTERS = string.ascii_uppercase
NUMBER = r"(\d+)"
SCORE = r"((?:(?<!\w)-)?\d+(?:\.\d+)?)"
MAX_DIGITS = 9
"""Digits of a number that can name a passage. Python refuses to read numbers with thousands of digits."""

Scored = dict[int, float]
"""Index of a passage -> its score."""
ReadOrder = Callable[[LLMRerankerCard, Generation, int], Parsed[Order] | None]
ReadScores = Callable[[LLMRerankerCard, Generation, int], Parsed[Scored] | None]


def passage_labels(card: LLMRerankerCard, count: int) -> list[str]:
    """Return the labels of this many passages: numbers from 1, or letters from A."""
    if card.labels == "numbers":
        return [str(number) for number in range(1, count + 1)]
    return [LETTERS[index] for index in range(count)]


def read_order(card: LLMRerankerCard) -> Callable[[Generation, int], Parsed[Order] | None]:
    """Return the function that reads an order of passages. Passages that an answer leaves out keep their order."""
    return partial(ORDERS[card.answer], card)


def read_scores(card: LLMRerankerCard) -> Callable[[Generation, int], Parsed[Scored] | None]:
    """Return the function that reads scores of passages by index, from 0 to the card's highest."""
    return partial(SCORES[card.answer], card)


def read_label(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[int] | None:
    """Return the index of the passage whose label the answer names."""
    said = _inside(card, answer).strip().strip("[]().:\"'` ").upper()
    said = re.sub(r"^(?:PASSAGE|DOCUMENT)\s*\[?", "", said)
    known = passage_labels(card, count)
    return Parsed(known.index(said)) if said in known else None


def _inside(card: LLMRerankerCard, answer: Generation) -> str:
    """Return the last text inside the card's tag.

    If the tag is not closed, return the text after it. Without the tag, return all text.
    """
    text = answer.text[-MAX_CHARACTERS:]
    before, opening, rest = text.rpartition(f"<{card.tag}>") if card.tag else ("", "", text)
    if not opening:
        return text
    inside, closing, _ = rest.partition(f"</{card.tag}>")
    return inside if closing or rest.strip() else before


def _free_order(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Order] | None:
    return parse_order(_inside(card, answer), count)


def _listed(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Order] | None:
    found = re.finditer(card.pattern or NUMBER, _inside(card, answer))
    return completed([_number(match[1]) for match in found], count)


def _tied(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Order] | None:
    """Return the order of the last line, such as [3] > [2] = [1]. Reading stops at the first repeated passage.

    Tied passages keep the order in which the answer names them.
    """
    lines = _inside(card, answer).strip().splitlines()
    ids: list[int] = []
    for named in re.split("[>=]", lines[-1] if lines else ""):
        if (found := re.search(card.pattern or NUMBER, named)) is None:
            continue
        if (number := _number(found[1])) in ids:
            break
        ids.append(number)
    return completed(ids, count)


def _number(written: str | None) -> int:
    """Return the number of a passage; 0, which no passage has, for any other text."""
    return int(written) if written and written.isdecimal() and len(written) <= MAX_DIGITS else 0


def _likely(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Order] | None:
    """Return the passages by the probability of their labels as the first token."""
    known = passage_labels(card, count)
    best: dict[int, float] = {}
    for token, logprob in answer.first_choices:
        if (label := token.strip().strip("[]")) in known:
            number = known.index(label) + 1
            best[number] = max(logprob, best.get(number, -math.inf))
    return completed(sorted(best, key=lambda number: (-best[number], number)), count)


def _all_scores(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Scored] | None:
    return parse_scores(_inside(card, answer), count, card.highest)


def _free_score(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Scored] | None:
    parsed = parse_score(_inside(card, answer), card.highest)
    return Parsed({0: parsed.value}, parsed.repairs) if parsed else None


def _one_score(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Scored] | None:
    found = re.search(card.pattern or SCORE, _inside(card, answer))
    if found is None:
        return None
    try:
        score = float(found[1])
    except (TypeError, ValueError):  # A card's own pattern may match other text, or nothing.
        return None
    clipped = min(max(score, 0.0), card.highest)
    return Parsed({0: clipped}, +Counter(clipped=int(clipped != score)))


def _weighed_score(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Scored] | None:
    """Return the score times the probability of the tokens that write it."""
    parsed = _one_score(card, answer, count)
    if parsed is None:
        return None
    logprob = written_logprob(answer.last_tokens, f"{parsed.value[0]:g}")
    return None if logprob is None else Parsed({0: parsed.value[0] * math.exp(logprob)}, parsed.repairs)


def written_logprob(tokens: Logprobs, number: str) -> float | None:
    """Return the log-probability of the last tokens that write a number; None if the tokens do not show it."""
    text = "".join(token for token, _ in tokens)
    found = [match.span() for match in re.finditer(rf"(?<![\d.]){re.escape(number)}(?![\d.]*\d)", text)]
    if not found:
        return None
    (start, end), position, total = found[-1], 0, 0.0
    for token, logprob in tokens:
        if position < end and position + len(token) > start and token:
            total += logprob
        position += len(token)
    return total


def _true_share(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[Scored] | None:
    """Return P(true) / (P(true) + P(false)) for the first token."""
    likely = {word: _probability(answer.first_choices, word) for word in ("true", "false")}
    total = sum(likely.values())
    return Parsed({0: likely["true"] / total}) if total else None


def _probability(choices: Logprobs, word: str) -> float:
    """Return the probability of a word: with the blank before it, as models write it, else without."""
    exact = [logprob for token, logprob in choices if token == f" {word}"]
    return math.exp(max(exact or [logprob for token, logprob in choices if token == word] or [-math.inf]))


ORDERS: Mapping[str, ReadOrder] = {
    "free-order": _free_order,
    "order": _listed,
    "ties": _tied,
    "first-token": _likely,
}
"""Kind of answer -> the function that reads an order."""

SCORES: Mapping[str, ReadScores] = {
    "scores": _all_scores,
    "free-score": _free_score,
    "score": _one_score,
    "score-probability": _weighed_score,
    "true-false": _true_share,
}
"""Kind of answer -> the function that reads scores."""

"""Read the answers of trained rerankers: exactly the form they were trained to give, and a status for anything else."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from r2med.models.ask.json_in_text import MAX_CHARACTERS, Parsed
from r2med.models.llm.chat import Generation, Logprobs
from r2med.systems.rerank.llm_reranker_cards import LLMRerankerCard
from r2med.systems.rerank.parse_scores import parse_scores

LETTERS = string.ascii_uppercase
NUMBER = r"(\d+)"
SCORE = r"((?:(?<!\w)-)?\d+(?:\.\d+)?)"
MAX_DIGITS = 9
"""Digits of a number that can name a passage. Python refuses to read numbers with thousands of digits."""

Order = tuple[int, ...]
Read = Callable[[Generation, int], "Parsed[Order] | Parsed[dict[int, float]] | None"]


def labels(card: LLMRerankerCard, count: int) -> list[str]:
    """Return the labels of this many passages: numbers from 1, or letters from A."""
    if card.labels == "numbers":
        return [str(number) for number in range(1, count + 1)]
    return [LETTERS[index] for index in range(count)]


def tagged(text: str, tag: str) -> str:
    """Return the last text inside a tag; what follows the tag where it is not closed; all text without the tag."""
    if not tag:
        return text
    before, opening, rest = text.rpartition(f"<{tag}>")
    if not opening:
        return text
    inside, closing, _ = rest.partition(f"</{tag}>")
    return inside if closing or rest.strip() else before


def read_order(card: LLMRerankerCard) -> Callable[[Generation, int], Parsed[Order] | None]:
    """Return the function that reads an order of passages. Passages that an answer leaves out keep their order."""
    readers = {"order": _listed, "ties": _tied, "first-token": _likely}

    def read(answer: Generation, count: int) -> Parsed[Order] | None:
        groups = readers[card.answer](card, answer, count)
        return _completed(groups, count)

    return read


def read_label(card: LLMRerankerCard) -> Callable[[Generation, int], Parsed[int] | None]:
    """Return the function that reads the label of the best passage."""

    def read(answer: Generation, count: int) -> Parsed[int] | None:
        said = tagged(answer.text[-MAX_CHARACTERS:], card.tag).strip().strip("[]().:\"'` ").upper()
        said = re.sub(r"^(?:PASSAGE|DOCUMENT)\s*\[?", "", said)
        known = labels(card, count)
        return Parsed(known.index(said)) if said in known else None

    return read


def read_scores(card: LLMRerankerCard) -> Callable[[Generation, int], Parsed[dict[int, float]] | None]:
    """Return the function that reads scores of passages by index, from 0 to the card's highest."""
    readers: Mapping[str, Callable[[LLMRerankerCard, Generation, int], Parsed[dict[int, float]] | None]] = {
        "scores": _json_scores,
        "score": _one_score,
        "score-probability": _weighed_score,
        "true-false": _true_share,
    }
    return lambda answer, count: readers[card.answer](card, answer, count)


def _listed(card: LLMRerankerCard, answer: Generation, count: int) -> list[list[int]]:
    text = tagged(answer.text[-MAX_CHARACTERS:], card.tag)
    return [[_number(found[1])] for found in re.finditer(card.pattern or NUMBER, text)]


def _tied(card: LLMRerankerCard, answer: Generation, count: int) -> list[list[int]]:
    """Return the groups of the last line, such as [3] > [2] = [1]. Reading stops at the first repeated passage."""
    lines = tagged(answer.text[-MAX_CHARACTERS:], card.tag).strip().splitlines()
    groups: list[list[int]] = []
    seen: set[int] = set()
    for part in (lines[-1] if lines else "").split(">"):
        group: list[int] = []
        for named in part.split("="):
            if (found := re.search(card.pattern or NUMBER, named)) is None:
                continue
            if (number := _number(found[1])) in seen:
                return [*groups, group]
            seen.add(number)
            group.append(number)
        groups.append(group)  # Tied passages keep the order in which the answer names them.
    return groups


def _number(written: str | None) -> int:
    """Return the number of a passage; 0, which no passage has, for any other text."""
    return int(written) if written and written.isdecimal() and len(written) <= MAX_DIGITS else 0


def _likely(card: LLMRerankerCard, answer: Generation, count: int) -> list[list[int]]:
    """Return the passages by the probability of their labels as the first token."""
    known = labels(card, count)
    best: dict[int, float] = {}
    for token, logprob in answer.first_choices:
        if (label := token.strip().strip("[]")) in known:
            number = known.index(label) + 1
            best[number] = max(logprob, best.get(number, -math.inf))
    return [[number] for number in sorted(best, key=lambda number: (-best[number], number))]


def _completed(groups: Iterable[Sequence[int]], count: int) -> Parsed[Order] | None:
    """Return the whole order from passages that were named: the first mention counts, and the others follow."""
    kept: dict[int, None] = {}
    repairs: Counter[str] = Counter()
    for number in (number for group in groups for number in group):
        if not 1 <= number <= count:
            repairs["invented"] += 1
        elif number in kept:
            repairs["repeated"] += 1
        else:
            kept[number] = None
    if not kept:
        return None
    left_out = [number for number in range(1, count + 1) if number not in kept]
    repairs["missing"] += len(left_out)
    return Parsed(tuple(number - 1 for number in (*kept, *left_out)), +repairs)


def _json_scores(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[dict[int, float]] | None:
    return parse_scores(tagged(answer.text[-MAX_CHARACTERS:], card.tag), count, card.highest)


def _one_score(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[dict[int, float]] | None:
    found = re.search(card.pattern or SCORE, tagged(answer.text[-MAX_CHARACTERS:], card.tag))
    if found is None:
        return None
    try:
        score = float(found[1])
    except (TypeError, ValueError):  # A card's own pattern may match other text, or nothing.
        return None
    clipped = min(max(score, 0.0), card.highest)
    return Parsed({0: clipped}, +Counter(clipped=int(clipped != score)))


def _weighed_score(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[dict[int, float]] | None:
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


def _true_share(card: LLMRerankerCard, answer: Generation, count: int) -> Parsed[dict[int, float]] | None:
    """Return P(true) / (P(true) + P(false)) for the first token."""
    likely = {word: _probability(answer.first_choices, word) for word in ("true", "false")}
    total = sum(likely.values())
    return Parsed({0: likely["true"] / total}) if total else None


def _probability(choices: Logprobs, word: str) -> float:
    """Return the probability of a word: with the blank before it, as models write it, else without."""
    exact = [logprob for token, logprob in choices if token == f" {word}"]
    return math.exp(max(exact or [logprob for token, logprob in choices if token == word] or [-math.inf]))

"""Find groups of diagnoses that are written similarly, without comparing all pairs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from r2med.foundation.text.synonyms import normal_term

MAX_HOLDERS = 50
"""Words and letters that more terms share than this say little, and are not compared. This bounds the work."""
MAX_SIMILAR = 5
"""Maximum number of similar terms that each term proposes."""
MIN_SIMILARITY = 0.25
"""Minimum cosine of the words and groups of three letters of two terms."""


def similar_groups(groups: Sequence[Sequence[str]]) -> dict[int, list[int]]:
    """Return the numbers of groups with similar terms: each pair once, under its smaller number, in ascending order."""
    owners = [number for number, terms in enumerate(groups) for _ in terms]
    forms = [normal_term(term) for terms in groups for term in terms]
    pairs = {tuple(sorted((owners[one], owners[other]))) for one, other in _similar(forms, owners)}
    similar: dict[int, list[int]] = defaultdict(list)
    for one, other in sorted(pairs):
        if one != other:
            similar[one].append(other)
    return dict(similar)


def _similar(forms: Sequence[str], owners: Sequence[int]) -> Iterator[tuple[int, int]]:
    yield from _by_initials(forms)
    features = [_features(form) for form in forms]
    holders: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(features):
        for feature in each:
            holders[feature].append(number)
    weights = {name: math.log(1 + len(forms) / len(who)) for name, who in holders.items() if len(who) <= MAX_HOLDERS}
    lengths = [math.sqrt(sum(weights.get(feature, 0) ** 2 for feature in each)) for each in features]
    for number, each in enumerate(features):
        products = _products(each, holders, weights)
        cosines = {
            other: product / (lengths[number] * lengths[other])
            for other, product in products.items()
            if owners[other] != owners[number]
        }
        close = [other for other, cosine in cosines.items() if cosine >= MIN_SIMILARITY]
        for other in sorted(close, key=lambda other: (-cosines[other], other))[:MAX_SIMILAR]:
            yield number, other


def _products(
    features: Sequence[str], holders: Mapping[str, Sequence[int]], weights: Mapping[str, float]
) -> dict[int, float]:
    products: dict[int, float] = defaultdict(float)
    for feature in features:
        if feature in weights:
            for other in holders[feature]:
                products[other] += weights[feature] ** 2
    return products


def _features(form: str) -> list[str]:
    """Return the words and the groups of three letters of a normal form."""
    padded = f"#{form}#"
    letters = (padded[start : start + 3] for start in range(len(padded) - 2))
    return list(dict.fromkeys((*form.split(), *letters)))


def _by_initials(forms: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs such as MI and myocardial infarction."""
    short: dict[str, list[int]] = defaultdict(list)
    for number, form in enumerate(forms):
        if 2 <= len(form) <= 6 and " " not in form:
            short[form].append(number)
    for number, form in enumerate(forms):
        for other in short.get("".join(word[0] for word in form.split()), ())[:MAX_SIMILAR]:
            yield number, other

"""chrF: the similarity of two texts by their character n-grams (Popović 2015), without white space.

Characters need no word segmentation, so that it works for Chinese too. With `order=6` the values equal sacrebleu's
`sentence_chrf`.
"""

from __future__ import annotations

from collections import Counter

BETA = 2
"""Weight of recall against precision, as in sacrebleu's default."""


def chrf(text: str, reference: str, order: int = 6) -> float:
    """Return the F-score of the character n-grams up to `order`, from 0 to 100."""
    ours, theirs = "".join(text.split()), "".join(reference.split())
    precisions, recalls = [], []
    for size in range(1, order + 1):
        here, there = _grams(ours, size), _grams(theirs, size)
        if here and there:
            shared = (here & there).total()
            precisions.append(shared / here.total())
            recalls.append(shared / there.total())
    if not sum(precisions):
        return 0.0
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    return 100 * (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


def _grams(text: str, size: int) -> Counter[str]:
    return Counter(text[start : start + size] for start in range(len(text) - size + 1))

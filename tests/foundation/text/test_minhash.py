"""MinHash estimates how alike texts are, and proposes nearly all pairs that are."""

import numpy as np
import pytest

from r2med.foundation.text.minhash import BAND_PROBABILITY, PERMUTATIONS, Shingles, jaccard, rows_per_band

WORDS = np.array([f"word{number}" for number in range(5000)])


def altered(changes, pairs=200, length=120):
    """Return texts, and the same texts with some words replaced."""
    random = np.random.default_rng(1)
    base = random.choice(WORDS, (pairs, length))
    other = base.copy()
    for row in other:
        row[random.choice(length, changes, replace=False)] = "altered"
    return [" ".join(row) for row in base], [" ".join(row) for row in other]


def test_shingles_are_runs_of_words_whatever_case_and_signs_stand_between():
    one, same, other, short, empty = Shingles.of(
        ["Acute renal failure, again.", "acute RENAL -- failure again", "again failure renal acute", "x", "!?"], 2
    ).sets()
    assert one == same
    assert not (one & other) - short - empty
    assert len(one) == 3
    assert len(short) == 2 and len(empty) == 1


@pytest.mark.parametrize("changes", [1, 5, 20])
def test_equal_least_hashes_estimate_the_jaccard_similarity(changes):
    one, other = altered(changes)
    shingles = Shingles.of([*one, *other], 3)
    signatures, sets = shingles.signatures(), shingles.sets()
    estimate = (signatures[:, :200] == signatures[:, 200:]).mean()
    exact = np.mean([jaccard(*pair) for pair in zip(sets[:200], sets[200:], strict=True)])
    assert estimate == pytest.approx(exact, abs=0.03)


def test_pairs_above_the_threshold_share_a_band():
    one, other = altered(4)  # similarities of 0.8 and more
    keys = Shingles.of([*one, *other], 3).band_keys(rows_per_band(0.8))
    assert (keys[:, :200] == keys[:, 200:]).any(axis=0).mean() >= BAND_PROBABILITY - 0.01
    assert (keys[:, :199] == keys[:, 1:200]).sum() == 0


def test_a_lower_threshold_needs_smaller_bands():
    sizes = [rows_per_band(threshold) for threshold in (0.3, 0.5, 0.8, 1.0)]
    assert sizes == sorted(sizes)
    assert all(1 <= rows <= PERMUTATIONS for rows in sizes)


def test_a_text_has_the_same_hashes_whatever_stands_beside_it():
    texts = ["one two three four", "ünïcode wörds", "five six seven"]
    together = Shingles.of(texts, 3).sets()
    assert together == [Shingles.of([text], 3).sets()[0] for text in texts]

"""What queries share with their gold documents."""

import numpy as np

from r2med.analyse.overlap import chance_overlap, gold_overlap
from r2med.data import Dataset

MINE = Dataset.of(
    {"q1": "the bread that tires", "q2": "pale skin"},
    {"d1": "Breads tire the bowel.", "d2": "Iron and skin.", "d3": "Nothing of the kind."},
    {"q1": {"d1": 1, "d3": 0}, "q2": {"d2": 2}},
)


def test_stems_are_compared_and_stop_words_do_not_count():
    overlap = gold_overlap(MINE)
    assert overlap.coverage.tolist() == [1.0, 0.5]
    assert overlap.jaccard.tolist() == [2 / 3, 1 / 3]


def test_chance_is_the_gold_of_the_next_query():
    assert chance_overlap(MINE).coverage.tolist() == [0.0, 0.0]


def test_a_dataset_without_judgements_has_no_pairs():
    assert gold_overlap(Dataset.of({"q": "x"}, {"d": "x"})).jaccard.shape == (0,)
    assert np.isfinite(chance_overlap(MINE).jaccard).all()

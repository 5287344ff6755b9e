"""Exact scores are available only for the blocks that are held."""

import numpy as np
import pytest

from r2med.systems.retrieve.exact.exact_scores import ExactScorer
from r2med.systems.retrieve.exact.text_vectors import TextVectors


@pytest.mark.parametrize("row", [1, 9])
def test_a_row_of_a_released_block_is_not_scored(row):
    scorer = ExactScorer(TextVectors(np.eye(4, dtype=np.float32)))
    scorer.hold(5, np.eye(4, dtype=np.float32))
    with pytest.raises(LookupError, match="was released"):
        scorer.score(0, np.array([row], np.int32))

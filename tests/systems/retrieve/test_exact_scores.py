"""Exact scores are available only for the blocks that are held."""

import numpy as np
import pytest

from r2med.systems.retrieve.dense.exact_scores import ExactScorer


@pytest.mark.parametrize("row", [1, 9])
def test_a_row_of_a_released_block_is_not_scored(row):
    scorer = ExactScorer(np.eye(4, dtype=np.float32), cosine=False)
    scorer.hold(5, np.eye(4, dtype=np.float32))
    with pytest.raises(LookupError, match="was released"):
        scorer.score(np.array([0]), np.array([row], np.int32))

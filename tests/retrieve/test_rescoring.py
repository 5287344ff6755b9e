"""The scores that decide: of the blocks that are held, and of no others."""

import numpy as np
import pytest

from r2med.retrieve.dense.exact.rescoring import Rescorer


def test_blocks_that_come_while_others_are_scored_again_disturb_nothing():
    rescorer = Rescorer(np.eye(4, dtype=np.float32), cosine=False)
    for row in range(4):
        rescorer.hold(row, np.eye(4, dtype=np.float32)[row : row + 1])
    pieces = rescorer._by_block(np.arange(4, dtype=np.int32))
    found = [next(pieces)]
    rescorer.hold(4, np.eye(4, dtype=np.float32))  # as the loader of a GPU does, on its own thread
    assert [first for _, first, _ in [*found, *pieces]] == [0, 1, 2, 3]


@pytest.mark.parametrize("row", [1, 9])
def test_a_row_of_a_block_that_was_let_go_is_not_scored(row):
    rescorer = Rescorer(np.eye(4, dtype=np.float32), cosine=False)
    rescorer.hold(5, np.eye(4, dtype=np.float32))
    with pytest.raises(LookupError, match="was let go"):
        rescorer.score(np.array([0]), np.array([row], np.int32))

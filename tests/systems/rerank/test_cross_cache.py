"""Cached scores: valid scores are read back unchanged, invalid ones count as missing."""

import math

import pytest

from r2med.foundation.store.files import text_digest
from r2med.models.crossencoders.pair_scorer import ScoredPair
from r2med.systems.rerank.pair_scores import packed, pair_key, unpacked


@pytest.mark.parametrize("scored", [ScoredPair(-3.25, 412, True, 0.125), ScoredPair(1e-7, 0, False, 0.0)])
def test_scores_come_back_as_they_were(scored):
    assert unpacked(packed(scored)) == scored


def test_an_invalid_score_counts_as_missing():
    whole = packed(ScoredPair(1.0, 2))
    assert (
        unpacked(whole[:8]) is unpacked(whole + b"0") is unpacked(b"") is unpacked(packed(ScoredPair(math.nan))) is None
    )


def test_the_key_differs_for_each_model_query_and_document():
    a, b = text_digest("a"), text_digest("b")
    assert len({pair_key("m", a, b), pair_key("m", b, a), pair_key("n", a, b), pair_key("m", a, a)}) == 4

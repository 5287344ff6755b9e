"""Documents that an agent found come first, in their order; those of the retriever follow."""

from fractions import Fraction

import numpy as np

from r2med.data import Corpus
from r2med.data.runs.run import Run
from r2med.systems.agents.agent_retriever import finds_first, fused

CORPUS = Corpus.of([(name, name * 3) for name in "abcdef"])
RUN = Run.ranked(
    ["1", "2"],
    [(CORPUS.rows(list("abc")), np.array([3, 2, 1], np.float32)), (CORPUS.rows(["f"]), np.array([9], np.float32))],
    CORPUS,
)


def test_rankings_are_fused_by_reciprocal_rank():
    rankings = ["ab", "bcd", "d"]
    worth = {name: sum(Fraction(1, 61 + each.index(name)) for each in rankings if name in each) for name in "abcd"}
    assert fused(rankings, CORPUS) == tuple(sorted(worth, key=lambda name: (-worth[name], -ord(name))))
    assert fused(["a", "b"], CORPUS) == ("b", "a"), "a tie: the higher id comes first"
    assert fused(["xa"], CORPUS) == ("a",), "the corpus has no x"
    assert fused([], CORPUS) == ()


def test_found_documents_come_first_and_the_others_follow():
    both = finds_first(RUN, {"1": ("e", "b")}, CORPUS, 10)
    assert list(both) == [("1", [("e", 4.0), ("b", 3.0), ("a", 2.0), ("c", 1.0)]), ("2", [("f", 9.0)])]


def test_no_more_documents_are_kept_than_are_wanted():
    assert dict(finds_first(RUN, {"1": ("e", "b", "d")}, CORPUS, 2))["1"] == [("e", 2.0), ("b", 1.0)]
    assert dict(finds_first(RUN, {"2": ("a",)}, CORPUS, 3))["2"] == [("a", 2.0), ("f", 1.0)]

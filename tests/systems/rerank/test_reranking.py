"""New orders: the reranked documents come first, the rest keeps its order, and the scores agree with the order."""

import numpy as np
import pytest

from r2med.data import Corpus
from r2med.data.runs.run import Run
from r2med.systems.rerank.reranking import candidates, kept_in_place, ordered, reranked

CORPUS = Corpus.of([(letter, letter) for letter in "abcdef"])


def run_of(*rankings: str) -> Run:
    found = [(CORPUS.rows(list(ranking)), np.arange(len(ranking), 0, -1).astype(np.float32)) for ranking in rankings]
    return Run.ranked([str(i) for i in range(len(rankings))], found, CORPUS)


def order_of(run: Run) -> list[str]:
    # Read as trec_eval reads a file: by score, ties by id descending.
    return ["".join(d for d, _ in sorted(found, key=lambda x: (x[1], x[0]), reverse=True)) for _, found in run]


def test_documents_below_the_depth_keep_their_order_after_the_reranked_part():
    run = run_of("abcdef", "fe", "")
    new = reranked(run, 3, [np.array([0.1, 0.2, 0.3]), np.array([-4.0, 7.5]), np.array([])])
    assert order_of(new) == ["cbadef", "ef", ""]
    assert [d for d, _ in next(iter(new))[1]] == list("cbadef")


def test_ties_go_by_document_id_descending():
    assert order_of(reranked(run_of("abcdef"), 4, [np.zeros(4)])) == ["dcbaef"]


@pytest.mark.parametrize("scale", [1e-30, 1.0, -1e6, 1e20, 1e38])
def test_the_order_survives_single_precision_at_any_scale_of_scores(scale: float):
    new = reranked(run_of("abcdef"), 3, [np.array([1.0, 3.0, 2.0]) * abs(scale) + min(scale, 0)])
    assert order_of(new) == ["bcadef"]


def test_an_order_without_scores():
    new = ordered(run_of("abcdef", "ab"), [[2, 0, 1], [1, 0]], [None, None], 3)
    assert order_of(new) == ["cabdef", "ba"]
    assert [score for _, score in next(iter(new))[1]] == [3, 2, 1, 0, -1, -2]


def test_equal_scores_are_made_different_so_that_a_file_keeps_their_order():
    new = ordered(run_of("abcdef", "ab"), [[0, 2, 1], [1, 0]], [np.array([1.0, 0.5, 1.0]), None], 3)
    assert order_of(new) == ["acbdef", "ba"]
    assert [score for _, score in next(iter(new))[1]][:3] == pytest.approx([1.0, 1.0, 0.5])
    assert order_of(ordered(run_of("abcdef"), [range(6)], [np.zeros(6)], 6)) == ["abcdef"]


def test_documents_without_a_score_keep_their_positions():
    nan = float("nan")
    assert kept_in_place(np.array([1.0, nan, 5.0, nan, 3.0])) == [2, 1, 4, 3, 0]
    assert kept_in_place(np.array([nan, nan])) == [0, 1]
    assert kept_in_place(np.array([2.0, 2.0, 3.0])) == [2, 0, 1]


def test_a_short_ranking_gives_fewer_candidates_than_the_depth():
    assert [len(rows) for rows in candidates(run_of("abc", "a", ""), 2)] == [2, 1, 0]

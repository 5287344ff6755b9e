"""Pointwise reranking: one call for each document, samples averaged."""

import json

import pytest

from r2med import UserError
from r2med.models.llm.chat import Failure
from support.llm_rerankers import graded, in_one_score, permutation, places, rerank, scores, shown, true_order, worths


def test_a_perfect_llm_gives_the_true_order(tmp_path):
    worth = permutation(23)
    reranked, llm = rerank("pointwise(ranker, weight=1)", in_one_score, graded(worth, [5.0], []), tmp_path)
    assert places(reranked.run) == true_order(worth)
    assert len(llm.asked) == 23  # one candidate, or none, has no order to find
    assert all(len(shown(request)) == 1 for request in llm.asked)


def test_ties_keep_their_order_and_first_stage_scores_are_mixed_in(tmp_path):
    reranked, _ = rerank("pointwise(ranker, weight=1)", in_one_score, graded([2.0, 2.0, 2.0, 9.0]), tmp_path)
    assert places(reranked.run) == [3, 0, 1, 2]
    reranked, _ = rerank("pointwise(ranker, weight=0.5)", in_one_score, graded([0.0, 9.0]), tmp_path)
    assert scores(reranked.run) == pytest.approx([0.5, 0.45])


def test_the_mean_over_samples_uses_only_successful_calls(tmp_path):
    def reply(request):
        if request.sample == 2:
            return "hm"
        [worth] = worths(request).values()
        return json.dumps({"score": worth + (1 if request.sample else -1)})

    reranked, llm = rerank("pointwise(ranker, samples=3, weight=1)", reply, graded([2.0, 4.0, 6.0]), tmp_path)
    assert scores(reranked.run) == pytest.approx([0.6, 0.4, 0.2])
    assert sorted(request.sample for request in llm.asked) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (reranked.failures, reranked.failure_kinds) == (3, {"invalid": 3})


def test_a_document_whose_call_failed_keeps_its_place(tmp_path):
    def reply(request):
        return Failure("refused", "no") if 4.0 in worths(request).values() else in_one_score(request)

    data = graded([1.0, 2.0], [1.0, 4.0, 6.0, 9.0])
    reranked, _ = rerank("pointwise(ranker, weight=1)", reply, data, tmp_path)
    assert places(reranked.run, 1) == [3, 1, 2, 0]
    assert (reranked.failure_kinds, reranked.failed) == ({"refused": 1}, {"1": "1 refused"})


def test_scores_beyond_the_scale_are_clipped_and_counted(tmp_path):
    reranked, _ = rerank("pointwise(ranker, weight=1)", in_one_score, graded([55.0, -3.0]), tmp_path)
    assert scores(reranked.run) == pytest.approx([1.0, 0.0])
    assert reranked.repairs == {"clipped": 2}


def test_user_mistakes_give_a_one_line_error(tmp_path):
    with pytest.raises(UserError, match="samples must be 100 or less"):
        rerank("pointwise(ranker, samples=1000000000)", in_one_score, graded([1.0]), tmp_path)
    with pytest.raises(UserError, match="samples must be 1 or more"):
        rerank("pointwise(ranker, samples=0)", in_one_score, graded([1.0]), tmp_path)
    with pytest.raises(UserError, match="pointwise has no setting 'window'"):
        rerank("pointwise(ranker, window=5)", in_one_score, graded([1.0]), tmp_path)

"""Groupwise reranking: groups, shuffles, the mix with first-stage scores, and failed calls."""

import json

import numpy as np
import pytest

from r2med import UserError
from r2med.models.llm.chat import Failure
from r2med.systems.rerank.llm_reranker import QueryCandidates
from r2med.systems.rerank.llm_scores import Groupwise
from support.llm_rerankers import graded, in_scores, permutation, places, rerank, scores, shown, true_order, worths


@pytest.mark.parametrize("count", [2, 7, 20, 21, 25, 41, 95])
def test_consistent_scores_in_all_groups_give_the_true_order(tmp_path, count):
    worth = permutation(count)
    reranked, llm = rerank("groupwise(ranker, weight=1)", in_scores, graded(worth), tmp_path)
    assert places(reranked.run) == true_order(worth)
    assert len(llm.asked) == -(-count // 20)
    assert (reranked.failures, reranked.repairs, reranked.notices) == (0, {}, ())


def test_documents_with_equal_scores_stay_in_the_order_of_the_first_stage(tmp_path):
    worth = [3.0, 9.0, 3.0, 9.0, 9.0, 3.0]
    for spec in ("groupwise(ranker, weight=1)", "groupwise(ranker)"):
        reranked, _ = rerank(spec, in_scores, graded(worth), tmp_path)
        assert places(reranked.run) == [1, 3, 4, 0, 2, 5]
        assert scores(reranked.run) == sorted(set(scores(reranked.run)), reverse=True)


def test_fewer_than_two_candidates_need_no_call(tmp_path):
    reranked, llm = rerank("groupwise(ranker, weight=1)@50", in_scores, graded([1.0], [], permutation(3)), tmp_path)
    assert [len(shown(request)) for request in llm.asked] == [3]
    assert places(reranked.run, 2) == true_order(permutation(3))
    assert [len(found) for _, found in reranked.run] == [1, 0, 3]


def test_an_empty_run_gives_a_notice(tmp_path):
    reranked, llm = rerank("groupwise(ranker)", in_scores, graded([], []), tmp_path)
    assert not llm.asked
    assert "nothing to rerank" in reranked.notices[0]


def test_documents_below_the_depth_stay_after_the_reranked_part(tmp_path):
    worth = permutation(30)
    reranked, _ = rerank("groupwise(ranker, weight=1)@12", in_scores, graded(worth), tmp_path)
    assert places(reranked.run) == true_order(worth[:12]) + list(range(12, 30))


def test_the_score_is_the_weighted_mean_of_llm_and_first_stage(tmp_path):
    """The first-stage scores 9, 5 and 1 are scaled to 1, 0.5 and 0."""
    reranked, _ = rerank("groupwise(ranker, weight=0.3)", in_scores, graded([0.0, 10.0, 5.0]), tmp_path)
    assert places(reranked.run) == [0, 1, 2]
    assert scores(reranked.run) == pytest.approx([0.7, 0.3 + 0.35, 0.15])


def test_by_default_the_first_stage_is_worth_two_and_a_half_points(tmp_path):
    reranked, _ = rerank("groupwise(ranker)", in_scores, graded([5.0, 7.4]), tmp_path)
    assert places(reranked.run) == [0, 1]
    reranked, _ = rerank("groupwise(ranker)", in_scores, graded([5.0, 7.6]), tmp_path)
    assert places(reranked.run) == [1, 0]


def test_weight_0_gives_the_order_of_the_first_stage(tmp_path):
    reranked, _ = rerank("groupwise(ranker, weight=0)", in_scores, graded(permutation(9)), tmp_path)
    assert places(reranked.run) == list(range(9))


def pool(count, text="what is it?"):
    ids = tuple(f"d{place}" for place in range(count))
    return QueryCandidates(text, f"<query>{text}</query>", ids, ids, np.zeros(count), np.zeros(count))


def test_groups_have_nearly_equal_sizes_and_contain_each_candidate_once():
    for count, sizes in ((21, [10, 11]), (100, [20] * 5), (41, [13, 14, 14]), (3, [3]), (20, [20])):
        groups = Groupwise(llm="ranker").dealt(pool(count), 0)
        assert [len(group) for group in groups] == sizes
        assert sorted(place for group in groups for place in group) == list(range(count))


def test_a_shuffle_depends_only_on_the_seed_the_query_and_its_number():
    plain, seeded, one = Groupwise(llm="ranker", size=3), Groupwise(llm="ranker", size=3, seed=1), pool(6)
    assert plain.dealt(one, 0) == [[2, 5, 0], [3, 4, 1]]  # on every machine, in every version
    others = [plain.dealt(one, 1), seeded.dealt(one, 0), plain.dealt(pool(6, "who?"), 0)]
    assert all(groups != plain.dealt(one, 0) for groups in others)


def test_the_questions_of_a_query_do_not_depend_on_other_queries(tmp_path):
    alone = rerank("groupwise(ranker)", in_scores, graded(permutation(30)), tmp_path)[1].asked
    among = rerank("groupwise(ranker)", in_scores, graded(permutation(30), permutation(9)), tmp_path)[1].asked
    assert among[: len(alone)] == alone


def test_the_same_candidates_in_another_order_give_the_same_questions(tmp_path):
    """The journal can then answer after another first stage."""
    dataset, run = graded(permutation(30))
    turned = type(run)(run.queries, run.rows[:, ::-1].copy(), run.scores, run.documents)
    asked = [rerank("groupwise(ranker)", in_scores, (dataset, each), tmp_path)[1].asked for each in (run, turned)]
    assert asked[0] == asked[1]


def test_sorted_groups_contain_neighbours_of_the_current_order(tmp_path):
    _, llm = rerank("groupwise(ranker, groups=sorted, size=2)", in_scores, graded([1.0, 2.0, 3.0]), tmp_path)
    assert [list(worths(request).values()) for request in llm.asked] == [[1.0], [2.0, 3.0]]


def test_several_shuffles_are_averaged(tmp_path):
    def reply(request):
        return json.dumps(dict.fromkeys(shown(request), request.sample * 2 + 2))

    reranked, llm = rerank("groupwise(ranker, shuffles=3, weight=1)", reply, graded([0.0] * 25), tmp_path)
    assert sorted(request.sample for request in llm.asked) == [0, 0, 1, 1, 2, 2]
    assert len({tuple(shown(request).values()) for request in llm.asked}) == 6
    assert scores(reranked.run) == pytest.approx([0.4] * 25, abs=1e-5)


def test_a_failed_group_stays_where_the_first_stage_had_it(tmp_path):
    worth = permutation(25)

    def reply(request):
        return Failure("timeout", "no answer") if 0.0 in worths(request).values() else in_scores(request)

    reranked, llm = rerank("groupwise(ranker, weight=1)", reply, graded(worth), tmp_path)
    [failed] = [request for request in llm.asked if 0.0 in worths(request).values()]
    unscored = {worth.index(value) for value in worths(failed).values()}
    found = places(reranked.run)
    assert all(found[place] == place for place in unscored)
    scored = [place for place in found if place not in unscored]
    assert scored == sorted(scored, key=lambda place: -worth[place])
    assert (reranked.failures, reranked.failure_kinds) == (1, {"timeout": 1})
    assert scores(reranked.run) == list(range(25, 0, -1))


def test_the_mean_over_shuffles_uses_only_successful_calls(tmp_path):
    worth = permutation(25)

    def reply(request):
        return "no idea" if request.sample == 1 else in_scores(request)

    reranked, _ = rerank("groupwise(ranker, shuffles=3, weight=1)", reply, graded(worth), tmp_path)
    assert places(reranked.run) == true_order(worth)
    assert (reranked.failures, reranked.failure_kinds) == (2, {"invalid": 2})


def test_a_document_missing_from_an_answer_keeps_its_position_and_is_counted(tmp_path):
    def reply(request):
        return json.dumps({number: worth for number, worth in worths(request).items() if worth != 4.0} | {77: 3})

    reranked, _ = rerank("groupwise(ranker, weight=1)", reply, graded([1.0, 4.0, 9.0]), tmp_path)
    assert places(reranked.run) == [2, 1, 0]
    assert (reranked.failures, reranked.repairs) == (0, {"invented": 1, "missing": 1})


def test_the_run_is_unchanged_if_every_call_fails(tmp_path):
    reranked, _ = rerank(
        "groupwise(ranker)", lambda _: Failure("budget", "used up", attempts=0), graded(permutation(25)), tmp_path
    )
    assert places(reranked.run) == list(range(25))
    assert (reranked.failures, reranked.cost.calls) == (2, 0)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("groupwise(ranker, size=0)", "size must be 1 or more"),
        ("groupwise(ranker, shuffles=0)", "shuffles must be 1 or more"),
        ("groupwise(ranker, shuffles=1000000000)", "shuffles must be 100 or less"),
        ("groupwise(ranker, weight=1.5)", "weight must be 1 or less"),
        ("groupwise(ranker, weight=nan)", "weight=nan is not a number"),
        ("groupwise(ranker, groups=sort)", "did you mean sorted"),
        ("groupwise(ranker, seed=x)", "not a whole number"),
    ],
)
def test_user_mistakes_give_a_one_line_error(tmp_path, spec, says):
    with pytest.raises(UserError, match=says):
        rerank(spec, in_scores, graded([1.0]), tmp_path)

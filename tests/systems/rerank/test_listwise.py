"""Listwise reranking: the result of a perfect LLM for any number of candidates, and wrong answers."""

import pytest

from r2med import UserError
from r2med.models.llm.chat import Failure
from r2med.systems.rerank.listwise import windows
from support.llm_rerankers import graded, in_order, permutation, places, rerank, shown, true_order, worths


@pytest.mark.parametrize("count", [2, 7, 19, 20, 21, 25, 30, 95])
def test_after_one_round_the_best_are_at_the_top_in_their_order(tmp_path, count):
    """The best `window - step` candidates are in order, or all of them if one window contains all."""
    worth = permutation(count)
    reranked, _ = rerank("listwise(ranker)", in_order, graded(worth), tmp_path)
    promised = count if count <= 20 else 10
    assert places(reranked.run)[:promised] == true_order(worth)[:promised]
    assert sorted(places(reranked.run)) == list(range(count))
    assert (reranked.failures, reranked.repairs, reranked.notices) == (0, {}, ())


@pytest.mark.parametrize(("count", "window", "step"), [(25, 20, 10), (95, 20, 10), (23, 6, 4), (17, 5, 1), (9, 4, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_each_round_puts_the_same_number_of_documents_into_order(tmp_path, count, window, step, seed):
    worth = permutation(count, seed)
    for rounds in (1, 2, -(-count // (window - step))):
        spec = f"listwise(ranker, window={window}, step={step}, rounds={rounds})"
        reranked, _ = rerank(spec, in_order, graded(worth), tmp_path)
        right = min(count, rounds * (window - step))
        assert places(reranked.run)[:right] == true_order(worth)[:right]


def test_one_round_does_not_sort_everything(tmp_path):
    worth = [float(place) for place in range(40)]  # the worst order there is
    reranked, _ = rerank("listwise(ranker)", in_order, graded(worth), tmp_path)
    assert places(reranked.run)[:10] == true_order(worth)[:10]
    assert places(reranked.run) != true_order(worth)


def test_windows_go_from_bottom_to_top_and_the_top_one_has_the_full_size():
    assert windows(45, 20, 10) == [(25, 45), (15, 35), (5, 25), (0, 20)]
    assert windows(20, 20, 10) == [(0, 20)]
    assert windows(21, 20, 10) == [(1, 21), (0, 20)]
    assert windows(7, 20, 10) == [(0, 7)]
    assert windows(1, 20, 10) == windows(0, 20, 10) == []


def test_all_queries_are_asked_in_parallel_and_one_candidate_needs_no_call(tmp_path):
    reranked, llm = rerank("listwise(ranker)", in_order, graded(permutation(25), permutation(7), [1.0], []), tmp_path)
    assert llm.batches == [2, 1]
    assert [len(shown(request)) for request in llm.asked] == [20, 7, 20]
    assert reranked.cost.calls == 3
    assert [len(found) for _, found in reranked.run] == [25, 7, 1, 0]


def test_a_window_shows_its_documents_in_their_current_order(tmp_path):
    worth = [float(place) for place in range(30)]
    _, llm = rerank("listwise(ranker)", in_order, graded(worth), tmp_path)
    first, second = (list(shown(request).values()) for request in llm.asked)
    assert first == [f"document {place} of query 0, worth {float(place)}" for place in range(10, 30)]
    assert second == [
        f"document {place} of query 0, worth {float(place)}" for place in [*range(10), *range(29, 19, -1)]
    ]


def test_documents_below_the_depth_stay_after_the_reranked_part(tmp_path):
    worth = permutation(30)
    reranked, llm = rerank("listwise(ranker)@12", in_order, graded(worth), tmp_path)
    assert places(reranked.run) == true_order(worth[:12]) + list(range(12, 30))
    assert len(llm.asked) == 1


def test_a_failed_window_stays_as_it_is_and_is_counted(tmp_path):
    worth = [float(place) for place in range(30)]

    def reply(request):
        top = 0.0 in worths(request).values()
        return Failure("server", "HTTP 500\nfrom  there", attempts=3, seconds=2.0) if top else in_order(request)

    reranked, _ = rerank("listwise(ranker)", reply, graded(worth), tmp_path)
    assert places(reranked.run) == [*range(10), *range(29, 9, -1)]  # the first window's order, and no other
    assert (reranked.failures, reranked.failure_kinds) == (1, {"server": 1})
    assert "1 of 2 calls gave no usable order (1 server); their documents keep their positions" in reranked.notices[0]
    assert reranked.notices[1].endswith("server: HTTP 500 from there")
    assert reranked.cost.seconds > 2.0


@pytest.mark.parametrize(
    "answer", ["I would rather not.", "第三段最相关。", '{"ranking": {"best": "none"}}', "{}", "[0]"]
)
def test_an_answer_without_passages_is_a_failure_that_quotes_the_answer(tmp_path, answer):
    reranked, _ = rerank("listwise(ranker)", lambda _: answer, graded(permutation(5)), tmp_path)
    assert places(reranked.run) == [0, 1, 2, 3, 4]
    assert (reranked.failures, reranked.failure_kinds) == (1, {"invalid": 1})
    assert any(answer in notice for notice in reranked.notices)
    assert reranked.cost.completion_tokens == 5  # it was paid for


def test_repairs_of_all_windows_are_counted_by_kind(tmp_path):
    data = graded([0.0] * 4, [0.0] * 4)
    reranked, _ = rerank("listwise(ranker)", lambda _: "[4] > [4] > [9] > [2]", data, tmp_path)
    assert [places(reranked.run, query) for query in (0, 1)] == [[3, 1, 0, 2]] * 2
    assert (reranked.failures, reranked.repairs) == (0, {"invented": 2, "missing": 4, "repeated": 2})


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("listwise(ranker, window=1)", "window must be 2 or more"),
        ("listwise(ranker, step=0)", "step must be 1 or more"),
        ("listwise(ranker, step=21)", "would leave documents out"),
        ("listwise(ranker, rounds=0)", "rounds must be 1 or more"),
        ("listwise(ranker, windw=3)", "did you mean window"),
        ("listwise(ranker, window=many)", "not a whole number"),
        ("listwise(ranker, scores=shw)", "did you mean show"),
        ("listwise(ranker, query=both)", "original or expanded"),
        ("listwise(ranker, words=-1)", "words must be 0 or more"),
        ("listwise", "needs the name of an LLM"),
        ("listwise(ranker)@0", "depth must be 1 or more"),
        ("listwise(ranker, rounds=1000000000)", "rounds must be 100 or less"),
        ("listwise(ranker, words=1000000000)", "words must be 100000 or less"),
        ("listwse(ranker)", "did you mean listwise"),
    ],
)
def test_user_mistakes_give_a_one_line_error(tmp_path, spec, says):
    with pytest.raises(UserError, match=says) as error:
        rerank(spec, in_order, graded([1.0]), tmp_path)
    assert "\n" not in str(error.value)


def test_a_notice_counts_passages_that_were_not_ranked(tmp_path):
    reranked, _ = rerank("listwise(ranker)", lambda _: "[2] > [1]", graded(permutation(20)), tmp_path)
    assert reranked.repairs == {"missing": 18}
    assert "18 passages were shown but not ranked" in reranked.notices[0]
    reranked, _ = rerank("listwise(ranker)", lambda _: "[2] > [1]", graded(permutation(3)), tmp_path / "one")
    assert "1 passage was shown but not ranked" in reranked.notices[0]


@pytest.mark.parametrize("method", ["listwise(ranker)", "groupwise(ranker)"])
def test_a_model_that_parrots_its_prompt_is_refused(tmp_path, method):
    """Otherwise the example in the prompt would be read as an order of two of twenty passages."""
    reranked, llm = rerank(method, lambda request: request.messages[-1].content, graded(permutation(20)), tmp_path)
    assert reranked.failures == len(llm.asked) > 0
    assert reranked.failure_kinds == {"invalid": len(llm.asked)}
    assert places(reranked.run) == list(range(20))


def test_an_answer_that_ranks_all_passages_is_valid_even_if_it_repeats_the_prompt(tmp_path):
    worth = permutation(5)
    reranked, _ = rerank(
        "listwise(ranker)", lambda asked: f"{asked.messages[-1].content}\n\n{in_order(asked)}", graded(worth), tmp_path
    )
    assert reranked.failures == 0
    assert places(reranked.run) == true_order(worth)

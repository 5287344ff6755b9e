"""Costs of answers, counts of failures, and cost estimates of requests."""

import pytest

from r2med.models.llm.chat import Failure, Generation
from r2med.models.llm.costs import answers_cost, failure_kinds, failure_notices, plan_requests
from r2med.models.llm.llm_cards import LLMCard, Price
from support.chat_models import ask, card
from support.scripted_chat import ScriptedChat

FAILED = [
    Failure("server", "down"),
    Failure("empty", "x" * 300, prompt_tokens=2, completion_tokens=3),
    Failure("budget", "no money", attempts=0),
]


def test_failed_requests_count_in_the_cost_if_they_were_sent() -> None:
    answers = [Generation("a", prompt_tokens=5, completion_tokens=7, seconds=2.0), *FAILED]
    cost = answers_cost(answers, card(), cut=4)
    assert (cost.calls, cost.prompt_tokens, cost.completion_tokens, cost.cut) == (3, 7, 10, 4)
    assert (cost.dollars, cost.unpriced, cost.seconds) == (17.0, 0, 2.0)


def test_only_an_endpoint_without_a_price_has_an_unknown_cost() -> None:
    answers = [Generation("a"), Failure("budget", "not asked", attempts=0)]
    assert answers_cost(answers, LLMCard(name="m", model="m")).unpriced == 1
    assert answers_cost(answers, LLMCard(name="m", model="m", price=Price())).unpriced == 0
    assert answers_cost(answers, LLMCard(name="m", model="m", backend="local")).unpriced == 0


def test_failures_are_reported_by_kind_with_the_first_reason_of_each() -> None:
    assert failure_kinds(FAILED) == {"budget": 1, "empty": 1, "server": 1}
    first, *reasons = failure_notices("3 answers failed", FAILED)
    assert first == "3 answers failed (1 budget, 1 empty, 1 server)"
    assert [reason[:16] for reason in reasons] == ["budget: no money", "empty: xxxxxxxxx", "server: down"]
    assert all(len(reason) < 210 for reason in reasons)
    assert failure_notices("none", [Generation("a")]) == []


def test_previews_of_several_datasets_add_up_and_ask_nothing() -> None:
    llm = ScriptedChat(lambda request: "text")
    first = plan_requests(card(), ask("a", "b", "b"), llm.unanswered(ask("a", "b")), cut=1, note="about")
    both = first + plan_requests(card(), ask("b", "c"), unfit=2)
    assert [len(first.requests), len(both.requests), both.calls] == [2, 3, 3]
    assert (both.cut, both.unfit, both.note) == (1, 2, "about")
    assert llm.asked == []
    together = plan_requests(card(), ask("a", "b", "c"))
    assert (both.prompt_tokens, both.completion_tokens) == (together.prompt_tokens, together.completion_tokens)
    assert (both.dollars, both.dollars_at_most) == pytest.approx((together.dollars, together.dollars_at_most))


def test_a_request_in_two_plans_counts_once_whether_it_has_an_answer_or_not() -> None:
    asked = plan_requests(card(), ask("a", "b", "c"), ask("a"))
    assert (asked.calls, asked.answered, asked.unanswered) == (1, 2, tuple(ask("a")))
    both = asked + asked
    assert (both.calls, both.answered, len(both.asked), both.dollars) == (1, 2, 3, pytest.approx(asked.dollars))
    apart = asked.totals + asked.totals
    assert (apart.calls, apart.answered, apart.asked) == (2, 4, ())


def test_a_sum_with_an_unknown_price_is_unknown() -> None:
    unpriced = plan_requests(LLMCard(name="m", model="m"), ask("a"))
    assert unpriced.dollars is None and unpriced.prompt_tokens
    assert (plan_requests(card(), ask("b")) + unpriced).dollars is None
    assert plan_requests(LLMCard(name="m", model="m", backend="local"), ask("a")).dollars == 0

"""Costs of answers, counts of failures, and cost estimates of requests."""

from r2med.models.llm.chat import Failure, Generation
from r2med.models.llm.costs import answers_cost, failure_kinds, failure_notices
from r2med.models.llm.llm_cards import LLMCard, Price
from support.chat_models import card

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

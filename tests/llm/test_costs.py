"""What answers took: tokens, dollars where the price is known, and the first reason of each kind of failure."""

from r2med.llm.chat import Failure, Generation
from r2med.llm.costs import usage_of
from r2med.llm.llm_cards import LLMCard, Price

ANSWERS = [Generation("a", prompt_tokens=10, completion_tokens=5, seconds=1.0), Failure("budget", "not asked", 0)]


def test_a_price_that_is_not_known_is_not_a_price_of_nothing():
    priced = LLMCard(name="m", model="org/m", price=Price(prompt=1e6, completion=2e6))
    assert usage_of(ANSWERS, priced, 0)["cost_usd"] == 20.0
    assert "unpriced" not in usage_of(ANSWERS, priced, 0)
    assert usage_of(ANSWERS, LLMCard(name="m", model="org/m"), 0)["unpriced"] == 1
    assert "unpriced" not in usage_of(ANSWERS, LLMCard(name="m", model="m", backend="local"), 0)

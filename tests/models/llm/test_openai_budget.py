"""LLMs behind an endpoint: estimates, and a budget in dollars that stops cleanly and can be continued."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.chat import Failure, Generation
from r2med.models.llm.costs import answers_cost, approximate_tokens
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import LLMCard, Price
from support import chat_server as api
from support.chat_models import ask, card, numbered, one, opened, setup, texts
from support.chat_server import Server

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_a_budget_stops_cleanly_and_a_larger_one_continues(server: Server, home: Path) -> None:
    chat = opened(server, home, budget=200.0)  # $12 each by the bill, up to $66 before it is known
    outcomes = chat.complete(numbered(30))
    done = [o for o in outcomes if isinstance(o, Generation)]
    left = [o for o in outcomes if isinstance(o, Failure)]
    assert {o.kind for o in left} == {"budget"} and "larger budget" in left[0].message
    assert answers_cost(outcomes, card()).dollars == 12 * len(done) <= 200
    assert len(done) >= 11, "reservations are settled by the bill"
    assert len(done) == len(server.requests)
    texts(opened(server, home, budget=10_000.0).complete(numbered(30)))
    assert set(server.served.values()) == {1}


def test_a_budget_of_zero_sends_nothing(server: Server, home: Path) -> None:
    one(opened(server, home, budget=0.0, price=Price()).complete(ask("gout")), "budget")
    assert not server.requests


def test_a_budget_is_shared_by_all_models_of_a_run(server: Server, home: Path) -> None:
    shared = setup(server, home, 65.0)
    texts(open_chat(card(), shared).complete(ask("gout")))
    one(open_chat(card(model="other"), shared).complete(ask("gout")), "budget")
    assert len(server.requests) == 1


def test_a_budget_needs_a_price() -> None:
    with pytest.raises(UserError, match="has no price"):
        open_chat(LLMCard(name="m", model="m"), Runtime(budget=1.0))


def test_tokens_are_a_quarter_of_the_bytes() -> None:
    assert approximate_tokens("") == 0 and approximate_tokens("word" * 10) == 10 and approximate_tokens("痛风痛风") == 3


def test_an_interrupted_answer_is_paid_for_up_to_its_end(server: Server, home: Path) -> None:
    server.plan = {"gout": [api.close_half_way]}
    paid = setup(server, home, 1000.0)
    texts(open_chat(card(), paid).complete(ask("gout")))
    whole = setup(server, home / "other", 1000.0)
    texts(open_chat(card(), whole).complete(ask("gout")))
    prompt, written = (7 + 4) + (1 + 4), 3  # tokens, about: of both messages, of "Half a pass"
    assert paid.budget.spent == whole.budget.spent + prompt + written


def test_lost_tokens_count_in_a_failure(server: Server, home: Path) -> None:
    server.plan = {"gout": [api.close_half_way] * 2}
    first, failed = opened(server, home, concurrency=1, attempts=2).complete(ask("asthma", "gout"))
    assert isinstance(first, Generation)
    failure = one([failed], "connection")
    assert (failure.prompt_tokens, failure.completion_tokens) == (2 * 16, 2 * 3)

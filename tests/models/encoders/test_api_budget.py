"""Encoders behind an API: a budget in dollars that stops cleanly and can be continued."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.budget import Budget
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.api_encoder import ApiEncoder
from r2med.models.encoders.model_cards import ModelCard
from support import embedding_server as api
from support.api_encoders import TEXTS, WORDS, card, opened
from support.embedding_server import Server

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_a_budget_stops_cleanly_and_a_larger_one_continues(server: Server, home: Path, small_requests: None) -> None:
    texts = [f"text number {i}" for i in range(20)]  # $3 each, by the server's bill
    encoder = opened(server, home, budget=40.0)
    with pytest.raises(
        UserError, match=r"budget of \$40.*\$\d+\.\d+ spent, (\d+) texts remain.*larger budget"
    ) as error:
        encoder.encode(texts, "document")
    paid = len(server.requests)
    assert f"{20 - paid} texts remain" in str(error.value)
    assert encoder._budget.spent == 3 * paid <= 40
    assert paid >= 8, "reservations by bytes ($13 to $14 each) are settled by the bill"
    opened(server, home, budget=1000.0).encode(texts, "document")
    assert set(server.served.values()) == {1}


def test_a_budget_of_zero_sends_nothing(server: Server, home: Path) -> None:
    for changes in ({}, {"price_per_million_tokens": 0.0}):
        with pytest.raises(UserError, match=r"budget of \$0 .* 3 texts remain"):
            opened(server, home, budget=0.0, **changes).encode(TEXTS, "document")
    assert not server.requests


def test_a_budget_is_shared_by_all_encoders_of_a_run(server: Server, home: Path) -> None:
    options = Runtime(endpoints=(("openai", server.address), ("voyage", server.address)), budget=70.0)
    one = ApiEncoder(card("openai"), WORDS, options, Store(home))
    cost = one.encode(["one two three four five six"] * 2 + ["a b c d e f g h i"], "document").cost
    assert cost.dollars == options.budget.spent == 15
    two = ApiEncoder(card("voyage"), WORDS, options, Store(home))
    with pytest.raises(UserError, match=r"\$15\.0+ spent, 1 texts remain"):
        two.encode(["0123456789" * 4], "document")
    assert len(server.requests) == 1


def test_failed_requests_do_not_use_the_budget(server: Server, home: Path) -> None:
    server.script = [api.refuse(400)]
    encoder = opened(server, home, budget=30.0)
    with pytest.raises(UserError, match="HTTP 400"):
        encoder.encode(TEXTS, "document")
    encoder.encode(TEXTS, "document")


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_an_invalid_budget_is_refused(limit: float) -> None:
    with pytest.raises(UserError, match="number of dollars"):
        Budget(limit)


def test_a_budget_needs_a_price(server: Server, home: Path) -> None:
    free = card().model_dump(exclude={"price_per_million_tokens"})
    with pytest.raises(UserError, match="price_per_million_tokens"):
        ApiEncoder(ModelCard(**free), WORDS, Runtime(budget=1.0), Store(home))

"""Encoders behind an API: no text is paid for twice, even after kills, damage and parallel runs."""

import signal
import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen

import numpy as np
import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.request_loop import Policy
from r2med.models.encoders.model_cards import Side
from support import embedding_server as api
from support.api_encoders import TEXTS, card, expected, opened
from support.embedding_server import Server
from support.keys import KEY
from support.processes import PATIENCE, started, wait_for

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_a_second_encoder_sends_nothing_and_needs_no_key(
    server: Server, home: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(server, home, provider).encode(TEXTS, "document")
    count = len(server.requests)
    monkeypatch.delenv(f"{provider.upper()}_API_KEY")
    encoder = opened(server, home, provider, budget=0.0)
    again = encoder.encode([*TEXTS, TEXTS[0]], "document")
    np.testing.assert_array_equal(again.vectors, [*first.vectors, first.vectors[0]])
    assert len(server.requests) == count
    assert again.cost.texts == 4
    assert (again.cost.tokens, again.cost.dollars) == (first.cost.tokens, first.cost.dollars), "as when it was paid for"
    assert encoder._budget.spent == 0


def test_only_missing_texts_are_sent(server: Server, home: Path) -> None:
    opened(server, home).encode(TEXTS[:2], "document")
    encoder = opened(server, home)
    np.testing.assert_array_equal(encoder.encode(TEXTS, "document").vectors, expected(TEXTS))
    assert server.requests[-1].texts == TEXTS[2:]


def test_answers_of_another_model_role_or_server_are_not_used(server: Server, home: Path) -> None:
    opened(server, home, "voyage").encode(["gout"], "document")
    opened(server, home, "voyage", repository="other").encode(["gout"], "document")
    opened(server, home, "voyage", document=Side(input_type="query")).encode(["gout"], "document")
    assert len(server.requests) == 3
    with api.serve() as other:
        opened(other, home, "voyage").encode(["gout"], "document")
        assert len(other.requests) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE embeddings SET value = substr(value, 1, 36)",
        "DELETE FROM embeddings",
    ],
)
def test_a_row_that_is_missing_or_cannot_be_read_is_fetched_again(server: Server, home: Path, damage: str) -> None:
    opened(server, home).encode(TEXTS, "document")
    with sqlite3.connect(home / "api" / "openai.sqlite") as db:
        db.execute(damage)
    db.close()
    np.testing.assert_array_equal(opened(server, home).encode(TEXTS, "document").vectors, expected(TEXTS))
    opened(server, home).encode(TEXTS, "document")
    assert len(server.requests) == 2


def test_an_invalid_cache_file_stops_the_command_and_nothing_is_paid(server: Server, home: Path) -> None:
    file = home / "api" / "openai.sqlite"
    file.parent.mkdir(parents=True)
    file.write_bytes(content := b"not a database, but somebody's work" * 99)
    with pytest.raises(UserError, match=r"openai.sqlite: this cache of API answers is damaged .*\.recover"):
        opened(server, home).encode(TEXTS, "document")
    assert file.read_bytes() == content
    assert server.requests == []


CHILD = """
import sys
import numpy as np
from support.embedding_server import vector
from r2med.data.dataset_cards import Instruction
from r2med.models.encoders import api_encoder
from r2med.models.encoders.model_cards import ModelCard
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store

card, address, home = ModelCard.model_validate_json(sys.argv[1]), sys.argv[2], sys.argv[3]
api_encoder.batches = lambda pending, _: [list(pending[i : i + 2]) for i in range(0, len(pending), 2)]
setup = Runtime(endpoints=((card.loader, address),), concurrency=4)
encoder = api_encoder.ApiEncoder(card, Instruction(kind="", what="", domain=""), setup, Store(home))
texts = [f"text {i}" for i in range(60)]
try:
    np.testing.assert_array_equal(encoder.encode(texts, "document").vectors, [vector(text) for text in texts])
except KeyboardInterrupt:
    sys.exit(77)
"""


def child(server: Server, home: Path, provider: str = "openai") -> AbstractContextManager[Popen[str]]:
    arguments = ["-c", CHILD, card(provider).model_dump_json(), server.address, home]
    return started(arguments, OPENAI_API_KEY=KEY, VOYAGE_API_KEY=KEY, PYTHONPATH=Path(__file__).parents[2])


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "number"), [("openai", signal.SIGKILL), ("voyage", signal.SIGINT)])
def test_a_killed_run_is_not_paid_for_twice(server: Server, home: Path, provider: str, number: signal.Signals) -> None:
    server.otherwise = api.answer(delay=0.05)
    with child(server, home, provider) as first:
        wait_for(lambda: len(server.served) >= 16)
        server.otherwise = api.hang  # what is under way now is lost, and all that is lost
        wait_for(lambda: server.at_once == 4 and len(server.requests) * 2 - len(server.served) == 8)
        first.send_signal(number)
        first.communicate(timeout=Policy.idle / 2)
    assert first.returncode == (77 if number == signal.SIGINT else -number)
    before = dict(server.served)
    server.otherwise = None
    second, texts = opened(server, home, provider), [f"text {i}" for i in range(60)]
    np.testing.assert_array_equal(second.encode(texts, "document").vectors, expected(texts))
    assert before and len(server.served) == 60 and set(server.served.values()) == {1}


def test_two_processes_share_a_cache(server: Server, home: Path) -> None:
    server.otherwise = api.answer(delay=0.03)
    with child(server, home) as one, child(server, home) as two:
        results = [process.communicate(timeout=PATIENCE) for process in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), results
    assert len(server.served) == 60
    assert opened(server, home).encode([f"text {i}" for i in range(60)], "document").vectors.shape == (60, 8)
    assert set(server.served.values()) == {1}, "what one fetches the other does not ask for"

"""One budget covers all costs, in any order of models."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.models.encoders.api_encoder import ApiEncoder
from r2med.models.llm.journaled import open_chat
from support.api_encoders import WORDS, patient
from support.api_encoders import card as model_card
from support.chat_models import ask, card, one, setup, texts
from support.chat_server import Server as ChatServer
from support.embedding_server import Server as EmbeddingServer

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_the_cost_of_an_llm_reduces_the_budget_for_embeddings(
    chat_server: ChatServer, embedding_server: EmbeddingServer, home: Path
) -> None:
    shared = setup(chat_server, home, 65.0).with_settings(endpoints=(("openai", embedding_server.address),))
    texts(open_chat(card(), shared).complete(ask("gout")))
    assert shared.budget.spent == 10
    encoder = patient(ApiEncoder(model_card("openai"), WORDS, shared, Store(home)))
    with pytest.raises(UserError, match=r"budget of \$65 .* \$10\.0+ spent, 1 texts remain"):
        encoder.encode(["0123456789" * 6], "document")
    assert not embedding_server.requests


def test_the_cost_of_embeddings_reduces_the_budget_for_an_llm(
    chat_server: ChatServer, embedding_server: EmbeddingServer, home: Path
) -> None:
    shared = setup(chat_server, home, 65.0).with_settings(endpoints=(("openai", embedding_server.address),))
    patient(ApiEncoder(model_card("openai"), WORDS, shared, Store(home))).encode(
        ["one two three four five six seven"], "document"
    )
    assert shared.budget.spent > 0
    one(open_chat(card(), shared).complete(ask("gout")), "budget")
    assert not chat_server.requests

"""Reranker cards: the published settings of the benchmark, and invalid cards."""

import pytest
from pydantic import ValidationError

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.errors import UserError
from r2med.models.crossencoders.reranker_cards import RERANKERS, RerankerCard
from r2med.models.encoders.model_cards import MODELS
from r2med.models.encoders.weights import COMMIT_PATTERN


@pytest.mark.parametrize(
    ("name", "repository", "logit", "tokens"),
    [
        ("bge-reranker", "BAAI/bge-reranker-v2-m3", "only", 512),
        ("monobert", "castorini/monobert-large-msmarco", "second", 512),
        ("rankllama", "castorini/rankllama-v1-7b-lora-passage", "only", 1024),
    ],
)
def test_the_three_rerankers_of_the_benchmark_have_published_settings(name, repository, logit, tokens):
    card = RERANKERS[f"{name}:published"]
    assert (card.repository, card.logit, card.max_tokens, card.loader) == (repository, logit, tokens, "classifier")
    assert card.cut_query == "end"
    right = RERANKERS[name]
    assert right.cut_query == "middle" and right.max_tokens >= tokens
    changes = {"variant": card.variant, "cut_query": "end", "max_tokens": tokens}
    assert right.model_copy(update=changes) == card, "nothing else differs"


def test_rankllama_is_an_adapter_with_words_before_both_texts():
    card = RERANKERS["rankllama"]
    assert card.base == "meta-llama/Llama-2-7b-hf"
    assert (card.query, card.document, card.join) == ("query: {query}", "document: {document}", "bos")


def test_every_card_has_size_licence_and_notes():
    for card in RERANKERS.values():
        assert card.repository and card.licence
        assert card.notes if card.is_api else (card.architecture and card.parameters and card.max_tokens)
    assert not set(RERANKERS) & set(MODELS), "a name is a retriever or a reranker"


def test_a_query_template_is_filled_with_the_words_of_the_dataset():
    words = Instruction(kind="post", what="passages", domain="Biology")
    card = RerankerCard(name="x", loader="yes-no", query="Given a {kind}, find {what} ({domain}): {query}?")
    assert card.query_parts(words) == ("Given a post, find passages (Biology): ", "?")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"query": "no place"}, "must contain {query} once"),
        ({"query": "{query}{query}"}, "must contain {query} once"),
        ({"document": "{document} end"}, "once, at its end"),
        ({"before": "system"}, 'need join = "none" or "bos"'),
        ({"max_length": 3}, "Extra inputs"),
        ({"loader": ["vllm"]}, "loader"),
    ],
)
def test_the_error_for_an_invalid_card_says_why(settings, message):
    with pytest.raises(ValidationError, match=message):
        RerankerCard(**{"name": "x", "loader": "classifier", **settings})


def test_cards_are_read_from_a_users_folder(tmp_path, monkeypatch):
    (tmp_path / "rerankers").mkdir()
    (tmp_path / "rerankers" / "mine.toml").write_text('repository = "org/mine"\nloader = "classifier"\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    assert RERANKERS.card("mine").repository == "org/mine"
    (tmp_path / "other" / "rerankers").mkdir(parents=True)
    (tmp_path / "other" / "rerankers" / "odd.toml").write_text('loader = "magic"\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "other"))
    with pytest.raises(UserError, match=r"odd.toml: loader: "):
        RERANKERS.card("mine")


@pytest.mark.parametrize("number", ["-1", "9" * 5000, "1.5", "'many'"])
def test_the_error_for_an_invalid_limit_names_the_card(tmp_path, monkeypatch, number):
    (tmp_path / "rerankers").mkdir()
    (tmp_path / "rerankers" / "odd.toml").write_text(f'loader = "classifier"\nmax_tokens = {number}\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    with pytest.raises(UserError, match=r"odd\.toml: ") as caught:
        RERANKERS.card("odd")
    assert "\n" not in str(caught.value)


def test_every_reranker_with_weights_but_two_is_pinned_to_a_commit():
    with_weights = {name: card for name, card in RERANKERS.items() if not card.is_api}
    pins = {name: (card.revision, *([card.base_revision] if card.base else [])) for name, card in with_weights.items()}
    floating = {name for name, commits in pins.items() if not all(map(COMMIT_PATTERN.fullmatch, commits))}
    assert {name.partition(":")[0] for name in floating} == {"monobert", "rankt5-3b"}  # no public source names it

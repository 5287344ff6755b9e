"""Every model of the benchmark against a plain computation of what its original does, and of what is right."""

import base64
import json
import re
from itertools import product

import numpy as np
import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from r2med.data.dataset_cards import cards as dataset_cards
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import MODELS
from support import embedding_server
from support.by_day import some_by_day
from support.original import ENCODERS, LONG, SHORT, TASKS

DATASETS = ("Biology", "MedQA-Diag", "IIYi-Clinical")
ROLES = ("query", "document", "generated")
APIS = ("openai", "voyage")
LOCAL = [name for name in ENCODERS if name not in APIS]
both_variants = pytest.mark.parametrize("published", [False, True], ids=["default", "published"])


def card_of(name, published):
    """Return a model's card; where the published rows were made as by default, there need be no variant."""
    variant = f"{name}:published"
    card = MODELS.card(variant if published and variant in MODELS else name)
    # The tiny model's code runs with every release, and its random weights know no pairs.
    return card.model_copy(update={"transformers": "", "known_pairs": ()})


def opened(name, dataset, published, store=None, **settings):
    # Small batches: short texts are not padded to the length of a long one.
    setup = Runtime(device="cpu", dtype="float32", trust_remote_code=True, tokens_per_batch=500, **settings)
    return open_encoder(card_of(name, published), dataset_cards()[dataset].instruction, setup, store)


@pytest.mark.parametrize("name", some_by_day(LOCAL, 3))
def test_queries_documents_and_generated_texts_are_encoded_as_by_the_original(name, encoder_weights):
    folder, texts, compared = encoder_weights(name), [*SHORT, LONG], []
    for published, dataset, role in product((False, True), DATASETS, ROLES):
        encoder = opened(name, dataset, published, model_paths=((name, folder),))
        case = (ENCODERS[name].treatment(role, dataset, published), encoder.key(role))
        if case in compared:
            continue  # as it was for another dataset or by default, there and here
        compared.append(case)
        vectors = encoder.encode(texts, role).vectors
        wanted = [ENCODERS[name].vector(folder, text, role, dataset, published).numpy() for text in texts]
        told = f"{role} of {dataset}, {'published' if published else 'default'}"
        np.testing.assert_allclose(vectors, wanted, rtol=2e-4, atol=3e-5, err_msg=told)


@both_variants
@pytest.mark.parametrize("name", LOCAL)
def test_all_eight_datasets_have_the_original_s_prompts(name, published, encoder_weights):
    for dataset in TASKS:
        encoder = opened(name, dataset, published, model_paths=((name, encoder_weights(name)),))
        for role in ROLES:
            wanted = ENCODERS[name].treatment(role, dataset, published)
            told = encoder.key(role)
            assert (told["prefix"], told["max_tokens"]) == (wanted.prefix, wanted.limit), (role, dataset)


@pytest.mark.parametrize("name", ENCODERS)
def test_published_rows_are_by_cosine_and_defaults_by_what_a_model_was_trained_for(name):
    assert card_of(name, published=False).similarity == ENCODERS[name].similarity
    assert card_of(name, published=True).similarity == "cosine"


PIECES = r"\s*\S+|\s+"
"""What is a token to the APIs here: a word with the blanks before it."""


class TikToken:
    """As much of a tiktoken encoding as cutting a text takes."""

    def encode(self, text, **_):
        return re.findall(PIECES, text)

    def decode_bytes(self, tokens):
        return "".join(tokens).encode()


def hub_tokenizer(file):
    """Save the same as a tokenizer of the hub."""
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECES), "isolated")
    tokenizer.save(str(file))
    return str(file)


def sent_for(text, how):
    """Return what the original sends for a text: quoted first, where it is, and then cut."""
    whole = json.dumps(text.replace("\n", " ")) if how.quoted else text
    return "".join(re.findall(PIECES, whole)[: how.limit])


@pytest.fixture
def api(monkeypatch, tmp_path):
    """An embedding API on loopback whose vectors tell which text they are of, as wide as the card says."""
    for variable in ("OPENAI_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.setenv(variable, "none")
    monkeypatch.setattr("tiktoken.get_encoding", lambda name: TikToken())
    file = hub_tokenizer(tmp_path / "tokenizer.json")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: file)
    with embedding_server.serve() as server:
        yield server


def as_wide_as(dimension):
    def rows(answered):
        for row in answered:
            narrow = np.frombuffer(base64.b64decode(row["embedding"]), dtype="<f4")
            row["embedding"] = base64.b64encode(np.tile(narrow, dimension // len(narrow)).tobytes()).decode()
        return answered

    return embedding_server.answer(rows)


@both_variants
@pytest.mark.parametrize("name", APIS)
def test_an_api_is_sent_what_the_original_sends(name, published, api, tmp_path):
    api.otherwise = as_wide_as(card_of(name, published).dimension)
    texts = [*SHORT, LONG, " ".join(map(str, range(20_000)))]
    for role in ROLES:
        api.requests.clear()
        # Another store for each role: a text that was sent before would be read from it.
        encoder = opened(name, "MedQA-Diag", published, Store(tmp_path / role), endpoints=((name, api.address),))
        vectors = encoder.encode(texts, role).vectors
        how = ENCODERS[name].treatment(role, "MedQA-Diag", published)
        wanted = [sent_for(text, how) for text in texts]
        assert sorted(text for request in api.requests for text in request.texts) == sorted(wanted)
        assert {request.body.get("input_type") or "" for request in api.requests} == {how.input_type}
        np.testing.assert_array_equal(vectors[:, :8], np.stack([embedding_server.vector(text) for text in wanted]))

"""sentence-transformers models: Instructor, and any other with its own prompts, against a plain computation."""

import json

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from r2med.data.dataset_cards import ANY_DATASET
from r2med.encoders.encoder import open_encoder
from r2med.encoders.model_cards import ModelCard, Side, resolve_card
from r2med.errors import UserError
from r2med.setup import Setup
from support import tiny_models
from support.tiny_models import TEXTS

QUERY_PREFIX = "Represent the {kind} for retrieval: "
PREFIX = "Represent the medical question for retrieval: "


def agree(found, wanted):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted.numpy(), rtol=2e-4, atol=2e-5)


def instructor(folder, **options):
    card = ModelCard(
        name="tiny",
        loader="sentence-transformers",
        pool_prompt=False,
        normalise=True,
        query=Side(prefix=QUERY_PREFIX, max_tokens=40),
        document=Side(max_tokens=20),
    )
    return open_encoder(card, ANY_DATASET, Setup(model_paths=(("tiny", folder),), **{"device": "cpu", **options}))


def plain_instructor(folder, texts, prefix, limit):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.T5EncoderModel.from_pretrained(folder, local_files_only=True).eval()
    dense = load_file(folder / "2_Dense/model.safetensors")["linear.weight"]
    skip = len(tokenizer(prefix.strip(), add_special_tokens=False)["input_ids"])
    rows = []
    for text in texts:
        ids = tokenizer(prefix + text, truncation=True, max_length=limit)["input_ids"]
        with torch.no_grad():
            states = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        row = dense @ states[skip:].mean(0)
        rows.append(row / row.norm())
    return torch.stack(rows)


def test_instructor_leaves_its_prompt_out_and_applies_its_dense_layer(tmp_path):
    folder = tiny_models.instructor(tmp_path / "instructor")
    found = instructor(folder)
    queries, documents = found.encode(TEXTS, "query"), found.encode(TEXTS, "document")
    agree(queries.vectors, plain_instructor(folder, TEXTS, PREFIX, 40))
    agree(documents.vectors, plain_instructor(folder, TEXTS, "", 20))
    assert queries.cost.texts == 10 and (queries.cost + documents.cost).cut >= 4


def test_instructor_in_any_batches_and_order(tmp_path):
    folder = tiny_models.instructor(tmp_path / "instructor")
    alone = instructor(folder, tokens_per_batch=1).encode(TEXTS, "query").vectors
    order = np.random.default_rng(0).permutation(len(TEXTS))
    shuffled = (
        instructor(folder, tokens_per_batch=100, device="cpu,cpu").encode([TEXTS[i] for i in order], "query").vectors
    )
    np.testing.assert_allclose(alone[order], shuffled, rtol=2e-4, atol=2e-5)


PROMPTS = {"prompts": {"query": "query: ", "passage": "passage: "}, "similarity_fn_name": "dot"}


def test_any_folder_runs_with_its_own_prompts_limit_and_similarity(tmp_path):
    folder = tiny_models.sentence_bert(tmp_path / "my model", **PROMPTS)
    card = resolve_card(f"path:{folder}")
    assert (card.name, card.similarity) == ("path-my-model", "dot")
    found = open_encoder(card, ANY_DATASET, Setup(device="cpu"))
    assert [found.describe(role)["prefix"] for role in ("query", "document", "generated")] == [
        "query: ",
        "passage: ",
        "",
    ]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    for role, prefix in (("query", "query: "), ("document", "passage: ")):
        rows = []
        for text in TEXTS:
            ids = tokenizer(prefix + text, truncation=True, max_length=40)["input_ids"]
            with torch.no_grad():
                rows.append(model(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0))
        agree(found.encode(TEXTS, role).vectors, torch.stack(rows))


def test_a_model_without_prompts_gets_none(tmp_path):
    card = resolve_card(f"path:{tiny_models.sentence_bert(tmp_path / 'bare')}")
    assert (card.query.prefix, card.document.prefix, card.similarity) == ("", "", "cosine")


def test_the_default_prompt_stands_in_for_a_missing_one(tmp_path):
    config = {"prompts": {"all": "text: "}, "default_prompt_name": "all"}
    card = resolve_card(f"path:{tiny_models.sentence_bert(tmp_path / 'bare', **config)}")
    assert card.query.prefix == card.document.prefix == "text: "


def test_a_model_that_does_more_than_tokenize_goes_through_the_library(tmp_path):
    folder = tiny_models.sentence_bert(tmp_path / "lower", **PROMPTS)
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Normalize"})
    (folder / "2_Dense").mkdir()
    (folder / "modules.json").write_text(json.dumps(modules))
    found = open_encoder(resolve_card(f"path:{folder}"), ANY_DATASET, Setup(device="cpu"))
    fast = found.encode(TEXTS, "query").vectors
    found._model().tokenizer = None  # as if a module were not one of those we know
    np.testing.assert_allclose(found.encode(TEXTS, "query").vectors, fast, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("path:nowhere", "there is no such folder"),
        ("hf:no-organisation", "hf:ORG/NAME"),
        ("hf:../../etc/passwd", "hf:ORG/NAME"),
    ],
)
def test_a_spec_that_names_nothing_is_one_line(spec, message):
    with pytest.raises(UserError, match=message):
        resolve_card(spec)

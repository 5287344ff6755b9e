"""sentence-transformers models: Instructor, and others with their own prompts, agree with a plain computation."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import encoded, parse
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders import openvino_engine
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import ModelCard, Side, resolve_card
from r2med.models.encoders.sentence import SentenceModel
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
    return open_encoder(card, ANY_DATASET, Runtime(model_paths=(("tiny", folder),), **{"device": "cpu", **options}))


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


def test_batches_and_order_do_not_change_instructor(tmp_path):
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
    found = open_encoder(card, ANY_DATASET, Runtime(device="cpu"))
    assert [found.key(role)["prefix"] for role in ("query", "document", "generated")] == [
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


def test_a_model_that_does_more_than_tokenize_uses_the_loop_of_the_library(tmp_path):
    folder = tiny_models.sentence_bert(tmp_path / "lower", **PROMPTS)
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Normalize"})
    (folder / "2_Dense").mkdir()
    (folder / "modules.json").write_text(json.dumps(modules))
    found = open_encoder(resolve_card(f"path:{folder}"), ANY_DATASET, Runtime(device="cpu"))
    fast = found.encode(TEXTS, "query").vectors
    found._model(found._card.query).tokenizer = None  # as if a module were not one of those we know
    np.testing.assert_allclose(found.encode(TEXTS, "query").vectors, fast, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_openvino_gives_the_same_vectors(tmp_path):
    pytest.importorskip("openvino")
    folder = tiny_models.sentence_bert(tmp_path / "bert", layers=1)
    plain, fast = (instructor(folder, backend=name) for name in ("torch", "openvino"))
    wanted, found = plain.encode(TEXTS, "query").vectors, fast.encode(TEXTS, "query").vectors
    assert ((wanted * found).sum(axis=1) >= 0.999).all()
    assert fast.key("query")["backend"] == "openvino"


class FixedLength:
    """An engine that reads only as many tokens as the example which it was traced with: longer texts come out wrong."""

    def __init__(self, model):
        self.model, self.config = model, model.config

    def __call__(self, **inputs):
        output = self.model(**inputs)
        output.last_hidden_state[:, 7:] = 0
        return output


class Unknown:
    """An engine that does not know the model's operations."""

    def __init__(self, model):
        raise NotImplementedError("aten::unknown")


@pytest.mark.parametrize(
    ("engine", "fault"), [(FixedLength, "gives other results than torch for"), (Unknown, "cannot convert")]
)
def test_an_architecture_that_another_engine_gets_wrong_is_refused(tmp_path, monkeypatch, engine, fault):
    pytest.importorskip("openvino")
    monkeypatch.setattr(openvino_engine, "CompiledModel", engine)
    encoder = instructor(tiny_models.instructor(tmp_path / "instructor"), backend="openvino")
    with pytest.raises(UserError, match=rf"--backend openvino\) {fault} T5EncoderModel.*; use .*--backend torch"):
        encoder.encode(TEXTS, "query")


def test_another_engine_is_refused_for_a_model_with_its_own_modules(tmp_path, monkeypatch):
    pytest.importorskip("openvino")
    folder = tiny_models.sentence_bert(tmp_path / "bert")
    monkeypatch.setattr("r2med.models.encoders.sentence.PLAIN_MODULES", {"Transformer"})
    message = r"backend \(--backend openvino\): model tiny has its own modules, which run only on torch"
    with pytest.raises(UserError, match=message):
        instructor(folder, backend="openvino").encode(["a"], "query")


@pytest.mark.parametrize("suffix", [".onnx", ".gguf"])
def test_a_folder_with_weights_only_for_other_programs_gives_a_one_line_error(tmp_path, suffix):
    folder = tiny_models.sentence_bert(tmp_path / "bert")
    (folder / "model.safetensors").rename(folder / f"model{suffix}")
    with pytest.raises(UserError, match=rf"only {suffix} files, which r2med cannot read; save the model there"):
        resolve_card(f"path:{folder}")


@pytest.mark.parametrize(
    ("name", "config", "card"),
    [
        ("e5-small-v2", {"hidden_size": 384}, "e5-small"),
        ("multilingual_E5_large", {"hidden_size": 1024}, "e5-large"),
        ("e5-mistral-7b-instruct", {"hidden_size": 4096}, "e5"),
        ("mine", {"_name_or_path": "BAAI/bge-base-en-v1.5", "hidden_size": 768}, "bge-base"),
        ("instructor-xl", {"d_model": 2048}, "inst-l or inst-xl"),
        ("gte-Qwen2-7B-instruct", {"hidden_size": 3584}, "gte-qwen2"),
    ],
)
def test_a_model_of_a_known_family_without_prompts_gives_a_warning(tmp_path, caplog, name, config, card):
    folder = tiny_models.sentence_bert(tmp_path / name)
    (folder / "config.json").write_text(json.dumps(config))
    for _ in range(3):
        resolve_card(f"path:{folder}")
    [line] = [record.getMessage() for record in caplog.records if record.name == "r2med"]
    first = card.split()[0]
    assert f"The card {card} has the prompts: r2med run {first} --model-path {first}={folder}" in line


@pytest.mark.parametrize("name", ["gte-small", "bge-m3", "mine", "the5th"])
def test_a_model_that_needs_no_prompts_gives_no_warning(tmp_path, caplog, name):
    resolve_card(f"path:{tiny_models.sentence_bert(tmp_path / name)}")
    resolve_card(f"path:{tiny_models.sentence_bert(tmp_path / 'e5-small', **PROMPTS)}")
    assert not caplog.records


def test_a_path_may_have_spaces_a_tilde_and_characters_of_the_grammar(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    name = "my own (model), v1+2"
    folder = tiny_models.sentence_bert(tmp_path / name)
    for typed in (f"~/{name}", encoded(str(folder)), f"~/{encoded(name)}"):
        assert resolve_card(f"path:{typed}").repository == str(folder)
    [[call]] = parse(f"path:{encoded(str(folder))}")
    assert resolve_card(call.name).repository == str(folder)
    [[one], [two]] = parse("path:~/two words → path:~/two words(query=expanded)")
    assert one.name == two.name == "path:~/two words"
    with pytest.raises(UserError, match="percent-encoded, as %2C for a comma"):
        parse("path:~/a, b")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("path:nowhere", "there is no such folder"),
        ("hf:no-organisation", "hf:ORG/NAME"),
        ("hf:../../etc/passwd", "hf:ORG/NAME"),
    ],
)
def test_an_invalid_spec_gives_a_one_line_error(spec, message):
    with pytest.raises(UserError, match=message):
        resolve_card(spec)


def test_the_limit_of_one_role_does_not_hold_for_another():
    limits = []
    model = SimpleNamespace(max_seq_length=512)
    model.encode = lambda texts, **settings: limits.append(model.max_seq_length) or np.ones((len(texts), 2))
    encoder = object.__new__(SentenceModel)
    encoder.replicas, encoder.limit = SimpleNamespace(first=SimpleNamespace(model=model)), 512
    card = SimpleNamespace(side=lambda role: Side(max_tokens=64 if role == "query" else 0), normalise=False)
    for role in ("query", "document", "query"):
        encoder.encode(["a"], card, role, "")
    assert limits == [64, 512, 64]

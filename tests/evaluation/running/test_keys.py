"""A result depends on everything that can change it: each kind of input is changed in place, in one store."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import r2med
from r2med.evaluation.records.record import Record
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store, reads
from r2med.foundation.text import analysers, search_languages
from r2med.models.llm.llama import LlamaBackend
from r2med.models.llm.llm_cards import LLMS
from support import tiny_models, tiny_rerankers
from support.by_day import some_by_day
from support.datasets import random_folder
from support.forgotten_modules import forget_modules

MODEL_CARD = """loader = "transformers"
pooling = "cls"
[query]
max_tokens = 48
prefix = "{kind}: "
[document]
max_tokens = 48
"""
RERANKER_CARD = """loader = "classifier"
repository = "org/adapter"
base = "org/base"
query = "query: {query}"
document = "document: {document}"
join = "bos"
logit = "only"
max_tokens = 96
"""


@dataclass
class Inputs:
    """A system on a dataset with its files, and the change of one of them."""

    root: Path
    data: Path
    system: str = "bm25"
    settings: dict[str, Any] = field(default_factory=dict)
    patch: pytest.MonkeyPatch | None = None

    def run(self, store: Path, out: Path) -> Record:
        """Return the record of the inputs as they are now."""
        forget_modules(self.root)
        settings = {"device": "cpu", "depth": 3, **self.settings, "store": Store(store)}
        results = r2med.run(self.system, str(self.data), out=out, **settings)
        assert not results.errors
        return results.records[0]

    def write(self, name: str, content: str) -> Path:
        """Write a file below the root."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file


Change = Callable[[], object]


def replaced(file: Path, old: str, new: str) -> Change:
    """Return a change of words in a file that leaves its size and times as they were, as far as a program can."""

    def change() -> None:
        before, times = file.read_text(), file.stat()
        assert old in before
        file.write_text(before.replace(old, new))
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    return change


def retrained(file: Path, part: str) -> Change:
    """Return a change of the weights whose names contain a word. The others stay as they are."""

    def change() -> None:
        tensors = load_file(file)
        chosen = [name for name in tensors if part in name]
        assert chosen
        torch.manual_seed(1)
        save_file(tensors | {name: torch.randn_like(tensors[name]) for name in chosen}, file, {"format": "pt"})

    return change


def weights(inputs: Inputs) -> Change:
    folder = tiny_models.sentence_bert(inputs.root / "model", layers=8)
    inputs.system = f"path:{folder}"
    file, ends = folder / "model.safetensors", 1 << 16
    change = retrained(file, "encoder.layer.3.attention")

    def in_the_middle() -> None:
        before = file.read_bytes()
        change()
        after = file.read_bytes()
        assert len(after) == len(before) > 3 * ends and after != before
        assert (after[:ends], after[-ends:]) == (before[:ends], before[-ends:]), "embeddings and pooler are as before"

    return in_the_middle


def tokenizer(inputs: Inputs) -> Change:
    folder = tiny_models.sentence_bert(inputs.root / "model", layers=1)
    inputs.system = f"path:{folder}"

    def change() -> None:
        content = json.loads((folder / "tokenizer.json").read_text())
        vocabulary = content["model"]["vocab"]
        letters = [
            word for word in vocabulary if len(word.removeprefix("##")) == 1 and word.removeprefix("##").isalpha()
        ]
        ids = [vocabulary[word] for word in letters]
        content["model"]["vocab"] = vocabulary | dict(zip(letters, reversed(ids), strict=True))
        (folder / "tokenizer.json").write_text(json.dumps(content))

    return change


def plugged(inputs: Inputs, kind: str, card: str, **paths: Path) -> Path:
    """Write a card into a plugin folder and name its weights."""
    assert inputs.patch is not None
    inputs.patch.setenv("R2MED_PLUGINS", str(inputs.root / "plugins"))
    inputs.settings["model_paths"] = {name.replace("_", "."): path for name, path in paths.items()}
    return inputs.write(f"plugins/{kind}/tinymatrix.toml", card)


def remote_code(inputs: Inputs) -> Change:
    folder = tiny_models.own_encode(inputs.root / "model")
    plugged(inputs, "models", 'loader = "remote-code"\n', tinymatrix=folder)
    inputs.system, inputs.settings["trust_remote_code"] = "tinymatrix", True
    return replaced(folder / "own.py", "/ 7", "/ 3")


def model_card(inputs: Inputs) -> Change:
    card = plugged(inputs, "models", MODEL_CARD, tinymatrix=tiny_models.bert(inputs.root / "model", layers=1))
    inputs.system = "tinymatrix"
    return replaced(card, '"cls"', '"mean"')


def adapter(inputs: Inputs) -> Change:
    base = tiny_rerankers.llama(inputs.root / "base")
    folder = tiny_rerankers.lora(inputs.root / "adapter", base)
    plugged(inputs, "rerankers", RERANKER_CARD, tinymatrix=folder, tinymatrix_base=base)
    inputs.system = "bm25 → tinymatrix"
    return retrained(folder / "adapter_model.safetensors", "lora_B")


def instruction(inputs: Inputs) -> Change:
    plugged(inputs, "models", MODEL_CARD, tinymatrix=tiny_models.bert(inputs.root / "model", layers=1))
    inputs.system = "tinymatrix"
    inputs.write("data/card.toml", '[instruction]\nkind = "post"\nwhat = "answers"\ndomain = "medicine"\n')
    return replaced(inputs.data / "card.toml", "post", "exam")


def precision(inputs: Inputs) -> Change:
    inputs.system = f"path:{tiny_models.sentence_bert(inputs.root / 'model', layers=1)}"
    return lambda: inputs.settings.update(dtype="bfloat16")


def scripted(inputs: Inputs, system: str, *rules: tuple[str, str]) -> None:
    """Use an LLM that answers by rules: the word of a prompt -> the answer."""
    lines = [json.dumps({"when": [word] if word else [], "answer": answer}) for word, answer in rules]
    script = inputs.write("script.jsonl", "\n".join(lines) + "\n")
    inputs.system, inputs.settings["model_paths"] = system, {"author": script}


def prompt_file(inputs: Inputs) -> Change:
    scripted(inputs, "bm25 → insertrank(author)@3", ("NEW RULE", "[3] > [2] > [1]"), ("", "[1] > [2] > [3]"))
    text = (Path(r2med.__file__).parent / "models/prompts/texts/insertrank.txt").read_text()
    file = inputs.write("prompts/insertrank.txt", text.replace("You are", "OLD RULE: You are"))
    inputs.settings["prompts"] = str(inputs.root / "prompts")
    return replaced(file, "OLD RULE", "NEW RULE")


def prompt_kind(inputs: Inputs) -> Change:
    scripted(inputs, "bm25 → groupwise(author)@3", ("", '{"1": 5, "2": 3, "3": 1}'))
    inputs.write("data/card.toml", 'kind = "post"\n')
    return replaced(inputs.data / "card.toml", "post", "exam")


def recorded_texts(inputs: Inputs) -> Change:
    ids = [query.id for query in r2med.load(str(inputs.data)).queries]
    lines = [json.dumps({"id": each, "hy_doc": "one of the words"}) for each in ids]
    file = inputs.write("data/hyde/someone/query_with_hydoc.jsonl", "\n".join(lines) + "\n")
    inputs.system, inputs.settings["recorded"] = "hyde(someone) → bm25", True
    words = (inputs.data / "corpus.jsonl").read_text().split()[4:9]
    return replaced(file, "one of the words", " ".join(words))


PLUGIN = """import matrix_helper
class Model:
    revision = "the same"
    def encode(self, texts):
        return [[len(text) % matrix_helper.NUMBER, len(text.split()[0]) % 3, 1] for text in texts]
"""


def own_model(inputs: Inputs) -> Path:
    for name in ("matrix_helper", "matrix_model"):
        sys.modules.pop(name, None)
    inputs.system = "py:matrix_model:Model"
    inputs.write("matrix_helper.py", "NUMBER = 7\n")
    return inputs.write("matrix_model.py", PLUGIN)


def plugin(inputs: Inputs) -> Change:
    return replaced(own_model(inputs), "% 3", "% 5")


def helper_module(inputs: Inputs) -> Change:
    own_model(inputs)
    return replaced(inputs.root / "matrix_helper.py", "7", "4")


def stop_words(inputs: Inputs) -> Change:
    inputs.system = "bm25(language=de)"
    common = json.loads((inputs.data / "query.jsonl").read_text().splitlines()[0])["text"].split()[0]

    def change() -> None:
        known = search_languages.search_languages()
        edited = {**known, "de": replace(known["de"], stop_words=known["de"].stop_words | {common})}
        assert inputs.patch is not None
        inputs.patch.setattr(search_languages, "search_languages", lambda: edited)
        analysers.analyser.cache_clear()

    return change


def document(inputs: Inputs) -> Change:
    word = json.loads((inputs.data / "query.jsonl").read_text().splitlines()[0])["text"].split()[0]
    return replaced(inputs.data / "corpus.jsonl", f"{word} ", f"{word[::-1]} ")


def query(inputs: Inputs) -> Change:
    word = json.loads((inputs.data / "query.jsonl").read_text().splitlines()[0])["text"].split()[0]
    return replaced(inputs.data / "query.jsonl", f"{word} ", f"{word[::-1]} ")


def judgement(inputs: Inputs) -> Change:
    row = json.loads((inputs.data / "qrels.jsonl").read_text().splitlines()[0])
    old, new = json.dumps(row), json.dumps(row | {"p_id": "d0" if row["p_id"] != "d0" else "d1"})
    return replaced(inputs.data / "qrels.jsonl", old, new)


def saturation(inputs: Inputs) -> Change:
    inputs.system = "bm25(k1=0.9)"
    return lambda: setattr(inputs, "system", "bm25(k1=5)")


def language(inputs: Inputs) -> Change:
    word = json.loads((inputs.data / "query.jsonl").read_text().splitlines()[0])["text"].split()[0]
    for name in ("query", "corpus"):  # of its forms, only French takes this one back to the word
        file = inputs.data / f"{name}.jsonl"
        file.write_text(file.read_text().replace(f"{word} ", "fracture " if name == "query" else "fracturée "))
    return lambda: setattr(inputs, "system", "bm25(language=fr)")


CASES = (weights, tokenizer, remote_code, adapter, model_card, instruction, precision)
CASES += (prompt_file, prompt_kind, recorded_texts, plugin, helper_module, stop_words, document, query, judgement)
CASES += (saturation, language)
SAME_RANKING = (prompt_kind, judgement, stop_words)
"""Changes that need not move a document here: another key is enough."""


@pytest.mark.parametrize("case", some_by_day(CASES, 3), ids=lambda case: case.__name__)
def test_an_input_that_was_changed_in_place_gives_a_new_result(
    case: Callable[[Inputs], Change], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = Inputs(tmp_path, random_folder(tmp_path / "data", documents=30), patch=monkeypatch)
    change = case(inputs)
    store, out = tmp_path / "store", tmp_path / "out"
    before = inputs.run(store, out)
    assert not sum(stage.failures for stage in before.stages)
    assert inputs.run(store, out).created == before.created
    change()
    after, expected = inputs.run(store, out), inputs.run(tmp_path / "empty", tmp_path / "anew")
    assert after.key == expected.key != before.key
    assert before.run and after.run and expected.run
    assert after.run.sha256 == expected.run.sha256 and after.mean == expected.mean
    assert case in SAME_RANKING or after.run.sha256 != before.run.sha256, (
        "the change has no effect, so it shows nothing"
    )
    analysers.analyser.cache_clear()


def test_a_gguf_file_is_known_by_all_its_bytes_and_parts(tmp_path: Path, store: Store) -> None:
    part = tmp_path / "part-00001-of-00002.gguf"
    for file in (part, tmp_path / "part-00002-of-00002.gguf"):
        file.write_bytes(b"GGUF" + bytes(3 << 20))
    seen = []
    for place in range(3):
        runtime = Runtime(store=store, model_paths={"smollm2": part})
        seen.append(LlamaBackend(LLMS.card("smollm2"), runtime).key()["fingerprint"])
        changed = (part, tmp_path / "part-00002-of-00002.gguf", part)[place]
        with changed.open("r+b") as file:
            file.seek(3 << 19)
            file.write(b"x")
    assert len({*seen}) == 3


def test_a_record_states_the_versions_that_made_its_vectors_and_a_difference_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inputs = Inputs(tmp_path, random_folder(tmp_path / "data", documents=30))
    weights(inputs)
    installed = reads.installed_versions()
    first = inputs.run(tmp_path / "store", tmp_path / "one")
    assert first.vector_versions == {
        name: [installed[name]] for name in ("sentence-transformers", "torch", "transformers")
    }
    assert "vectors were made with" not in caplog.text
    monkeypatch.setattr(reads, "installed_versions", lambda: {**installed, "torch": "99.0"})
    later = inputs.run(tmp_path / "store", tmp_path / "two")
    assert later.key == first.key and later.vector_versions == first.vector_versions
    line = f"its stored vectors were made with torch {installed['torch']} (installed: 99.0); fresh (--fresh) encodes"
    assert line in caplog.text
    inputs.system = f"bm25+{inputs.system}"  # its run is made now, from vectors of both times
    assert inputs.run(tmp_path / "store", tmp_path / "three").vector_versions == first.vector_versions

"""`r2med models`: the list, the cards, and a model tried on texts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch

from support import rerank_server, tiny_models, tiny_rerankers
from support.fork_server import Command


@pytest.fixture
def output(r2med):
    """Return what `r2med ARGUMENTS` prints."""

    def printed(*arguments):
        done = r2med(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return printed


def test_the_list_has_a_table_of_rerankers(output):
    lines = output("list", "models").splitlines()
    start = next(number for number, line in enumerate(lines) if line.split()[:2] == ["name", "reranker"])
    names = {line.split()[0] for line in lines[start + 2 :] if line.strip()}
    assert {"bge-reranker", "bge-reranker:published", "monobert", "rankllama"} <= names
    models = {line.split()[0] for line in lines[:start] if line.strip()}
    assert {"medcpt", "medcpt:published", "nv", "voyage", "qwen3-8b"} <= models


def test_a_rerankers_card_is_shown(output):
    assert (
        json.loads(output("show", "--kind", "models", "rankllama", "--format", "json"))["base"]
        == "meta-llama/Llama-2-7b-hf"
    )
    shown = json.loads(output("show", "--kind", "models", "medcpt:published", "--format", "json"))
    assert (shown["pooling"], shown["query"]["repository"]) == ("cls", "ncbi/MedCPT-Article-Encoder")


@pytest.fixture
def cards(tmp_path, monkeypatch):
    """A folder for cards of the user's own."""
    for kind in ("models", "rerankers"):
        (tmp_path / kind).mkdir()
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    return tmp_path


def test_a_reranker_is_tried_on_two_pairs(cards, output):
    (cards / "rerankers" / "tiny.toml").write_text('loader = "classifier"\nmax_tokens = 48\n')
    folder = tiny_rerankers.bert(cards / "bert")
    printed = output("doctor", "--model", "tiny", "--model-path", f"tiny={folder}", "--device", "cpu")
    assert "for a case and its diagnosis" in printed and "pairs/s" in printed and "max_tokens: 48" in printed


def test_a_reranker_on_a_server_is_shown_and_tried(output):
    shown = json.loads(output("show", "--kind", "models", "tei:org/model", "--format", "json"))
    assert (shown["loader"], shown["repository"]) == ("tei", "org/model")
    with rerank_server.serve("tei") as server:
        printed = output("doctor", "--model", "tei:org/model", "--base-url", server.address)
        assert "for a case and its diagnosis" in printed and "model: 'org/model'" in printed
        assert [request.path for request in server.requests] == ["/models", "/rerank", "/rerank"]


CARD = """
loader = "transformers"
pooling = "mean"
normalise = true
similarity = "cosine"

[query]
prefix = "find: "
max_tokens = 32

[document]
max_tokens = 48
"""


@pytest.mark.parametrize(("name", "system"), [("rank1-7b", "rank1-7b@20"), ("rankgpt", "rankgpt(LLM)@20")])
def test_a_reranker_that_asks_an_llm_is_refused_with_the_commands_that_test_it(r2med, name, system):
    done = r2med("doctor", "--model", name)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert f"r2med run 'bm25 → {system}' --data demo --plan shows what it asks" in done.stderr


def test_a_model_is_tried_on_a_query_and_a_document_and_both_sides_are_shown(cards, output):
    (cards / "models" / "tiny.toml").write_text(CARD)
    folder = tiny_models.bert(cards / "bert")
    lines = output("doctor", "--model", "tiny", "--model-path", f"tiny={folder}", "--device", "cpu").splitlines()
    [first] = [line for line in lines if line.startswith("tiny: ")]
    assert "(query)" in first and "(document)" in first
    shared, query, document = (lines.index(head) for head in ("query, document, generated:", "query:", "document:"))
    assert "  pooling: 'mean'" in lines[shared:query]
    assert {"  prefix: 'find: '", "  max_tokens: 32"} <= set(lines[query:document])
    assert {"  prefix: ''", "  max_tokens: 48"} <= set(lines[document:])


def test_markup_and_escapes_in_a_card_are_shown_as_they_are(cards, output):
    (cards / "models" / "mine.toml").write_text(
        CARD.replace("\n[query]", 'licence = "[bold]x[/y]\\u001b[31m"\n\n[query]')
    )
    printed = output("list", "models")
    assert r"[bold]x[/y]\x1b[31m" in printed
    assert (
        json.loads(output("show", "--kind", "models", "mine", "--format", "json"))["licence"] == "[bold]x[/y]\x1b[31m"
    )
    assert "\x1b" not in printed + output("show", "--kind", "models", "mine")


def test_a_model_with_real_weights_is_checked(output):
    assert "384 dimensions; norms 1.0000" in output("doctor", "--model", "minilm")


@pytest.mark.parametrize(
    ("kind", "says"), [("moderncolbert", "vectors of 8 dimensions"), ("splade", "terms with a weight")]
)
def test_a_late_model_is_tried_on_a_query_and_a_document(tmp_path, output, kind, says):
    pytest.importorskip("sentence_transformers", "6.0", reason="sentence-transformers 6 is not installed")
    from support import tiny_late_models

    folder = getattr(tiny_late_models, kind)(tmp_path / kind)
    printed = output("doctor", "--model", f"path:{folder}", "--device", "cpu")
    assert says in printed and "score of a case and its diagnosis" in printed


PAIRS = (
    ("Which bacteria live in the gut?", "which bacteria live in the gut"),
    ("tax law and doctors", "Tax law and doctors."),
    ("hereditary angioedema", "Hereditary angioedema!"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.bert(tmp_path_factory.mktemp("models") / "tiny", layers=1)


@pytest.fixture(scope="module")
def broken(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same model with weights that no longer tell words apart; it loads and encodes without an error."""
    copied = tmp_path_factory.mktemp("broken") / "tiny"
    shutil.copytree(folder, copied)
    tensors = safetensors.torch.load_file(copied / "model.safetensors")
    for name in tensors:
        if name.endswith(("word_embeddings.weight", "position_embeddings.weight")):
            tensors[name].zero_()
    safetensors.torch.save_file(tensors, copied / "model.safetensors", {"format": "pt"})
    return copied


def test_the_doctor_tests_the_pairs_even_if_they_passed_once(
    folder: Path, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, r2med: Command
) -> None:
    (tmp_path / "plugin/models").mkdir(parents=True)
    pairs = ", ".join(f"[{query!r}, {passage!r}]" for query, passage in PAIRS)
    (tmp_path / "plugin/models/tiny-pairs.toml").write_text(
        f'loader = "transformers"\npooling = "mean"\nknown_pairs = [{pairs}]\n[query]\nmax_tokens = 40\n'
        "[document]\nmax_tokens = 40\n"
    )
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "plugin"))
    command = ("doctor", "--model", "tiny-pairs", "--device", "cpu", "--model-path")
    done = r2med(*command, f"tiny-pairs={folder}")
    assert "known pairs: all 3 queries are nearest to their own passage" in done.stdout
    done = r2med(*command, f"tiny-pairs={broken}")
    assert done.returncode == 2
    assert "of 3 known queries are not nearest" in done.stderr

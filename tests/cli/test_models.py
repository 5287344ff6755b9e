"""`r2med models` knows rerankers beside embedding models."""

import json

import pytest
from typer.testing import CliRunner

from r2med.cli.models import models
from support import tiny_rerankers


def output(*arguments):
    done = CliRunner(env={"COLUMNS": "200"}).invoke(models, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_list_has_a_table_of_rerankers():
    lines = output("list").splitlines()
    start = next(place for place, line in enumerate(lines) if line.split()[:2] == ["name", "reranker"])
    names = {line.split()[0] for line in lines[start + 2 :] if line.strip()}
    assert {"bge-reranker", "bge-reranker:published", "monobert", "rankllama"} <= names
    assert any(line.startswith("medcpt ") for line in lines[:start])


def test_a_rerankers_card_is_shown():
    assert json.loads(output("show", "rankllama"))["base"] == "meta-llama/Llama-2-7b-hf"
    assert json.loads(output("show", "medcpt"))["pooling"] == "cls"


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Give a card of the user's own a tiny model."""
    (tmp_path / "rerankers").mkdir()
    (tmp_path / "rerankers" / "tiny.toml").write_text('loader = "classifier"\nmax_tokens = 48\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    return tiny_rerankers.bert(tmp_path / "bert")


def test_a_reranker_is_tried_on_two_pairs(tiny):
    said = output("check", "tiny", "--model-path", f"tiny={tiny}", "--device", "cpu")
    assert "for a case and its diagnosis" in said and "pairs/s" in said and "max_tokens: 48" in said

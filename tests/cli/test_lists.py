"""Every list is there as JSON too, with all that its table shows."""

import json

import pytest

from r2med.data.dataset_cards import cards
from r2med.encoders.model_cards import MODELS
from r2med.llm.llm_cards import LLMS
from support.fork_server import Command


@pytest.mark.parametrize(
    "words",
    [
        *([noun, "list"] for noun in ("data", "models", "llms", "stages", "prompts")),
        *(["data", "stats", "demo/Biology"], ["analyse", "--list"], ["reproduce", "--list"]),
    ],
    ids=" ".join,
)
def test_every_list_is_json_on_demand(words: list[str], r2med: Command) -> None:
    listed = r2med(*words, "--json")
    assert listed.returncode == 0
    assert json.loads(listed.stdout)


def test_json_lists_hold_every_card(r2med: Command) -> None:
    datasets = json.loads(r2med("data", "list", "--json").stdout)
    assert [card["name"] for card in datasets["datasets"]] == list(cards())
    assert len(datasets["groups"]["R2MED"]) == 8
    models = json.loads(r2med("models", "list", "--json").stdout)
    assert {card["name"] for card in models if card["kind"] == "model"} == {card.name for card in MODELS.values()}
    assert [card["name"] for card in json.loads(r2med("llms", "list", "--json").stdout)] == list(LLMS)


FORMATS = {"markdown": "| ", "latex": r"\toprule", "csv": ",", "json": "[", "html": "<!doctype html>"}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("words", [("data", "list"), ("models", "list"), ("stages", "show", "hyde"), ("doctor",)])
def test_every_table_is_printed_in_every_format(r2med, words, form):
    done = r2med(*words, "--format", form)
    assert done.returncode == 0, done.stderr
    assert FORMATS[form] in done.stdout


def test_a_format_that_does_not_exist_is_refused_before_any_work(r2med):
    done = r2med("run", "--format", "word")
    assert done.returncode == 2
    assert "text, markdown, latex, csv, json, html" in done.stderr

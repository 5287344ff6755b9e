"""Every list is there as JSON too, with all that its table shows."""

import json
from pathlib import Path

import pytest

from r2med.data.dataset_cards import cards
from r2med.models.encoders.model_cards import MODELS
from r2med.models.llm.llm_cards import LLMS
from r2med.public.catalogue_functions import KINDS_OF_LISTS
from support.commands import typed
from support.fork_server import Command


@pytest.mark.parametrize(
    "words",
    [
        *(["list", *kind] for kind in ([], ["datasets"], ["models"], ["llms"], ["stages"], ["suites"], ["prompts"])),
        *(["show", "demo/Biology"], ["list", "analyses"], ["reproduce", "--plan"]),
    ],
    ids=" ".join,
)
def test_every_list_is_json_on_demand(words: list[str], r2med: Command) -> None:
    listed = r2med(*words, "--format", "json")
    assert listed.returncode == 0
    assert json.loads(listed.stdout)


def test_json_lists_hold_every_card(r2med: Command) -> None:
    datasets = json.loads(r2med("list", "datasets", "--format", "json").stdout)
    assert [card["name"] for card in datasets["datasets"]] == list(cards())
    assert len(datasets["groups"]["R2MED"]) == 8
    models = json.loads(r2med("list", "models", "--format", "json").stdout)
    assert {card["name"] for card in models if card["kind"] == "model"} == {card.name for card in MODELS.values()}
    llms = json.loads(r2med("list", "llms", "--format", "json").stdout)
    assert [":".join(filter(None, (card["name"], card.get("variant")))) for card in llms] == list(LLMS)


def test_the_kinds_are_listed_and_a_wrong_one_is_one_line(r2med: Command) -> None:
    assert [line.split()[0] for line in r2med("list").stdout.splitlines()[2:11]] == [*KINDS_OF_LISTS]
    assert "no kind of list 'model' (did you mean models?)" in r2med("list", "model").stderr


def test_the_list_of_llms_fits_eighty_columns_and_names_every_model_whole_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    typed("list", "llms")
    narrow = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in narrow)
    assert {line.split()[0] for line in narrow if line[:1].strip()} >= set(LLMS)
    assert any(line.split()[:4] == ["o3-mini", "openai", "1.1", "4.4"] for line in narrow)
    monkeypatch.delenv("COLUMNS")
    typed("list", "llms")
    wide = capsys.readouterr().out
    assert all(card.model in wide for card in LLMS.values())


def test_markup_and_escapes_in_a_card_are_shown_as_they_are(tmp_path: Path, r2med: Command) -> None:
    (tmp_path / "llms").mkdir()
    (tmp_path / "llms" / "mine.toml").write_text('model = "[bold]x[/y]\\u001b[31m"\n')
    done = r2med("list", "llms", R2MED_PLUGINS=tmp_path)
    assert done.returncode == 0, done.stderr
    assert r"[bold]x[/y]\x1b[31m" in done.stdout
    assert "\x1b" not in done.stdout

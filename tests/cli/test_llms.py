"""`r2med llms`: every LLM by name, readable on a narrow screen, whatever stands in its card."""

import json
from pathlib import Path

import pytest

from r2med.cli.llms import list_, show
from r2med.core.errors import UserError
from r2med.llm.llm_cards import LLMS
from support.fork_server import Command


def test_the_list_fits_eighty_columns_and_names_every_model_whole_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    list_()
    narrow = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in narrow)
    assert {line.split()[0] for line in narrow if line[:1].strip()} >= set(LLMS)
    assert any(line.split()[:4] == ["o3-mini", "openai", "1.1", "4.4"] for line in narrow)
    monkeypatch.delenv("COLUMNS")
    list_()
    wide = capsys.readouterr().out
    assert all(card.model in wide for card in LLMS.values())


def test_markup_and_escapes_in_a_card_are_shown_as_they_are(tmp_path: Path, r2med: Command) -> None:
    (tmp_path / "llms").mkdir()
    (tmp_path / "llms" / "mine.toml").write_text('model = "[bold]x[/y]\\u001b[31m"\n')
    done = r2med("llms", "list", R2MED_PLUGINS=tmp_path)
    assert done.returncode == 0, done.stderr
    assert r"[bold]x[/y]\x1b[31m" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_card_is_shown_as_it_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    show("o3-mini")
    card = json.loads(capsys.readouterr().out)
    assert card["model"] == "o3-mini" and "temperature" not in card  # a reasoning API takes none
    with pytest.raises(UserError, match="did you mean o3-mini"):
        show("o3-mni")


def test_an_llm_is_shown_with_what_is_sent_to_it(r2med: Command) -> None:
    chat = json.loads(r2med("llms", "show", "qwen-7b").stdout)
    assert (chat["temperature"], chat["seed"], chat["max_tokens"]) == (0.7, 42, 10240)
    assert "price" not in chat
    reasoning = json.loads(r2med("llms", "show", "o3-mini").stdout)
    assert reasoning["price"] == {"prompt": 1.1, "completion": 4.4}
    assert "temperature" not in reasoning

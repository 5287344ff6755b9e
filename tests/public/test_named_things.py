"""`r2med show`: all that the declarations say, for built-in stages, cards and plugins."""

import json
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from r2med.cli.formats import NAMES
from r2med.foundation.core import names
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.names import known_names
from r2med.foundation.runtime.stages import Stage, argument, depth_field
from r2med.public.stage_help import PURPOSE
from r2med.systems.system.suites import suites
from support.commands import typed
from support.facts import error_states


class Sorter(Stage, kind="rerank", takes="llm"):
    """Sort what was found."""

    llm: str = argument("the LLM that sorts")
    order: Literal["best", "worst"] = Field("best", description="what stands first")
    depth: int = depth_field(7)


def page(capsys: pytest.CaptureFixture[str], name: str) -> list[list[str]]:
    """Return what `show` prints: its lines as words."""
    typed("show", name, "--kind", "stages")
    return [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_installed_stages", lambda: {"sorter": Sorter})


def test_the_list_has_every_stage_with_its_kind_and_what_it_does(
    capsys: pytest.CaptureFixture[str], plugged: None
) -> None:
    typed("list", "stages", "--format", "json")
    rows = {(row["kind"], row["name"]): row["summary"] for row in json.loads(capsys.readouterr().out)}
    assert {(kind, name) for kind in PURPOSE for name in known_names(kind)} <= set(rows)
    assert rows["rerank", "sorter"] == "Sort what was found."
    assert rows["retrieve", "bge"] == "Embeddings of BAAI/bge-large-en-v1.5."
    assert rows["rerank", "bge-reranker"] == "Scores of the cross-encoder BAAI/bge-reranker-v2-m3."
    assert ("retrieve", "hf:ORG/NAME") in rows and ("rerank", "hf:ORG/NAME") in rows
    assert all(rows.values())


def test_the_list_fits_eighty_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    typed("list", "stages")
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    for kind in PURPOSE:
        assert any(line.startswith(f"{kind}: ") for line in lines)
        assert all(any(line.startswith(f"{name} ") for line in lines) for name in known_names(kind))


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("hyde", "hyde(LLM, SETTING=VALUE, …) → RETRIEVER"),
        ("rm3", "rm3(SETTING=VALUE, …) → RETRIEVER"),
        ("search-o1", "search-o1(LLM, SETTING=VALUE, …) → RETRIEVER"),
        ("bm25", "bm25(SETTING=VALUE, …)"),
        ("bge", "bge(SETTING=VALUE, …)"),
        ("bmr-2b:published", "bmr-2b:published(SETTING=VALUE, …)"),
        ("fuse", "fuse(PARTS, SETTING=VALUE, …)"),
        ("bge-reranker", "RETRIEVER → bge-reranker(SETTING=VALUE, …)@DEPTH"),
        ("groupwise(o3-mini, size=10)@20", "RETRIEVER → groupwise(LLM, SETTING=VALUE, …)@DEPTH"),
        ("sorter", "RETRIEVER → sorter(LLM, SETTING=VALUE, …)@DEPTH"),
    ],
)
def test_a_page_says_how_the_stage_is_typed(
    name: str, typed: str, capsys: pytest.CaptureFixture[str], plugged: None
) -> None:
    assert ["typed:", *typed.split()] in page(capsys, name)


def test_a_page_lists_settings_with_default_values_and_meaning(
    capsys: pytest.CaptureFixture[str], plugged: None
) -> None:
    lines = page(capsys, "sorter")
    assert lines[0] == "sorter (rerank): Sort what was found.".split()
    assert "llm (needed) the name of an LLM the LLM that sorts".split() in lines
    assert "order best best or worst what stands first".split() in lines
    assert "depth 7 whole number from 1 to 1000000 candidates it looks at".split() in lines
    typed("show", "sorter", "--kind", "stages", "--format", "json")
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert settings[1] == {
        "name": "order",
        "default": "best",
        "values": "best or worst",
        "meaning": "what stands first",
        "at": "",
        "required": False,
    }


def test_a_method_of_the_users_own_is_listed_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "mine.toml").write_text('summary = "[bold]Write[/x] what I want."\nfields = ["query"]\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    typed("list", "stages")
    assert "[bold]Write[/x] what I want." in capsys.readouterr().out
    lines = page(capsys, "mine")
    assert lines[0] == "mine (expand): [bold]Write[/x] what I want.".split()
    assert any(line[:1] == ["samples"] for line in lines)


def test_a_name_without_a_card_may_be_a_retriever_and_a_reranker(capsys: pytest.CaptureFixture[str]) -> None:
    typed("show", "hf:org/name", "--kind", "stages", "--format", "json")
    assert [shown["kind"] for shown in json.loads(capsys.readouterr().out)] == ["retrieve", "rerank"]


def test_a_name_that_does_not_exist_is_one_line_with_the_nearest() -> None:
    with pytest.raises(UserError) as error:
        typed("show", "groupwse", "--kind", "stages")
    assert str(error.value) == "no stage 'groupwse' (did you mean groupwise?): r2med list stages shows all"


def test_suites_and_presets_are_listed_and_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    typed("list", "suites", "--format", "json")
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed["suites"]] == list(suites())
    assert [each["name"] for each in listed["presets"]] == ["reasoner"]
    (tmp_path / "mine.toml").write_text('summary = "Two."\n[[grid]]\nexpand = ["", "rm3"]\nretrieve = ["bm25"]\n')
    typed("show", "mine.toml", "--format", "json")
    found = json.loads(capsys.readouterr().out)["suites"]
    assert found == {"name": "mine", "summary": "Two.", "data": ["R2MED"], "systems": ["bm25", "rm3 → bm25"]}
    typed("show", "reasoner")
    shown = capsys.readouterr().out
    assert "{expand} → {retrieve} → {rerank}" in shown and "dense = diver" in shown


def test_a_name_without_a_kind_shows_all_that_it_means(capsys: pytest.CaptureFixture[str]) -> None:
    typed("show", "hyde")
    shown = capsys.readouterr().out
    assert "hyde (expand)" in shown and "prompts: hyde." in shown
    typed("show", "bge", "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"stages", "models"}
    typed("show", "hyde.exam")
    assert capsys.readouterr().out.startswith("hyde.exam (")
    typed("show", "MedQA-Diag", "--format", "json")
    assert json.loads(capsys.readouterr().out)["datasets"]["name"] == "MedQA-Diag"
    with error_states("'o3-mni'", "o3-mini?", "r2med list"):
        typed("show", "o3-mni")


def test_a_trained_reranker_is_shown_with_the_notes_of_its_card(capsys: pytest.CaptureFixture[str]) -> None:
    typed("show", "rank1-7b", "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert found["stages"]["kind"] == "rerank"
    assert found["models"]["llm"]["model"] == "jhu-clsp/rank1-7b"
    typed("show", "rank1-7b", "--format", "csv")
    shown = capsys.readouterr().out
    assert all(note in shown for note in found["models"]["notes"]) and "., " not in shown


def test_an_llm_is_shown_with_what_is_sent_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    typed("show", "qwen-7b", "--kind", "llms", "--format", "json")
    chat = json.loads(capsys.readouterr().out)
    assert (chat["temperature"], chat["seed"], chat["max_tokens"]) == (0.7, 42, 10240)
    assert "price" not in chat
    typed("show", "o3-mini", "--kind", "llms", "--format", "json")
    reasoning = json.loads(capsys.readouterr().out)
    assert reasoning["price"] == {"prompt": 1.1, "completion": 4.4}
    assert "temperature" not in reasoning  # a reasoning API takes none
    with pytest.raises(UserError, match="did you mean o3-mini"):
        typed("show", "o3-mni", "--kind", "llms")


@pytest.mark.parametrize("name", ["o3-mini", "bge", "MedQA-Diag", "hyde", "bm25"])
def test_every_kind_of_name_is_shown_in_every_format(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for form in NAMES:
        typed("show", name, "--format", form)
        assert capsys.readouterr().out.strip(), (name, form)
    for form in set(NAMES) - {"latex"}:
        typed("show", "hyde.exam", "--format", form)
        assert "Below is a question" in capsys.readouterr().out
    with pytest.raises(UserError, match="no table here to write as LaTeX"):
        typed("show", "hyde.exam", "--format", "latex")
    typed("show", "o3-mini", "--format", "csv")
    assert 'price,"prompt = 1.1, completion = 4.4"' in capsys.readouterr().out

"""A named set of templates is a setting of a stage: part of its name, and told where it stands in for ours."""

import logging
from pathlib import Path

import pytest

from r2med import UserError, load
from r2med.data import names
from r2med.foundation.runtime.setup import Setup
from r2med.models.prompts.templates import find_set, named_templates, prompt_sets, write_set
from r2med.systems.expand.method_cards import METHODS
from r2med.systems.expand.text_writer import open_prompts
from r2med.systems.rerank.llm_prompts import open_prompts as open_rerank_prompts
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS
from r2med.systems.system import System

KINDS = ("post", "exam", "case", "similar-case")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "plugin" / "prompts" / "mine"
    folder.mkdir(parents=True)
    (folder / "hyde.exam.txt").write_text("Mine: {query}")
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "plugin"))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_shipped_set_serves_every_kind_of_task(kind: str) -> None:
    for folder in prompt_sets().values():
        for method in ("hyde", "query2doc", "lamer"):
            ours, short = (open_prompts(METHODS[method], kind, each, refine=True) for each in (None, folder))
            assert len(short.ask.text) < len(ours.ask.text) / 2
            assert all(short.ask.names(field) for field in METHODS[method].fields)
        for method in ("pointwise", "listwise", "groupwise"):
            card = LLM_RERANKERS[method]
            assert open_rerank_prompts(card, kind, folder).digest != open_rerank_prompts(card, kind).digest


def test_a_set_of_a_plugin_is_named_and_what_it_lacks_is_built_in(mine: Path, caplog: pytest.LogCaptureFixture) -> None:
    systems = [System.parse(f"hyde(gpt4, prompts={name}) → bm25") for name in ("mine", "short")]
    assert [str(system) for system in systems] == [
        "hyde(gpt4, prompts=mine) → bm25",
        "hyde(gpt4, prompts=short) → bm25",
    ]
    with caplog.at_level(logging.INFO, logger="r2med"):
        systems[0].check([load(name) for name in names("demo")])
    told = "hyde(gpt4, prompts=mine): hyde.exam from mine; system, hyde.case, hyde.post, hyde.similar-case built in"
    assert told in caplog.messages


def test_the_flag_names_a_set_for_all_stages_that_do_not(mine: Path) -> None:
    system = System.parse("hyde(gpt4) → bm25 → listwise(gpt4, prompts=short)", Setup(prompts="mine"))
    assert str(system) == "hyde(gpt4, prompts=mine) → bm25 → listwise(gpt4, prompts=short)@100"


def test_a_template_without_a_kind_stands_in_for_all_of_ours(tmp_path: Path) -> None:
    (tmp_path / "hyde.txt").write_text("All: {query}")
    (tmp_path / "hyde.case.txt").write_text("Case: {query}")
    asked = [open_prompts(METHODS["hyde"], kind, tmp_path).ask.text for kind in ("exam", "case")]
    assert asked == ["All: {query}", "Case: {query}"]


def test_a_new_set_holds_ours_and_is_never_overwritten(tmp_path: Path) -> None:
    made = write_set("hyde", tmp_path / "new")
    assert [path.name for path in made] == [f"hyde.{kind}.txt" for kind in sorted(KINDS)]
    ours, copied = (open_prompts(METHODS["hyde"], "exam", folder).digest for folder in (None, tmp_path / "new"))
    assert ours == copied
    with pytest.raises(UserError, match=r"hyde\.case\.txt exists already"):
        write_set("hyde", tmp_path / "new")


def test_a_set_or_template_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    for call, message in (
        (lambda: find_set("shrot"), r"prompts=shrot: there is no such set and no such folder \(did you mean short\?\)"),
        (lambda: named_templates("hide"), r"no template or set of templates 'hide' \(did you mean hyde\?\)"),
        (lambda: write_set("hide", tmp_path), r"no method with templates 'hide' \(did you mean hyde\?\)"),
    ):
        with pytest.raises(UserError, match=message):
            call()

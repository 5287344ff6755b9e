"""The help of a stage comes from its declaration, and says what each setting means."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field

from r2med.foundation.core import names
from r2med.foundation.core.names import known_names
from r2med.foundation.runtime.stages import Numbers, Stage, argument, depth_field
from r2med.public.stage_help import PURPOSE, stage_pages
from r2med.public.stage_settings import StageSetting, help_of
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS


class Sorter(Stage, kind="rerank", takes="llm"):
    """Sort what was found."""

    name: str = "sorter"
    llm: str = argument("the LLM that sorts")
    size: int = Field(20, ge=2, le=100, description="passages at once")
    weight: float = Field(0.8, ge=0, le=1, description="what the LLM counts")
    order: Literal["best", "worst"] = Field("best", description="what stands first")
    shares: Numbers = Field((), description="shares of the parts")
    depth: int = depth_field()

    @classmethod
    def defaults(cls, name: str) -> Mapping[str, Any]:
        return {"size": 10} if name == "small-sorter" else {}


def test_help_comes_from_the_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_installed_stages", lambda: {"small-sorter": Sorter})
    shown = {setting.name: setting for setting in help_of("small-sorter", "rerank")}
    assert list(shown) == ["llm", "size", "weight", "order", "shares", "depth"]
    assert shown["size"].default == "10"
    assert shown["size"].values == "whole number from 2 to 100"
    assert shown["order"].values == "best or worst"
    assert shown["weight"].meaning == "what the LLM counts"
    assert shown["shares"].values == "numbers joined by :"
    assert shown["llm"].values == "the name of an LLM"
    assert {name: (setting.at, setting.required) for name, setting in shown.items() if setting.at} == {
        "llm": ("argument", True),
        "depth": ("depth", False),
    }


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for kind in PURPOSE for name in known_names(kind)])
def test_every_setting_of_every_stage_has_a_meaning_and_says_what_may_be_typed(name: str, kind: str) -> None:
    [page] = [page for page in stage_pages(name) if page["kind"] == kind]
    for setting in (StageSetting(**each) for each in page["settings"]):
        assert setting.meaning and setting.values.strip()
        assert not setting.values.startswith(" ") and setting.default != "None"


def test_every_setting_of_an_agent_says_what_it_means():
    for method in ("search-r1", "search-o1"):
        assert all(setting.meaning for setting in help_of(method, "expand"))


def test_every_expansion_and_every_setting_of_it_says_what_it_means():
    assert {"rm3", "rocchio", "search-r1", "search-o1", "hyde", "query2doc", "lamer"} <= set(known_names("expand"))
    for name in known_names("expand"):
        assert all(setting.meaning for setting in help_of(name, "expand")), name


def test_the_help_of_a_card_does_not_show_settings_that_are_refused() -> None:
    for name, card in LLM_RERANKERS.items():
        assert ("words" in [setting.name for setting in help_of(name, "rerank")]) == card.adjustable
    assert "words" in [setting.name for setting in help_of("listwise", "rerank")]


def test_a_method_card_of_a_plugin_has_help_with_its_own_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods/socratic.toml").write_text(
        'summary = "Ask what is meant."\nfields = ["query"]\ncopies = 1\n[defaults]\nsamples = 2\n'
    )
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/socratic.txt").write_text("What is behind this?\n\n{query}\n")
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    shown = list(help_of("socratic", "expand"))
    assert [setting.name for setting in shown][:2] == ["llm", "samples"] and shown[1].default == "2"

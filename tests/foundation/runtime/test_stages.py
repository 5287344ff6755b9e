"""A stage is declared once: parsing, printing, settings, help and errors follow from the declaration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from pydantic import Field

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.keys import changed_values
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.stages import Numbers, Stage, argument, depth_field


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

    def rerank(self, dataset: Any, queries: Any, run: Any, runtime: Any) -> Any:
        raise NotImplementedError


def sorter(text: str) -> Sorter:
    return Sorter.parse(parse_stage(text)[0])


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("sorter(a)", "sorter(a)@100"),
        ("sorter(a)@20", "sorter(a)@20"),
        ("sorter(a, size=20, weight=0.80)", "sorter(a)@100"),
        ("sorter(a, weight=1.0, shares=3:1.50)", "sorter(a, weight=1, shares=3:1.5)@100"),
        ("sorter( a , order = worst )@5", "sorter(a, order=worst)@5"),
        ("small-sorter(a, size=10)", "small-sorter(a)@100"),
        ("small-sorter(a, size=20)", "small-sorter(a, size=20)@100"),
    ],
)
def test_a_stage_prints_what_differs_from_its_defaults_and_parses_back(typed: str, printed: str) -> None:
    assert str(sorter(typed)) == printed
    assert sorter(printed) == sorter(typed)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("sorter", "sorter needs the name of an LLM, such as sorter(o3-mini), or llm (--llm NAME)"),
        ("sorter(a, sise=3)", "sorter has no setting 'sise' (did you mean size?): size, weight, order, shares"),
        ("sorter(a, size=x)", "sorter: size=x is not a whole number"),
        ("sorter(a, size=1)", "sorter: size must be 2 or more, not 1"),
        ("sorter(a, size=1000000000)", "sorter: size must be 100 or less, not 1000000000"),
        ("sorter(a, weight=nan)", "sorter: weight=nan is not a number"),
        ("sorter(a, weight=1e400)", "sorter: weight=1e400 is not a number"),
        ("sorter(a, order=bst)", "sorter: order=bst (did you mean best?): best or worst"),
        ("sorter(a, shares=1:-1)", "sorter: shares must be 0 or more, not -1"),
        ("sorter(a, b)", "sorter does not know what 'b' is: settings are written KEY=VALUE"),
        ("sorter(a, size=3, size=4)", "sorter(a, size=3, size=4): size is given twice"),
        ("sorter(a)@0", "sorter: depth must be 1 or more, not 0"),
    ],
)
def test_a_wrong_setting_is_one_line_that_says_what_would_be_right(typed: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        sorter(typed)
    assert str(caught.value) == message


def test_a_stage_made_in_python_is_checked_in_the_same_words() -> None:
    with pytest.raises(UserError, match="sorter: size must be 2 or more, not 1"):
        Sorter(llm="a", size=1)


def test_settings_hold_every_declared_value_that_differs_from_its_default() -> None:
    settings = sorter("sorter(a, weight=0.8, order=worst)@5").settings()
    assert settings.pop("code")  # it is declared outside the package
    assert settings == {"stage": "sorter", "llm": "a", "order": "worst", "depth": 5}


def test_a_field_that_is_added_later_leaves_keys_as_they_are() -> None:
    @dataclass(frozen=True)
    class Part:
        text: str
        note: str = ""

    @dataclass(frozen=True)
    class Before:
        parts: tuple[Part, ...] = ()
        count: int = 0

    @dataclass(frozen=True)
    class After(Before):
        added: tuple[str, ...] = ()
        places: list[str] = field(default_factory=list)

    written = {"parts": [{"text": "a"}, {"text": "b", "note": "c"}]}
    assert changed_values(Before((Part("a"), Part("b", "c")))) == written
    assert changed_values(After((Part("a"), Part("b", "c")))) == written
    assert changed_values(After(count=2, added=("x",)), but=("count",)) == {"added": ["x"]}

"""A command is made from a public function: its parameters, their help, their types and their defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
import typer

from r2med.cli.generated import Shown, generated
from r2med.cli.help_pages import Application
from r2med.foundation.core.flags import Argument, Flag, SetupFlags
from r2med.foundation.engine.reporting import announcing
from r2med.foundation.pages.page import Page
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.public.call_plan import planned

if TYPE_CHECKING:
    from nowhere import Model  # type: ignore[import-not-found]  # as classes of heavy modules, which are not there

CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = []


def measured(
    *systems: Annotated[str | Path | Sequence[str | Path], Argument("Systems.", kind=str, read=sorted)],
    model: Annotated[str | Model | None, Flag("A model.", metavar="NAME")] = None,
    files: Annotated[str | Path | Sequence[str | Path] | None, Flag("Files.", names=("--file",))] = None,
    out: Annotated[str | Path, Flag("A folder.", names=("--out", "-o"))] = "results",
    form_of: Annotated[Literal["open", "choice"] | None, Flag("A form.")] = None,
    share: Annotated[float, Flag("A share.", low=0, high=1)] = 0.5,
    texts: Annotated[bool, Flag("Leave out texts.")] = True,
    fast: Annotated[bool, Flag("Be fast.", is_rare=True)] = False,
    setup: Annotated[Setup | Runtime | None, SetupFlags("device")] = None,
    ready: Callable[[str], None] | None = None,
) -> str:
    """Measure systems.

    More for those who read Python.
    """
    given = {name: value for name, value in locals().items() if name != "systems"}
    planned(lambda: "the plan")
    announcing(1)("first step")
    CALLS.append((systems, given))
    return "measured"


def view(made: str, out: str | Path, form: str, twice: Annotated[bool, Flag("Show it twice.")] = False) -> Shown:
    return Shown(Page(f"{made} into {out} as {form}{' twice' if twice else ''}", []), [made, str(out)], 3)


@pytest.fixture
def typed() -> Callable[..., Any]:
    app = Application()
    app.command("measured")(generated(measured, view, lambda plan: print(f"plan: {plan}")))
    app.command("other")(lambda: None)
    CALLS.clear()
    command: Any = typer.main.get_command(app)
    return lambda *words: command([*words], standalone_mode=False)


def test_what_was_not_typed_is_left_to_the_defaults_of_the_function(typed: Callable[..., Any]) -> None:
    assert typed("measured", "b", "a") == 3
    [(systems, given)] = CALLS
    assert systems == ("a", "b")
    assert given.pop("setup") == Setup()
    assert given == {
        **{"model": None, "files": None, "out": Path("results"), "form_of": None, "share": 0.5},
        **{"texts": True, "fast": False, "ready": None},
    }


def test_what_was_typed_has_the_type_of_the_parameter(typed: Callable[..., Any]) -> None:
    words = ["--model", "bge", "--file", "a", "--file", "b", "-o", "x", "--form-of", "open", "--share", "0", "--fast"]
    typed("measured", *words, "--without-texts", "--device", "cpu")
    [(systems, given)] = CALLS
    assert systems == ()
    assert given.pop("setup").device == "cpu"
    assert given == {
        **{"model": "bge", "files": [Path("a"), Path("b")], "out": Path("x"), "form_of": "open", "share": 0.0},
        **{"texts": False, "fast": True, "ready": None},
    }


def test_a_view_takes_the_result_parameters_and_flags_of_its_own(
    typed: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    typed("measured", "--format", "markdown", "--twice")
    assert "measured into results as markdown twice" in capsys.readouterr().out
    typed("measured", "--format", "json")
    shown = capsys.readouterr()
    assert shown.out.split() == ["[", '"measured",', '"results"', "]"]
    assert "[1/1] first step" in shown.err


def test_a_plan_is_shown_and_nothing_is_done(typed: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    typed("measured", "--plan")
    assert capsys.readouterr().out == "plan: the plan\n"
    assert not CALLS


def test_the_help_is_the_first_paragraph_and_leaves_out_rare_flags(
    typed: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    typed("measured", "--help")
    text = capsys.readouterr().out
    assert "Measure systems." in text and "Python" not in text
    assert "--share" in text and "--twice" in text and "--fast" not in text and "ready" not in text
    typed("measured", "--help-all")
    assert "--fast" in capsys.readouterr().out
    typed("measured", "--help")
    assert "--fast" not in capsys.readouterr().out, "a process that showed all shows the short page again"

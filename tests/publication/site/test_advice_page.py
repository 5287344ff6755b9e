"""The page of advice: the ladder as a picture, in a real browser; there is none without advice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from r2med.evaluation.advice.advice import Advice, Rung
from r2med.foundation.core.notices import Notice, Setting
from r2med.publication.site import make_board
from r2med.publication.site.advice_page import advice_value
from support.by_day import some_by_day

from .conftest import HOSTILE, Open, unreached
from .test_pages import contrast

WORDS, DENSE, FUSED, HYDE = "bm25(k1=1.2)", "minilm", "bm25(k1=1.2)+minilm", "hyde(o3-mini) → bm25(k1=1.2)+minilm"
ADVICE = Advice(
    "mine",
    50,
    (
        Rung("words", WORDS, 41.2, 35.0, 47.1, 50, 0.0012, 0.003, 0.0, 10, 9.1, p=0.0021),
        Rung("dense", DENSE, 44.9, 38.2, 51.3, 50, 0.012, 0.019, 0.0, 1, 5.4, p=0.01),
        Rung("fusion", FUSED, 50.3, 44.1, 56.6, 50, 0.014, 0.024, 0.0, 10, 0.0),
        Rung("expansion", HYDE, 36.2, 27.1, 45.0, 20, 3.1, 5.2, 1.12, 1, 15.1, p=0.0, note=f"stopped: behind {FUSED}"),
    ),
    best=FUSED,
    recommended=FUSED,
    fastest=WORDS,
    detectable_gap=6.4,
    detectable_pair=(DENSE, FUSED),
    left_out=(HOSTILE,),
    data="./my notes",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board of advice alone, as after `r2med advise` and before any `r2med run`."""
    folder = tmp_path_factory.mktemp("advice")
    ADVICE.write(folder / "results" / "mine.advice.json")
    return make_board([folder / "results"], folder / "board").parent


def test_a_board_of_advice_opens_with_the_ladder_as_it_was_climbed(open_page: Open) -> None:
    page = open_page()
    texts = "all => all.map((element) => element.textContent)"
    assert page.eval_on_selector_all(".ladder th .row .name", texts) == [WORDS, DENSE, FUSED, HYDE]
    assert page.eval_on_selector_all(".ladder .group th", texts) == [
        "Words",
        "Dense models",
        "Fusion",
        "Expansion by an LLM",
    ]
    assert page.eval_on_selector_all(".ladder .stopped th .name", texts) == [
        HYDE,
        f"stopped: behind {FUSED}, after 20 of 50 questions",
    ]
    assert page.eval_on_selector_all(".ladder .chip", texts) == ["fastest", "best", "recommended"]
    assert page.get_attribute(".ladder .rung svg", "aria-label") == "41.20, 95 % interval 35.00 to 47.10"
    assert page.eval_on_selector_all(".ladder thead th", texts) == [
        *("Pipeline", "nDCG@10", "expected loss", "adjusted p", "p50", "p95", "$ / 1,000")
    ]
    assert f"a difference below 6.4 points between {DENSE} and {FUSED}" in page.inner_text(".lede")
    assert page.eval_on_selector_all(".choices dd", "all => all.map((each) => each.firstChild.textContent)")[:2] == [
        *("50.3", "50.3")
    ]
    assert page.inner_text(".command pre") == f"r2med serve './my notes' --system '{FUSED}'"
    assert page.evaluate("window.harmed") is None


@pytest.mark.parametrize("scheme", some_by_day(["dark", "light"], 2))
def test_it_is_readable_in_both_themes_and_on_a_phone(open_page: Open, scheme: str) -> None:
    page = open_page("#/advice", color_scheme=scheme)
    assert {pair: ratio for pair, ratio in contrast(page).items() if ratio < 4.5} == {}
    assert unreached(page, 900) == unreached(page, 390) == []
    shown = page.inner_text(".ladder .stopped")
    assert "3.10 s" in shown and "$1.12" in shown


def test_dots_stand_where_their_figures_are(open_page: Open) -> None:
    page = open_page("#/advice")
    dots = [each.bounding_box()["x"] for each in page.query_selector_all(".ladder .glyph-dot")]
    values = [rung.value for rung in ADVICE.rungs]
    scale = [(dot - dots[0]) / (value - values[0]) for dot, value in zip(dots[1:], values[1:], strict=True)]
    assert scale == pytest.approx([scale[0]] * 3, rel=0.02)


def test_without_advice_there_is_no_such_page(tmp_path: Path, records: Path) -> None:
    board = make_board([records], tmp_path / "board").parent
    assert not (board / "data" / "advice.js").exists()
    assert '\\"advice\\":false' in (board / "data" / "site.js").read_text()


def test_the_page_names_flags_and_not_calls_in_python() -> None:
    untried = Notice("rerankers: ", Setting("advise", rerankers=["bge-reranker"]))
    advice = replace(ADVICE, not_tried=(untried,), left_out=())
    value = advice_value(advice)
    assert value["not_tried"] == ["rerankers: --rerank bge-reranker"]
    assert "advise(" not in str(value)

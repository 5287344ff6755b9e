"""Whether a generation's answer is right, and what right and wrong ones gain."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.analysis.analysis import rehearse, run_analyses
from r2med.analysis.answer_accuracy import Judged, accuracy_range, llm_rows
from r2med.analysis.scaling import Expanded
from r2med.assessment.answers.answer_controls import WORDINGS
from r2med.data import load
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Column, shown
from r2med.foundation.store import Store
from support.graded_controls import graded_controls
from support.scripted_llm import scripted

DIAG = "demo/MedQA-Diag"


@pytest.mark.parametrize("rule", [True, None])
@pytest.mark.parametrize("llm", [True, False, None])
def test_if_an_llm_was_asked_only_its_verdict_counts(rule: bool | None, llm: bool | None) -> None:
    judged = Judged("d", "q", "Myocardial infarction", "Myocardial infarction", rule, llm, asked=True)
    assert np.array_equal(judged.right, np.nan if llm is None else float(llm), equal_nan=True)


def test_undecided_texts_make_accuracy_a_range() -> None:
    share = accuracy_range(np.array([1.0, 1.0, 0.0, np.nan, np.nan, np.nan, 0.0, 0.0]))
    assert share is not None
    assert (share.value, share.most) == (2 / 8, 5 / 8)
    assert share.high is not None and share.high > 5 / 8
    assert shown(share, Column("accuracy", "number")) == "0.25 … 0.62"


def test_without_an_llm_no_text_that_only_names_the_answer_is_decided(tmp_path: Path, results: Path) -> None:
    done = run_analyses("answers", results=results, data=[DIAG], out=tmp_path / "out")
    (section,) = done.sections
    (row,) = next(table for table in section.tables if table.name == "answers").rows
    assert (row[3].value, row[3].most, row[4]) == (0.0, 1.0, 8)
    assert section.lead == "No answer could be decided."


def test_wrong_answers_and_right_ones_are_told_apart_by_the_judge(tmp_path: Path, store: Store, results: Path) -> None:
    setup = scripted(
        tmp_path,
        store,
        *graded_controls(load(DIAG).queries),
        (["Reference answer", "oncogenic"], {"why": "gout", "grade": "wrong"}),
        (["Reference answer", "Lambert"], "I would rather not say."),
        (["Reference answer"], {"why": "that", "grade": "right"}),
    )
    done = run_analyses("answers", setup=setup, results=results, data=[DIAG], out=tmp_path / "out")
    (section,) = done.sections
    tables = {table.name: table for table in section.tables}
    (row,) = tables["answers"].rows
    assert row[:3] == ["hyde(author) → bm25", "author", 8]
    (agreement,) = tables["answers-agreement"].rows
    assert agreement[0] == 8
    assert agreement[2] == 7  # one could not be read, however often it was asked
    assert any("1 had no usable answer (1 unreadable)" in note for note in section.notes)
    assert any("written by hand" in note for note in section.notes)
    assert {row[1] for row in tables["answers-slices"].rows} >= {"task", "length"}
    said = {row[2]: row[6] for row in tables["answers-queries"].rows}
    assert (said["0"], said["1"], said["2"]) == ("wrong", "undecided", "right")


def test_a_rehearsal_asks_nothing_and_says_what_would_be_asked(tmp_path: Path, store: Store, results: Path) -> None:
    setup = scripted(tmp_path, store, ([], {"verdict": "right"}))
    previews = rehearse("answers", "contamination", setup=setup, results=results, data=[DIAG], queries=2)
    calls = {name: len(preview.unanswered) for name, preview in previews.items()}
    controls = 2 * 2 * len(WORDINGS)
    assert calls == {"answer-grade": controls + 2, "continue": 4}


def test_what_was_answered_is_not_asked_again_and_gives_the_same_bytes(
    tmp_path: Path, store: Store, results: Path
) -> None:
    said = {"continuation": "and so on", "why": "so", "grade": "right"}
    setup = scripted(tmp_path, store, *graded_controls(load(DIAG).queries[:3]), ([], said))
    asked = ("answers", "contamination")
    first, second = (
        run_analyses(*asked, setup=setup, results=results, data=[DIAG], queries=3, out=tmp_path / name)
        for name in ("a", "b")
    )
    assert [file.read_bytes() for file in first.files] == [file.read_bytes() for file in second.files]
    assert not any(
        preview.unanswered
        for preview in rehearse(*asked, setup=setup, results=results, data=[DIAG], queries=3).values()
    )


def test_a_judge_that_fails_its_controls_judges_no_text(tmp_path: Path, store: Store, results: Path) -> None:
    setup = scripted(tmp_path, store, ([], {"why": "so", "grade": "right"}))
    with pytest.raises(UserError, match="script cannot judge answers: it did not say no to"):
        run_analyses("answers", setup=setup, results=results, data=[DIAG], out=tmp_path / "out")


def test_accuracy_and_gain_go_together_across_llms_of_one_expansion() -> None:
    queries = [("d", str(number)) for number in range(20)]

    def outcome(llm: str, right: int, points: float) -> Any:
        """Return an LLM that is right on so many queries, and gains so much on each of these."""
        by_query = {key: (float(n < right), points * (n < right)) for n, key in enumerate(queries)}
        return Expanded(f"hyde({llm}) → bm25", llm, "bm25", "hyde"), by_query

    alike = [outcome("small", 3, 1.0), outcome("middle", 9, 1.0), outcome("large", 16, 1.0)]
    lone = Expanded("lamer(large) → bm25", "large", "bm25", "lamer"), {queries[0]: (1.0, 2.0)}
    alike[0][1]["d", "0"] = (np.nan, 1.0)  # not decided for one of them: left out for all
    (name, llms, decided, together), alone = llm_rows([*alike, lone])
    assert (name, llms, decided) == ("hyde → bm25", 3, 19)
    assert (together.value, together.low, together.high) == (1.0, None, None)  # drawing queries anew misses the truth
    assert alone == ["lamer → bm25", 1, 1, None]
    against = [outcome("small", 3, 9.0), outcome("middle", 9, 2.0), outcome("large", 16, 0.5)]
    assert llm_rows(against)[0][3].value == -1.0

"""Texts are judged by an LLM that first gets planted controls."""

from math import isnan
from pathlib import Path

import pytest

from r2med.analysis.judged_texts import judge_texts
from r2med.analysis.llm_questions import Questions
from r2med.data import load
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from support.graded_controls import graded_controls
from support.scripted_llm import scripted

QUERIES = load("demo/MedQA-Diag").queries
ITEMS = [("MedQA-Diag", query, f"I think of disease number {n}.") for n, query in enumerate(QUERIES)]


def test_a_text_is_right_wrong_or_undecided(tmp_path: Path, store: Store) -> None:
    runtime = scripted(
        tmp_path,
        store,
        *graded_controls(QUERIES),
        (["Reference answer", "disease number 0"], {"why": "gout", "grade": "wrong"}),
        (["Reference answer", "disease number 1"], "I would rather not say."),
        (["Reference answer"], {"why": "that", "grade": "right"}),
    )
    verdicts, _ = judge_texts(ITEMS, Questions(runtime))
    assert verdicts[0] == 0 and isnan(verdicts[1]) and verdicts[2] == 1


def test_a_judge_that_fails_its_controls_judges_no_text(tmp_path: Path, store: Store) -> None:
    runtime = scripted(tmp_path, store, ([], {"why": "so", "grade": "right"}))
    with pytest.raises(UserError, match="script cannot judge answers: it did not say no to"):
        judge_texts(ITEMS, Questions(runtime))


def test_no_text_needs_no_llm(store: Store, tmp_path: Path) -> None:
    assert judge_texts([], Questions(scripted(tmp_path, store))) == ([], [])

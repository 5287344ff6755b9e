"""Errors of a user's making: one line, and a suggestion only where one is likely."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import nearest, nearest_path

KNOWN = ["bm25", "inf", "minilm", "k1", "scorer", "hyde", "R@10", "MedQA-Diag"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("bm52", "bm25"), ("k2", "k1"), ("hide", "hyde"), ("MINILM", "minilm"), ("medqa-dig", "MedQA-Diag")],
)
def test_a_name_that_is_nearly_one_is_told_which(name: str, meant: str) -> None:
    assert nearest(name, KNOWN) == f" (did you mean {meant}?)"


@pytest.mark.parametrize("name", ["tfidf", "", "colbert", "x", "Recall@100"])
def test_a_name_that_is_like_none_gets_no_suggestion(name: str) -> None:
    assert nearest(name, KNOWN) == ""


def test_a_path_that_does_not_exist_names_the_nearest_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").touch()
    assert nearest_path(f"{tmp_path}/nots.csv") == f" (did you mean {tmp_path}/notes.csv?)"
    assert nearest_path(f"{tmp_path}/zebra") == ""
    assert nearest_path(f"{tmp_path}/nowhere/notes.csv") == ""
    assert nearest_path("a\0b") == ""

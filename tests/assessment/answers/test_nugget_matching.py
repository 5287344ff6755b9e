"""What a judge says about nuggets is used only if it judges every nugget once and names sentences that exist."""

from __future__ import annotations

from typing import Any

import pytest

from r2med.assessment.answers import nugget_matching
from r2med.assessment.answers.nugget_matching import MatchedNuggets
from r2med.data.nuggets_file import Nugget

NUGGETS = [Nugget("q", "n1", "urate crystals", vital=True), Nugget("q", "n2", "beer", vital=False)]


def found(*rows: dict[str, Any], sentences: int = 2) -> Any:
    return nugget_matching._found(MatchedNuggets.model_validate({"nuggets": list(rows)}).nuggets, NUGGETS, sentences)


def row(nugget: Any, said: str = "full", *sentences: Any) -> dict[str, Any]:
    return {"nugget": nugget, "said": said, "sentences": list(sentences)}


FULL, PART, NONE = nugget_matching.get_args(nugget_matching.NuggetVerdict)


def test_each_sentence_that_says_a_nugget_counts_once() -> None:
    both = found(row(1, FULL, 1), row(2, PART, 1, 1))
    assert (dict(both.said), both.sentences) == ({"n1": FULL, "n2": PART}, 1)


def test_sentences_of_a_nugget_that_is_not_said_do_not_count() -> None:
    assert found(row(1, NONE, 1, 2), row(2, NONE)).sentences == 0


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row(1, FULL, 1)],
        [row(1, FULL, 1), row(1, FULL, 1)],
        [row(1, FULL, 1), row(3, FULL, 1)],
        [row(0, FULL, 1), row(1, FULL, 1)],
        [row(1, FULL, 1), row(2, FULL, 3)],
        [row(1, FULL, 0), row(2, FULL, 1)],
        [row(1, FULL, -1), row(2, FULL, 1)],
    ],
    ids=["none", "one missing", "one twice", "too many", "from 0", "no such sentence", "sentence 0", "negative"],
)
def test_a_verdict_that_leaves_out_or_invents_something_is_no_verdict(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError):
        found(*rows)


@pytest.mark.parametrize(
    "bad",
    [
        row(1, FULL),
        row(1, "perhaps", 1),
        row(True, FULL, 1),
        row(1.5, FULL, 1),
        row(1, FULL, "first"),
        row(None, FULL, 1),
    ],
    ids=["said in no sentence", "unknown word", "true", "a half", "a word", "nothing"],
)
def test_a_row_that_cannot_be_meant_is_no_verdict(bad: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        found(bad, row(2, NONE))

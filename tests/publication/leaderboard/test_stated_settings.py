"""Settings in the name of a system are those of its record."""

from typing import Any

import pytest

from r2med.publication.leaderboard.stated_settings import _difference
from r2med.systems.system import System

RECORDED = {"stage": "hyde", "llm": "gpt4", "samples": 2, "templates": "95c8ffff47f0fb96"}


@pytest.mark.parametrize(
    ("system", "stated", "difference"),
    [
        ("hyde(gpt4, samples=2, prompts=short) → bm25", RECORDED, ""),
        ("hyde(gpt4, samples=3) → bm25", RECORDED, "samples"),
        ("hyde(o3-mini, samples=2) → bm25", RECORDED, "llm"),
        ("query2doc(gpt4, samples=2) → bm25", RECORDED, "stage"),
    ],
)
def test_a_set_of_prompts_is_recorded_by_its_contents_and_other_settings_by_their_values(
    system: str, stated: dict[str, Any], difference: str
) -> None:
    expander = System.parse(system).expander
    assert expander is not None and _difference(expander, stated) == difference

"""Completion: what may come next, and that finding it out imports nothing heavy."""

from pathlib import Path

import pytest

from r2med.cli.completion import anything, datasets, systems
from support.by_day import some_by_day
from support.processes import python

COMPLETE = """
import sys
sys.argv = ["r2med"]
try:
    from r2med.cli import main
    main()
finally:
    print(sorted({"numpy", "pyarrow", "scipy", "torch"} & set(sys.modules)))
"""


def completed(line: str, word: int) -> list[str]:
    """Return what bash is given for a line whose word of this number is being typed."""
    shell = {"_R2MED_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
    *candidates, heavy = python(COMPLETE, **shell).stdout.splitlines()
    assert heavy == "[]"
    return candidates


@pytest.mark.parametrize(
    ("line", "word", "some", "none"),
    some_by_day(
        [
            ("r2med run bm", 2, {"bm25", "bmr-2b"}, {"bge-reranker"}),
            ("r2med run bm25 → bge", 4, {"bge", "bge-reranker", "bge-reranker-large"}, {"bm25"}),
            ("r2med run bm25 --data demo/MedQA-Diag,demo/B", 4, {"demo/MedQA-Diag,demo/Biology"}, {"R2MED"}),
            ("r2med show o3", 2, {"o3-mini"}, {"gpt4"}),
            ("r2med show bge-r", 2, {"bge-reranker"}, {"bge"}),
            ("r2med list m", 2, {"models"}, {"llms"}),
        ],
        3,
    ),
)
def test_a_shell_is_given_the_names_that_may_come_next(line: str, word: int, some: set[str], none: set[str]) -> None:
    candidates = set(completed(line, word))
    assert some <= candidates
    assert not none & candidates


def test_stages_of_all_kinds_and_presets_are_among_the_systems() -> None:
    assert {"hyde", "bm25", "bge-reranker", "reasoner"} <= {*systems("")}


def test_datasets_of_a_plugin_are_among_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = tmp_path / "datasets" / "ward.toml"
    card.parent.mkdir()
    card.write_text('folder = "ward"\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    assert datasets("wa") == ["ward"]


def test_a_name_of_any_kind_can_be_shown() -> None:
    for part, name in (("bge-r", "bge-reranker"), ("groupw", "groupwise"), ("o3", "o3-mini"), ("MedQ", "MedQA-Diag")):
        assert name in anything(part)

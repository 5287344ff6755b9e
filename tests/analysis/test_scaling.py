"""Quality against the size of the LLM, and the length of what it wrote."""

from pathlib import Path

import r2med
from r2med.analysis.material import Material
from r2med.analysis.scaling import billions, scaling
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store


def test_a_card_says_how_large_an_llm_is() -> None:
    assert billions("smollm2") == 0.135
    assert billions("qwen-72b") == 72
    assert billions("author") is None


def test_the_gain_of_hand_written_texts_is_labelled_as_such(tmp_path: Path, store: Store) -> None:
    setup = Runtime(store=store)
    r2med.run(["bm25", "hyde(author) → bm25"], ["demo/MedQA-Diag"], out=tmp_path / "results", setup=setup)
    section = scaling(Material(setup, results=tmp_path / "results"))
    (row,) = section.tables[0].rows
    assert row[0] == "hyde(author) → bm25"
    assert row[2] is None
    assert row[6].value > 50
    assert any("written by hand" in note for note in section.notes)

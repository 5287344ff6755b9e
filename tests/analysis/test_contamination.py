"""What an LLM knows by heart."""

from pathlib import Path

import pytest

from r2med.analysis.analysis import analyse
from r2med.analysis.contamination import longest_run, same_words
from r2med.core.errors import UserError
from r2med.store import Store
from support.scripted_llm import scripted


def test_words_of_the_original_are_looked_for_in_their_order() -> None:
    assert longest_run("one two three four", "and Two, three; five") == 2
    assert same_words("one two three four", "one four") == 0.5


def test_an_analysis_that_needs_an_llm_says_so(results: Path) -> None:
    with pytest.raises(UserError, match="llm="):
        analyse("contamination", results=results, data=["demo/MedQA-Diag"])


def test_where_nothing_was_continued_nothing_is_claimed(tmp_path: Path, store: Store) -> None:
    setup = scripted(tmp_path, store, ([], "no JSON"))
    done = analyse("contamination", setup=setup, data=["demo/Biology"], queries=1, out=tmp_path / "out")
    assert done.sections[0].lead == "No document was continued, so nothing is known."
    assert "1 unreadable" in done.sections[0].notes[0]

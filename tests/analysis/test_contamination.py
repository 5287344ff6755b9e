"""What an LLM knows by heart."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from r2med.analysis.analysis import run_analyses
from r2med.analysis.contamination import documents, longest_run, questions, same_words
from r2med.data import Dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Estimate
from r2med.foundation.store import Store
from support.scripted_llm import scripted


def test_words_of_the_original_are_looked_for_in_their_order() -> None:
    assert longest_run("one two three four", "and Two, three; five") == 2
    assert same_words("one two three four", "one four") == 0.5


def test_an_analysis_that_needs_an_llm_says_so(results: Path) -> None:
    with pytest.raises(UserError, match="--llm"):
        run_analyses("contamination", results=results, data=["demo/MedQA-Diag"])


def test_where_nothing_was_continued_nothing_is_claimed(tmp_path: Path, store: Store) -> None:
    setup = scripted(tmp_path, store, ([], "no JSON"))
    done = run_analyses("contamination", setup=setup, data=["demo/Biology"], queries=1, out=tmp_path / "out")
    assert done.sections[0].lead == "No text was continued, so nothing is known."
    assert "2 unreadable" in done.sections[0].notes[0]


LONG = {f"d{n}": " ".join(f"w{n}x{place}" for place in range(80 + n)) for n in range(30)}
MINE = Dataset.of({}, {**LONG, "short": "only three words", "empty": " "})


def test_the_sample_is_the_same_each_time_and_grows_from_its_beginning() -> None:
    assert documents(MINE, 5) == documents(MINE, 5) == documents(MINE, 20)[:5]
    assert len({text[0] for text in documents(MINE, 20)}) == 20
    every = [" ".join(text.split()[:80]) for text in LONG.values()]
    assert sorted(" ".join(text) for text in documents(MINE, 50)) == sorted(every), "without those that are too short"


def folder(tmp_path: Path, texts: dict[str, str]) -> str:
    root = tmp_path / "Mine"
    root.mkdir()
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    (root / "corpus.jsonl").write_text("\n".join(lines))
    return str(root)


def test_documents_are_continued_and_the_page_says_how_many(tmp_path: Path, store: Store) -> None:
    first = LONG["d0"].split()
    setup = scripted(
        tmp_path,
        store,
        (["w0x39"], {"continuation": " ".join(first[40:])}),
        ([], {"continuation": "something else"}),
    )
    data = [folder(tmp_path, {**LONG, "short": "only three words"})]
    done = run_analyses("contamination", setup=setup, data=data, out=tmp_path / "all")
    table = done.sections[0].tables[0]
    row, of_questions = table.rows
    assert row[1:4] == ["documents", 31, 30]
    assert of_questions[1:4] == ["questions", 0, 0]
    same, chance, run, by_heart = row[4:]
    assert [round(each.value * 30, 9) for each in (same, chance, run, by_heart)] == [1, 0, 40, 1]
    assert run.low < run.value < run.high  # the bounds are words, not shares
    sampled = (
        run_analyses("contamination", setup=setup, data=data, queries=1, out=tmp_path / "one").sections[0].tables[0]
    )
    assert sampled.rows[0][3] == 1
    assert isinstance(sampled.rows[0][4], Estimate)
    assert sampled.rows[0][5] is None  # one document has no other to compare with
    assert "a random sample of up to 1 document" in sampled.note


def test_a_corpus_of_short_documents_is_not_asked_about(tmp_path: Path, store: Store) -> None:
    setup = scripted(tmp_path, store, ([], "no JSON"))
    done = run_analyses(
        "contamination",
        setup=setup,
        data=[folder(tmp_path, {"d": "short text", "e": "another text"})],
        out=tmp_path / "out",
    )
    assert done.sections[0].lead == "No text is long enough, so nothing is known."


def test_questions_are_continued_with_their_answers(tmp_path: Path, store: Store) -> None:
    words = [f"q{place}" for place in range(24)]
    mine = Dataset.of({"a": " ".join(words), "b": "Too short?"}, {"d": "text"})
    (known,) = questions(replace(mine, queries=(replace(mine.queries[0], answer="Gout it is"), mine.queries[1])), 5)
    assert known == (words[:13], [*words[13:], "Gout", "it", "is"])
    setup = scripted(tmp_path, store, ([], {"continuation": "and so on"}))
    done = run_analyses("contamination", setup=setup, data=["demo/MedQA-Diag"], queries=3, out=tmp_path / "out")
    [table] = done.sections[0].tables
    assert table.rows[1][1:4] == ["questions", 8, 3]
    assert done.sections[0].lead.startswith("At most 0% of a dataset's documents and 0% of a dataset's questions are")

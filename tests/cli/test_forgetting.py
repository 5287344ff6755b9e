"""Patients' texts can be removed: after `cache clear --dataset` no text of the dataset is left in the store."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from r2med import import_data, run
from r2med.foundation.store import default_store
from r2med.models.llm.chat import RawAnswer
from r2med.models.llm.journal import open_journal
from support.chat_models import save_answer
from support.facts import some_states, states
from support.fork_server import Command
from support.serving import serving
from support.tiny_rerankers import xlm_roberta

PLANTED = ("zorbluxnote", "quibzanquery", "vorpleasked", "wimpeldiag")
"""Words of a document, of a query, of a question that is asked by hand, and of another document."""


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """Write notes and questions, with planted words in both."""
    notes, questions = tmp_path / "notes.csv", tmp_path / "questions.csv"
    with notes.open("w", newline="", encoding="utf-8") as file:
        rows = [[f"n{i}", f"A patient with fever number {i} and a cough since the week before."] for i in range(12)]
        rows[3][1] += f" Mrs {PLANTED[0]} was seen by the ward."
        rows[4][1] += f" The diagnosis was {PLANTED[3]} disease."
        csv.writer(file).writerows([["id", "text"], *rows])
    with questions.open("w", newline="", encoding="utf-8") as file:
        asked = [[f"Which patient has fever number {i} and {PLANTED[1]} signs?", f"n{i}"] for i in range(8)]
        csv.writer(file).writerows([["question", "relevant"], *asked])
    return notes, questions


def files_with(folder: Path, words: tuple[str, ...] = PLANTED) -> set[str]:
    """Return the files of a folder that hold one of these words, and the words."""
    return {
        f"{path.relative_to(folder)}: {word}"
        for path in folder.rglob("*")
        if path.is_file()
        for word in words
        if word.encode() in path.read_bytes().lower()
    }


def succeed(r2med: Command, *words: object) -> str:
    done = r2med(*map(str, words))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_no_text_of_a_cleared_dataset_is_left_in_the_store(
    r2med: Command, chat_server, tables: tuple[Path, Path], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    asked = ("--base-url", chat_server.address)
    reranker = xlm_roberta(tmp_path / "reranker")
    said = succeed(r2med, "data", "import", *tables, "-o", "ward", "--yes")
    assert "r2med cache clear --dataset ward --yes" in said
    assert files_with(home)
    succeed(r2med, "data", "check", "ward")
    systems = ("bm25", "minilm", "rm3 → bm25", f"bm25 → path:{reranker}@5")
    succeed(r2med, "run", *systems, "--data", "ward")
    succeed(r2med, "run", "hyde(org/m) → bm25", "lamer(org/m) → bm25", "--data", "ward", *asked)
    assert r2med("run", "bm25 → groupwise(org/m)@5", "--data", "ward", *asked).returncode == 1  # no order, see below
    succeed(r2med, "search", "ward", f"who has {PLANTED[2]}", "--system", "hyde(org/m) → bm25", *asked)
    succeed(r2med, "advise", "ward", "--model", "minilm")
    # The server repeats its prompts, so that answers quote the notes: as orders of passages they are failures.
    succeed(r2med, "board", "--data", "ward", "-o", "board", "--max-failures", "1")
    with serving("ward", "--system", "hyde(org/m) → bm25", *asked, R2MED_HOME=home, cwd=tmp_path) as server:
        answer = server.client().post("/retrieve", json={"queries": [PLANTED[2]], "topk": 3})
        assert answer.status_code == 200
        server.stop()
    assert any("journal/" in file for file in files_with(home)), "the LLM's answers quote the notes"
    assert "answers" in succeed(r2med, "cache", "clear", "--dataset", "ward")
    assert files_with(home), "without --yes nothing is removed"
    succeed(r2med, "cache", "clear", "--dataset", "ward", "--yes")
    assert files_with(home) == set()
    assert succeed(r2med, "run", "bm25", "--data", "ward", "--fresh")


def test_a_dataset_with_the_corpus_of_another_is_cleared_under_either_name(
    r2med: Command, tables: tuple[Path, Path], home: Path
) -> None:
    for folder in ("first", "second"):
        succeed(r2med, "data", "import", *tables, "-o", folder, "--yes")
        succeed(r2med, "run", "bm25", "--data", folder)
    cleared = succeed(r2med, "cache", "clear", "--dataset", "./second", "--yes").splitlines()
    assert files_with(home) == set()
    folder = tables[0].parent
    states(cleared[-1], "still on this machine", f"{folder}/first/", f"{folder}/second/")


def test_the_last_line_names_the_folder_the_results_and_the_board_that_stay(
    r2med: Command, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    succeed(r2med, "data", "import", *tables, "-o", "ward", "--yes")
    succeed(r2med, "run", "bm25", "--data", "ward")
    succeed(r2med, "board", "--data", "ward")
    cleared = succeed(r2med, "cache", "clear", "--dataset", "ward", "--yes").splitlines()
    still = f"still on this machine: {tmp_path}/ward/, results/, board/, and results"
    assert cleared[-1].startswith(f"not in the cache, so {still}")


def test_of_two_folders_with_one_name_only_the_one_that_was_named_is_cleared(
    r2med: Command, tables: tuple[Path, Path], home: Path
) -> None:
    other = tables[0].with_name("other.csv")
    other.write_text(tables[0].read_text().replace(PLANTED[0], "kromwelbek"))
    other.with_name("said.jsonl").write_text('{"when": [], "answer": "a text of an LLM"}\n')
    asked = ("--model-path", "m=said.jsonl", "--llm-backend", "scripted")
    for notes, ward in ((tables[0], "wardA"), (other, "wardB")):
        succeed(r2med, "data", "import", notes, tables[1], "-o", f"{ward}/notes", "--yes")
        succeed(r2med, "run", "bm25", "hyde(m) → bm25", "--data", f"{ward}/notes", "-o", f"{ward}/results", *asked)
    ambiguous = r2med("cache", "clear", "--dataset", "notes", "--yes")
    assert ambiguous.returncode == 2
    states(ambiguous.messages[0], "2 folders", "notes")
    succeed(r2med, "cache", "clear", "--dataset", "wardB/notes", "--results", ".", "--yes")
    assert {path.parents[2].name for path in other.parent.rglob("*.generated.jsonl")} == {"wardA"}
    assert files_with(home, ("kromwelbek",)) == set()
    assert files_with(home, PLANTED[:1])
    (tables[0].parent / "wardA").rename(tables[0].parent / "elsewhere")
    succeed(r2med, "cache", "clear", "--dataset", "notes", "--yes")
    assert files_with(home) == set()


def test_answers_go_with_every_dataset_that_asked_for_them_and_stay_for_others(home: Path) -> None:
    from r2med.foundation.store.holdings import clear_texts

    store = default_store()
    keys = [bytes([number]) * 16 for number in range(3)]
    for dataset, key, text in (("a", keys[0], "only a"), ("b", keys[1], "both"), ("b", keys[2], "only b")):
        save_answer(store.about(dataset), key, "gpt4", RawAnswer(text))
    with open_journal(store.about("a")) as journal:
        assert set(journal.get(keys[:2])) == set(keys[:2])
    clear_texts(store, ["a"])
    with open_journal(store) as journal:
        assert set(journal.get(keys)) == {keys[2]}
    assert not files_with(home, ("only a", "both"))
    assert files_with(home, ("only b",))


def test_a_note_that_an_update_removes_is_gone_from_the_store(tables: tuple[Path, Path], home: Path) -> None:
    folder = tables[0].with_name("ward")
    dataset = import_data(tables, folder)
    run("bm25", dataset)
    save_answer(default_store().about(dataset.label), b"k" * 16, "gpt4", RawAnswer(f"as {PLANTED[0]} said"))
    tables[0].write_text(f"{tables[0].read_text()}n99,A further note.\n")
    import_data(tables, folder, update=True)
    assert any("journal/" in file for file in files_with(home, PLANTED[:1])), "nothing was removed from the tables"
    tables[0].write_text(tables[0].read_text().replace(PLANTED[0], "nobody"))
    import_data(tables, folder, update=True)
    assert files_with(home, PLANTED[:1]) == set()


def test_work_that_a_killed_container_left_is_removed_with_the_dataset(r2med: Command, home: Path) -> None:
    left = [home / "scratch" / f".work.{number:032x}.tmp" for number in (1, 2)]
    with default_store().scratch() as mine:
        for folder in left:
            folder.mkdir(parents=True)
            (folder / "documents.arrow").write_text(PLANTED[0])
        said = succeed(r2med, "cache", "clear", "--all", "--yes")
        assert mine.exists()
    some_states(said.splitlines(), "3 unfinished")
    assert "2 unfinished" not in said and "1 piece of work is still going on" in said
    assert not any(folder.exists() for folder in left)


def test_only_their_owner_can_read_what_is_kept(r2med: Command, tables: tuple[Path, Path], home: Path) -> None:
    succeed(r2med, "data", "import", *tables, "-o", "ward", "--yes")
    succeed(r2med, "run", "bm25", "--data", "ward")
    save_answer(default_store().about("ward"), b"k" * 16, "gpt4", RawAnswer("text"))
    open_to_others = [path for path in (home, *home.rglob("*")) if path.stat().st_mode & 0o077]
    assert open_to_others == []


def test_an_agents_answers_are_of_the_corpus_that_it_searches_too(tmp_path: Path) -> None:
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.systems.agents.sources import LocalSearch
    from r2med.systems.retrieve.bm25 import BM25

    labels = LocalSearch(BM25(), Runtime(), "demo/Biology").labels()
    assert default_store().about("ward").about(*labels).labels.datasets == ("demo/Biology", "ward")

"""A question of one's own is put to any system, over a corpus that needs no queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med import System, UserError, load, search
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.systems.system.question import ask
from support import chat_server as chat
from support.datasets import DOCUMENTS, write_jsonl


def test_a_corpus_alone_is_searched_and_what_was_written_is_told(
    tmp_path: Path, store: Store, chat_server: chat.Server
) -> None:
    write_jsonl(tmp_path / "alone" / "corpus.jsonl", DOCUMENTS)
    dataset = load(tmp_path / "alone", store)
    plain = ask(System.parse("bm25", Setup(store=store)), dataset, "iron deficiency", k=1)
    assert [(passage.id, passage.text) for passage in plain.passages] == [("d2", "Iron deficiency has many causes.")]
    assert plain.generated == ()
    system = System.parse("hyde(mine) → bm25", Setup(store=store, base_url=chat_server.address))
    assert len(ask(system, dataset, "Why is she pale?").generated) == 1
    for question, k, message in (("  ", 5, "the question is empty"), ("Why?", 0, "k must be at least 1")):
        with pytest.raises(UserError, match=message):
            ask("bm25", dataset, question, k)


def test_recorded_texts_are_those_of_the_datasets_own_questions(store: Store) -> None:
    dataset = load("demo/MedQA-Diag", store)
    system = System.parse("hyde(author) → bm25", Setup(store=store))
    assert ask(system, dataset, f"  {dataset.queries[0].text}\n").generated
    with pytest.raises(UserError, match=r"has texts only for the \d+ questions of demo/MedQA-Diag: ask one of them"):
        ask(system, dataset, "Why is she pale?")


def test_a_search_keeps_what_it_reads_in_the_store_that_was_given(tmp_path: Path, store: Store, home: Path) -> None:
    write_jsonl(tmp_path / "alone" / "corpus.jsonl", DOCUMENTS)
    assert search(tmp_path / "alone", "iron deficiency", k=1, store=store).passages[0].id == "d2"
    assert list(store.root.glob("corpus/*")) and not home.exists()

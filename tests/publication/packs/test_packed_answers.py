"""Answer records in packs: the same command asks nobody where only a pack is, and gives the same bytes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med.assessment.answers.answer_controls import WORDINGS
from r2med.data.nuggets_file import Nugget, Nuggets
from r2med.evaluation.records.answer_record import AnswerRecord
from r2med.evaluation.records.text_files import files_with_texts
from r2med.foundation.store import Store
from r2med.models.llm.scripted import ScriptedBackend
from support.datasets import r2med_folder
from support.facts import error_states
from support.packs import tree, unmarked, unzipped, zipped

from .test_hostile_packs import relisted

DISEASES = ("gout", "measles", "scurvy", "rickets", "mumps", "tetanus")
COMMAND = "r2med answer bm25 --reader reader --data mini --judge judge --passages 2 --condition 'closed book' "


def reader_rules() -> Iterator[tuple[list[str], Any]]:
    for name in DISEASES[1:]:
        yield [f"Case of {name}"], {"answer": f"I am sure that it is {name} [1]."}
    yield [f"Case of {DISEASES[0]}"], {"answer": "It may be the flu [2]."}


def judge_rules() -> Iterator[tuple[list[str], Any]]:
    for name in DISEASES:
        for right in (*(wording.format(name) for wording in WORDINGS), f"I am sure that it is {name}"):
            when = [f"Case of {name}", "Reference answer", f"\nAnswer:\n<<<\n{right}"]
            yield when, {"why": "the same", "grade": "right"}
        own = [f"Sentence:\n<<<\nThe signs of {name}", f"passages:\n<<<\nThe signs of {name}"]
        yield own, {"why": "so", "supported": True}
        said = {"nuggets": [{"nugget": 1, "sentences": [1], "said": "support"}]}
        yield [f"Case of {name}", "Nuggets:", f"each sentence:\n<<<\n1. mine of {name}"], said
    yield ["Nuggets:"], {"nuggets": [{"nugget": 1, "sentences": [], "said": "none"}]}
    yield ["Reference answer"], {"why": "something else", "grade": "wrong"}
    yield ["Sentence:"], {"why": "so", "supported": False}


class Place:
    """A dataset, a scripted reader and a scripted judge."""

    def __init__(self, root: Path) -> None:
        self.root = root
        documents = [{"id": name, "text": f"The signs of {name} are known to all."} for name in DISEASES]
        queries = [{"id": name, "text": f"Case of {name}: what is it?", "answer": name} for name in DISEASES]
        qrels = [{"q_id": name, "p_id": name, "score": 1} for name in DISEASES]
        r2med_folder(root / "mini", documents, queries, qrels)
        self.paths: dict[str, str | Path] = {}
        for name, rules in (("reader", reader_rules()), ("judge", judge_rules())):
            self.paths[name] = root / f"{name}.jsonl"
            lines = [json.dumps({"when": when, "answer": json.dumps(said)}) for when, said in rules]
            (root / f"{name}.jsonl").write_text("\n".join(lines) + "\n")

    def answer(self, store: Store, out: Path, nuggets: Path | str = "") -> AnswerRecord:
        conditions = ["closed book", "retrieved"]
        (record,) = r2med.answer(
            "bm25", "reader", self.root / "mini", judge="judge", passages=2, conditions=conditions, out=out,
            store=store, model_paths=self.paths, nuggets=nuggets,
        )  # fmt: skip
        return record

    def packed(self, file: Path, store: Store, **more: Any) -> Any:
        settings = {"data": [str(self.root / "mini")], "store": store, "model_paths": self.paths, **more}
        return r2med.pack(self.root / "out", file, **settings)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("answers"))
    place.answer(Store(place.root / "store"), place.root / "out")
    place.packed(place.root / "run.r2pack", Store(place.root / "store"))
    return place


def answers_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.answers.json*"))}


def undated(content: bytes, folder: Path) -> bytes:
    """Return the bytes of an answer record as if it was made at another time."""
    (folder / "any.answers.json").write_bytes(content)
    record = AnswerRecord.read(folder / "any.answers.json")
    record.model_copy(update={"created": "2026-01-01T00:00:00+00:00"}).write(folder / "any.answers.json")
    return (folder / "any.answers.json").read_bytes()


def test_an_empty_store_with_a_pack_gives_the_same_answers_bit_for_bit_and_asks_nobody(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a pack must be enough")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(ScriptedBackend, "answer", refuse)
    store = Store(tmp_path / "store")
    done = r2med.unpack(place.root / "run.r2pack", tmp_path / "unpacked", store=store)
    place.answer(store, tmp_path / "again")
    first, again = answers_in(place.root / "out"), answers_in(tmp_path / "again")
    assert len(first) == 2
    for name, content in first.items():
        if name.endswith(".jsonl"):
            assert again[name] == content
        else:
            assert undated(again[name], tmp_path) == undated(content, tmp_path)
    assert unmarked(tmp_path / "unpacked") == unmarked(place.root / "out")
    [marked] = (tmp_path / "unpacked").rglob("*.answers.json")
    assert AnswerRecord.read(marked).unpacked
    assert not place.answer(store, tmp_path / "unpacked").unpacked
    assert not AnswerRecord.read(marked).unpacked
    assert f"{COMMAND}--condition retrieved --form open" in done.commands
    assert r2med.unpack(place.root / "run.r2pack", tmp_path / "unpacked", store=store).written == 0


def test_answers_can_be_left_out_and_are_not_packed_without_what_was_said(place: Place, tmp_path: Path) -> None:
    manifest = place.packed(tmp_path / "runs.r2pack", Store(place.root / "store"), with_=["runs"])
    assert {part.kind for part in manifest.parts} == {"records", "runs"}
    r2med.run("bm25", place.root / "mini", out=None, store=Store(tmp_path / "empty"))
    with error_states("chat.sqlite", "missing", "r2med answer"):
        place.packed(tmp_path / "no.r2pack", Store(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("ending", "change", "fault"),
    [
        (".answers.jsonl", (b"sure", b"SURE"), "not the file"),
        (".answers.json", (b'"passages": 2', b'"passages": 3'), "altered"),
    ],
)
def test_forged_answers_are_refused(
    place: Place, tmp_path: Path, ending: str, change: tuple[bytes, bytes], fault: str
) -> None:
    files = unzipped(place.root / "run.r2pack")
    path = next(path for path in files if path.endswith(ending))
    forged = {**files, path: files[path].replace(*change)}
    assert forged[path] != files[path]
    with pytest.raises(r2med.UserError, match=fault):
        r2med.unpack(zipped(tmp_path / "x", relisted(forged)), tmp_path / "out", store=Store(tmp_path / "store"))
    assert tree(tmp_path / "out") == {}


def test_the_nuggets_of_a_dataset_are_inside_with_its_corpus(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    r2med.run("bm25", "demo/Medical-Sciences", out=tmp_path / "out", store=store)
    r2med.pack(tmp_path / "out", tmp_path / "x.r2pack", ["corpus"], corpus_licence="CC-BY-4.0", store=store)
    done = r2med.unpack(tmp_path / "x.r2pack", tmp_path / "results", data=tmp_path / "data", store=store)
    assert (done.data[0] / "nuggets.jsonl").is_file()


def test_answers_made_with_a_file_of_nuggets_are_packed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, store, other = Place(tmp_path), Store(tmp_path / "store"), Store(tmp_path / "other")
    for name in ("mine", "others"):
        nuggets = [Nugget(disease, "n1", f"{name} of {disease}", vital=False) for disease in DISEASES]
        Nuggets.of(nuggets).write(tmp_path / f"{name}.jsonl")
    first = place.answer(store, tmp_path / "out", tmp_path / "mine.jsonl")
    for wrong in ("", tmp_path / "others.jsonl"):
        with error_states("other nuggets", "r2med pack --nuggets FILE"):
            place.packed(tmp_path / "x.r2pack", store, nuggets=wrong)
    manifest = place.packed(tmp_path / "x.r2pack", store, nuggets=tmp_path / "mine.jsonl")
    done = r2med.unpack(tmp_path / "x.r2pack", tmp_path / "unpacked", store=other)
    [file] = (tmp_path / "unpacked").rglob("*.nuggets.jsonl")
    assert file.read_bytes() == (tmp_path / "mine.jsonl").read_bytes()
    assert any(f"--nuggets {file}" in command for command in done.commands)
    assert any(f"--nuggets results/mini/{file.name}" in record.command for record in manifest.records)
    monkeypatch.setattr(ScriptedBackend, "answer", lambda *_: pytest.fail("a pack must be enough"))
    assert place.answer(other, tmp_path / "again", file).per_query == first.per_query
    assert file in files_with_texts(tmp_path / "unpacked", ["mini"]), "cache clear removes it"

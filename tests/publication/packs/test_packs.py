"""Packs: what they hold, and that the same commands give the same bytes where only a pack is."""

import base64
import getpass
import hashlib
import json
import platform
import re
import shutil
import signal
import socket
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import r2med
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.foundation.store import Store
from r2med.foundation.store.holdings import rows_about, verify_store
from r2med.models.encoders.replicas import Replicas
from r2med.publication.packs import packing, unpacking
from r2med.publication.packs.gathering import command_of, model_settings
from r2med.publication.packs.verified_pack import listed_pack
from support.datasets import random_folder
from support.facts import error_states, states
from support.faults import signal_at
from support.fork_server import Command
from support.loopback import listening
from support.packs import SYSTEMS, Person, tree, unmarked, unzipped
from support.searching_agents import scripted_runtime, village


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket connects, and no model is loaded."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a pack must be enough")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(Replicas, "__init__", refuse)


# What a pack gives


def test_an_empty_store_with_a_pack_gives_the_same_records_bit_for_bit(
    person: Person, tmp_path: Path, alone: None
) -> None:
    store = Store(tmp_path / "store")
    r2med.unpack(person.pack, tmp_path / "unpacked", store=store)
    again = person.run(store, tmp_path / "again")
    assert again.errors == {}
    for first, record in zip(person.records, again.records, strict=True):
        [written] = person.out.rglob(f"*-{first.key[:10]}.json")
        record.model_copy(update={"created": first.created, "named": first.named}).write(tmp_path / "record.json")
        assert (tmp_path / "record.json").read_bytes() == written.read_bytes()
    made = {path.name: path.read_bytes() for path in (tmp_path / "again").rglob("*.*") if path.suffix != ".json"}
    assert made == {path.name: path.read_bytes() for path in person.out.rglob("*.*") if path.suffix != ".json"}
    assert len(made) == 9  # a run and its metadata for each record, and the generated texts


def test_the_same_command_finds_the_unpacked_records(person: Person, tmp_path: Path, alone: None) -> None:
    store = Store(tmp_path / "store")
    r2med.unpack(person.pack, tmp_path / "out", store=store)
    assert unmarked(tmp_path / "out") == unmarked(person.out)
    assert all(cell.reused for cell in person.run(store, tmp_path / "out"))
    assert unmarked(tmp_path / "out") == unmarked(person.out)
    assert not any(kept.record.unpacked for kept in collect([tmp_path / "out"]).runs_of_all), "scored here"


def test_vectors_of_a_pack_are_searched_to_another_depth(person: Person, tmp_path: Path, alone: None) -> None:
    store = Store(tmp_path / "store")
    r2med.unpack(person.pack, tmp_path / "out", store=store)
    [cell] = r2med.run("bge", person.data, out=None, k=7, store=store, **person.of_models)
    assert cell.error == ""


def test_a_pack_has_the_vectors_of_its_documents_only_also_where_others_share_them(
    person: Person, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store, data = Store(tmp_path / "store"), tmp_path / "mini"
    shutil.copytree(person.data, data)
    assert r2med.run("bge", data, out=None, store=store, **person.of_models).errors == {}
    lines = (data / "corpus.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    rows[3]["text"] = "another text"
    (data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out, file = tmp_path / "out", tmp_path / "run.r2pack"
    assert r2med.run("bge", data, out=out, store=store, **person.of_models).errors == {}
    assert [len(np.load(path)) for path in sorted(store.root.glob("vectors/*/vectors.npy"), key=_mtime)] == [30, 1]
    r2med.pack(out, file, data=[str(data)], store=store, results=out, **person.settings)
    elsewhere = Store(tmp_path / "elsewhere")
    r2med.unpack(file, tmp_path / "unpacked", store=elsewhere)
    assert [len(np.load(path)) for path in elsewhere.root.glob("vectors/*/vectors.npy")] == [29]
    request.getfixturevalue("alone")
    [cell] = r2med.run("bge", data, out=None, k=7, store=elsewhere, **person.of_models)
    assert cell.error == ""


def _mtime(path: Path) -> int:
    return path.stat().st_mtime_ns


def test_what_was_unpacked_belongs_to_its_dataset(person: Person, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    r2med.unpack(person.pack, tmp_path / "out", store=store)
    found = {path.name: len(keys) for path, keys in rows_about(store, ["mini"]).items()}
    assert found["chat.sqlite"] == 8
    assert found["bge-reranker.sqlite"] > 0


def test_recorded_texts_of_a_folder_are_inside(person: Person, tmp_path: Path, alone: None) -> None:
    rows = [{"id": query.id, "hy_doc": f"text of {query.id}"} for query in r2med.load(person.data).queries]
    file = tmp_path / "texts/mini/hyde/gpt4/query_with_hydoc.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def run(texts: Path, store: Store, out: Path) -> r2med.Record:
        [cell] = r2med.run("hyde(gpt4) → bm25", person.data, out=out, store=store, generations=texts)
        assert cell.record is not None, cell.error
        return cell.record

    first = run(tmp_path / "texts", person.store, tmp_path / "own")
    file_of_pack = tmp_path / "texts.r2pack"
    manifest = person.packed(file_of_pack, sources=[tmp_path / "own"], generations=tmp_path / "texts", base_url="")
    assert manifest.records[0].command.endswith("--data mini --generations results/generations")
    store = Store(tmp_path / "store")
    r2med.unpack(file_of_pack, tmp_path / "results", store=store)
    again = run(tmp_path / "results/generations", store, tmp_path / "again")
    assert again.model_copy(update={"created": first.created, "named": first.named}) == first


# What a pack holds


def test_packing_twice_gives_the_same_bytes(person: Person, tmp_path: Path) -> None:
    person.packed(tmp_path / "again.r2pack")
    assert (tmp_path / "again.r2pack").read_bytes() == person.pack.read_bytes()
    assert (tmp_path / "again.r2pack").stat().st_mode & 0o777 == 0o600


def _is_named(name: str, content: bytes) -> bool:
    """Return True if a text holds the name as a word. In vectors, the letters of a short name occur by chance."""
    try:
        return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", content.decode()))
    except UnicodeDecodeError:
        return len(name) > 6 and name.encode() in content


def test_a_pack_names_no_machine_user_path_or_document(person: Person) -> None:
    names = {platform.node(), getpass.getuser(), str(person.root), str(Path.home()), "process"}
    document = json.loads((person.data / "corpus.jsonl").read_text().splitlines()[0])["text"]
    for path, content in unzipped(person.pack).items():
        if path.startswith("rows/"):
            content = b"".join(base64.b64decode(json.loads(line)["value"]) for line in content.splitlines())
        assert not [name for name in names if _is_named(name, content)], path
        assert document.encode() not in content


def test_a_pack_with_the_value_of_a_key_is_refused(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "bge-reranker@5")
    with error_states("SOME_API_KEY"):
        person.packed(tmp_path / "no.r2pack")
    assert not [path for path in tmp_path.iterdir() if "r2pack" in path.name]


def test_parts_are_chosen(person: Person, tmp_path: Path) -> None:
    manifest = person.packed(tmp_path / "runs.r2pack", ["runs"])
    assert {part.kind for part in manifest.parts} == {"records", "runs"}
    with error_states("'vector'", "vectors"):
        person.packed(tmp_path / "no.r2pack", ["vector"])


def test_documents_are_inside_only_where_a_licence_allows_it(person: Person, tmp_path: Path) -> None:
    with error_states("licence", "mini", "corpus"):
        person.packed(tmp_path / "no.r2pack", ["corpus"])
    with error_states("licence", "mini", "all rights reserved"):
        person.packed(tmp_path / "no.r2pack", ["corpus"], corpus_licence="all rights reserved")
    person.packed(tmp_path / "yes.r2pack", ["corpus", "runs"], corpus_licence="CC-BY-4.0")
    done = r2med.unpack(tmp_path / "yes.r2pack", tmp_path / "out", data=tmp_path / "data", store=Store(tmp_path / "s"))
    assert done.data == (tmp_path / "data/mini",)
    assert r2med.load(tmp_path / "data/mini").fingerprint == person.records[0].dataset.fingerprint


def test_nothing_is_packed_that_the_store_no_longer_has(person: Person, tmp_path: Path) -> None:
    with pytest.raises(r2med.UserError, match=r"(?s)missing in this store; run it again \(r2med run"):
        person.packed(tmp_path / "no.r2pack", store=Store(tmp_path / "empty"))


def test_other_settings_than_those_of_the_record_are_named(person: Person, tmp_path: Path) -> None:
    with error_states("query.dtype", '"bfloat16"', '"float32"'):
        person.packed(tmp_path / "no.r2pack", sources=["bge"], dtype="bfloat16")


# Merging


def test_packs_of_several_people_merge(person: Person, tmp_path: Path) -> None:
    store, out = Store(tmp_path / "store"), tmp_path / "out"
    for number, system in enumerate(SYSTEMS):
        person.packed(tmp_path / f"{number}.r2pack", sources=[system])
        r2med.unpack(tmp_path / f"{number}.r2pack", out, store=store)
    done = r2med.unpack(person.pack, out, store=store)
    assert done.written == 0
    assert unmarked(out) == unmarked(person.out)


def test_another_answer_to_the_same_question_is_not_overwritten(person: Person, tmp_path: Path) -> None:
    store, out = Store(tmp_path / "store"), tmp_path / "out"
    with unpacking.memo_rows(person.store.root / "journal/chat.sqlite") as rows:
        key, value = next(iter(rows.items()))
    with unpacking.memo_rows(store.root / "journal/chat.sqlite") as mine:
        mine.put({key: value.replace(b'"content": "', b'"content": "no: ')})
    before = tree(store.root, tmp_path)
    with error_states("chat", "unpack(keep_mine=True)"):
        r2med.unpack(person.pack, out, store=store)
    assert tree(store.root, tmp_path) == before
    r2med.unpack(person.pack, out, store=store, keep_mine=True)
    with unpacking.memo_rows(store.root / "journal/chat.sqlite") as mine:
        kept = dict(mine.items())
    assert len(kept) == 8
    assert b"no: " in kept[key]


def test_costs_of_two_people_are_not_a_conflict(person: Person, tmp_path: Path) -> None:
    own = person.run(Store(tmp_path / "own"), tmp_path / "out", "bge", "bm25 → bge-reranker@5")
    assert own.errors == {}
    done = r2med.unpack(person.pack, tmp_path / "out", store=Store(tmp_path / "own"))
    assert done.known > 0


@pytest.mark.parametrize("write", [5, 40, 90])
def test_a_killed_unpack_leaves_a_sound_store_and_is_finished_later(
    person: Person, r2med: Command, tmp_path: Path, write: int
) -> None:
    home, out = tmp_path / "home", tmp_path / "results"
    killed = r2med("unpack", person.pack, fault=signal_at(write, signal.SIGKILL, tmp_path), R2MED_HOME=home)
    assert killed.returncode == -signal.SIGKILL
    assert [each.fault for each in verify_store(Store(home)) if each.fault] == []
    for record in out.rglob("*-??????????.json"):
        assert Record.read(record).files_are_sound(record.parent)
    done = r2med("unpack", person.pack, R2MED_HOME=home)
    assert done.returncode == 0, done.stderr
    assert unmarked(out) == unmarked(person.out)
    assert {path.parent.parent.name for path in home.glob("*/*/manifest.json")} >= {"run", "vectors", "query-vectors"}


def test_the_precision_of_a_gpu_is_that_of_the_record_and_part_of_its_command(person: Person) -> None:
    # On a GPU, models run in bfloat16 by default.
    record = person.records[0]
    half = json.loads(json.dumps(record.settings).replace("float32", "bfloat16"))
    here = r2med.Runtime(device="cpu")
    assert model_settings(half, here) == {"dtype": "bfloat16"}
    command = command_of(record.model_copy(update={"settings": half}))
    assert command == "r2med run bge --data mini --k 20 --dtype bfloat16"
    assert model_settings(half, r2med.Runtime(dtype="float16")) == {}  # the user decides


# The commands, and packs of web servers


def test_pack_list_shows_what_is_inside_and_what_it_saves(person: Person, r2med: Command, tmp_path: Path) -> None:
    shown = r2med("show", str(person.pack))
    assert shown.returncode == 0, shown.stderr
    for words in ("rerankings", "tokens of LLMs", "seconds of encoders", "not stated", "r2med run bge --data mini"):
        assert words in shown.stdout
    listed = json.loads(r2med("show", str(person.pack), "--format", "json").stdout)["packs"]
    assert listed["saves"]["llm_calls"] == 10
    with listed_pack(person.pack) as listing:
        assert len(listed["parts"]) == len(listing.manifest.parts)


def test_a_pack_is_fetched_from_a_web_server_by_its_digest(person: Person, r2med: Command, tmp_path: Path) -> None:
    content = person.pack.read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/resolve/run.r2pack":
                self.send_response(302)
                self.send_header("Location", "/file")
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    digest = hashlib.sha256(content).hexdigest()
    with listening(Handler) as address:
        url = f"{address}/resolve/run.r2pack"
        missing = r2med("unpack", url)
        wrong = r2med("unpack", url, "--sha256", digest[::-1])
        assert not (tmp_path / "results").exists()
        right = r2med("unpack", url, "--sha256", digest)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "r2med unpack URL --sha256 DIGEST" in missing.stderr
    states(wrong.stderr, "URL", "SHA-256")
    assert right.returncode == 0, right.stderr
    assert "r2med run bge --data mini --k 20" in right.stdout
    assert len(tree(tmp_path / "results")) == len(tree(person.out))


def test_offline_no_pack_is_fetched_from_another_machine(r2med: Command) -> None:
    refused = r2med("unpack", "https://example.org/run.r2pack", "--sha256", "0" * 64, "--offline")
    states(refused.stderr, "offline", "example.org")


def test_a_folder_is_not_the_file_of_a_pack(r2med: Command, tmp_path: Path) -> None:
    done = r2med("pack", "-o", str(tmp_path))
    assert done.returncode == 2
    states(done.stderr, tmp_path, "folder", f"--out {tmp_path}.r2pack")


def test_two_datasets_do_not_share_a_folder_of_a_pack(tmp_path: Path) -> None:
    both = {
        name: r2med.Dataset.of({"q": "why"}, {"d": name}, {"q": {"d": 1}}, name=name)
        for name in ("My notes", "my_notes")
    }
    with error_states("My notes", "my_notes", "folder"):
        list(packing._corpora(both, tmp_path, Store(tmp_path / "store")))


def test_a_part_of_a_fusion_that_was_timed_later_has_its_latencies_in_a_pack(tmp_path: Path) -> None:
    data = r2med.load(random_folder(tmp_path / "mini", documents=30))
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    r2med.run("bm25+bm25(k1=2)", data, out=tmp_path / "fused", store=first)  # it stores the runs of its parts
    [made] = r2med.run("bm25", data, out=tmp_path / "out", store=first).records
    r2med.pack([tmp_path / "out"], tmp_path / "a.r2pack", data=tmp_path / "mini", store=first)
    r2med.unpack(tmp_path / "a.r2pack", tmp_path / "unpacked", data=tmp_path / "mini", store=second)
    [again] = r2med.run("bm25", data, out=None, store=second).records
    assert again.stages[0].latency_p95 == made.stages[0].latency_p95 > 0


@pytest.mark.parametrize("holds", [None, ["runs", "answers", "rerankings", "corpus"]])
def test_an_agent_that_answers_is_unpacked_with_and_without_its_conversations(tmp_path: Path, holds: Any) -> None:
    data, out, file = village(tmp_path / "set", ["finder"]), tmp_path / "out", tmp_path / "run.r2pack"
    with scripted_runtime(tmp_path / "mine") as mine:
        r2med.answer("agent(script, calls=tags)", data=data, conditions="searched", out=out, setup=mine)
        r2med.pack(out, file, holds, data=[str(data)], corpus_licence="CC0-1.0", setup=mine)
    other = Store(tmp_path / "other")
    r2med.load(data, other)  # so that scores are computed again
    unpacked = r2med.unpack(file, tmp_path / "unpacked", data=tmp_path / "data", store=other)
    assert unpacked.unscored == ()
    assert len(list((tmp_path / "unpacked").rglob("*.traces.json"))) == (holds is not None)
    for made in out.rglob("*.answers.json*"):
        assert (tmp_path / "unpacked" / made.relative_to(out)).read_bytes() == made.read_bytes()

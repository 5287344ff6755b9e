"""Packs: where only a pack is, the same commands compute nothing; and no pack of a stranger does harm."""

import base64
import getpass
import hashlib
import io
import json
import os
import platform
import re
import shutil
import signal
import socket
import warnings
import zipfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import r2med
from r2med.evaluation.records.record import Record
from r2med.foundation.store import Store
from r2med.foundation.store.holdings import holdings, rows_about
from r2med.foundation.store.memo import memo_rows
from r2med.models.encoders.replicas import Replicas
from r2med.models.llm.scripted import ScriptedBackend
from support.datasets import r2med_folder
from support.facts import error_states, states
from support.faults import signal_at
from support.fork_server import Command
from support.loopback import listening

from .conftest import SYSTEMS, Person

Files = dict[str, bytes]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket connects, and no model is loaded."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a pack must be enough")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(Replicas, "__init__", refuse)


def tree(*folders: Path) -> Files:
    """Return every file in some folders, without the files that SQLite keeps beside its tables."""
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def undated(folder: Path) -> list[object]:
    """Return the content of every file, without the times at which records were made and named."""
    times = ("created", "named", "checksum")
    return [
        {name: value for name, value in json.loads(content).items() if name not in times}
        if path.endswith(".json")
        else content
        for path, content in tree(folder).items()
    ]


def unzipped(path: Path) -> Files:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(path: Path, files: Files, extra: Callable[[zipfile.ZipFile], None] = lambda archive: None) -> Path:
    """Write files as a zip, which `extra` may add to."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        extra(archive)
    return path


def relisted(files: Files) -> Files:
    """Return files with a manifest that has their true sizes and hashes, as a forger would write it."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"] = [
        {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in sorted(files.items())
        if path != "manifest.json"
    ]
    return {**files, "manifest.json": json.dumps(manifest).encode()}


def first(files: Files, start: str, end: str = "") -> str:
    return next(path for path in files if path.startswith(start) and path.endswith(end))


# What a pack gives


def test_an_empty_store_with_a_pack_gives_the_same_records_and_files(
    person: Person, tmp_path: Path, alone: None
) -> None:
    store = Store(tmp_path / "store")
    r2med.unpack(person.pack, tmp_path / "unpacked", store=store)
    assert [*tree(tmp_path / "unpacked").values()] == [*tree(person.out).values()]
    again = person.run(store, tmp_path / "again")
    assert again.errors == {}
    assert undated(tmp_path / "again") == undated(person.out)
    found = person.run(store, tmp_path / "unpacked")
    assert found.reused == len(found.records)


def test_vectors_of_a_pack_are_searched_to_another_depth_unless_they_were_left_out(
    person: Person, tmp_path: Path, alone: None
) -> None:
    person.packed(tmp_path / "small.r2pack", vectors=False)
    for pack, works in ((person.pack, True), (tmp_path / "small.r2pack", False)):
        store = Store(tmp_path / f"store of {pack.name}")
        r2med.unpack(pack, tmp_path / "out", store=store)
        assert not person.run(store, tmp_path / "again").errors
        if works:
            assert not person.run(store, None, "bge", k=7).errors
        else:
            assert not list(store.root.glob("*vectors"))


def test_a_pack_has_the_vectors_of_its_documents_only_also_where_others_share_them(
    person: Person, tmp_path: Path
) -> None:
    store, data = Store(tmp_path / "store"), tmp_path / "mini"
    settings = {name: value for name, value in person.settings.items() if name != "base_url"}
    shutil.copytree(person.data, data)
    assert r2med.run("bge", data, out=None, store=store, **settings).errors == {}
    lines = (data / "corpus.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    rows[3]["text"] = "another text"
    (data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert r2med.run("bge", data, out=tmp_path / "out", store=store, **settings).errors == {}
    sizes = {len(np.load(path)) for path in store.root.glob("vectors/*/vectors.npy")}
    assert sizes == {30, 29}, "28 vectors of the second corpus are copies from the first"
    r2med.pack(tmp_path / "out", tmp_path / "a.r2pack", data=[str(data)], store=store, **settings)
    elsewhere = Store(tmp_path / "elsewhere")
    r2med.unpack(tmp_path / "a.r2pack", tmp_path / "unpacked", store=elsewhere)
    assert [len(np.load(path)) for path in elsewhere.root.glob("vectors/*/vectors.npy")] == [29]


def test_what_was_unpacked_belongs_to_its_dataset(person: Person, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    r2med.unpack(person.pack, tmp_path / "out", store=store)
    found = {path.name: len(keys) for path, keys in rows_about(store, ["mini"]).items()}
    assert found["chat.sqlite"] == 8
    assert found["bge-reranker.sqlite"] > 0
    r2med.clear_cache("mini", yes=True, store=store)
    assert not [*store.root.glob("*/*/vectors.npy"), *store.root.glob("run/*")]


# What a pack holds


def test_packing_twice_gives_the_same_bytes_which_others_cannot_read(person: Person, tmp_path: Path) -> None:
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


def test_a_path_of_this_machine_in_the_name_of_a_system_is_refused(person: Person, tmp_path: Path) -> None:
    run = next(person.out.rglob("*.trec.gz"))
    r2med.run(f"run:{run}", person.data, out=tmp_path / "out", store=person.store)
    with error_states("path", "run:"):
        person.packed(tmp_path / "no.r2pack", sources=[tmp_path / "out"])


def test_nothing_is_packed_that_the_store_no_longer_has(person: Person, tmp_path: Path) -> None:
    with pytest.raises(r2med.UserError, match=r"(?s)missing in this store; run it again \(r2med run"):
        person.packed(tmp_path / "no.r2pack", store=Store(tmp_path / "empty"))


def test_other_settings_than_those_of_the_record_are_named(person: Person, tmp_path: Path) -> None:
    with error_states("query.dtype", '"bfloat16"', '"float32"'):
        person.packed(tmp_path / "no.r2pack", sources=["bge"], dtype="bfloat16")


# Adding


def test_packs_of_several_people_are_added(person: Person, tmp_path: Path) -> None:
    store, out = Store(tmp_path / "store"), tmp_path / "out"
    for number, system in enumerate(SYSTEMS):
        person.packed(tmp_path / f"{number}.r2pack", sources=[system])
        r2med.unpack(tmp_path / f"{number}.r2pack", out, store=store)
    assert [*tree(out).values()] == [*tree(person.out).values()]
    assert r2med.unpack(person.pack, out, store=store).written == 0


def test_what_is_here_is_never_replaced(person: Person, tmp_path: Path) -> None:
    store, out = Store(tmp_path / "store"), tmp_path / "out"
    with memo_rows(person.store.root / "journal/chat.sqlite") as rows:
        key, value = next(iter(rows.items()))
    own = value.replace(b'"content": "', b'"content": "no: ')
    with memo_rows(store.root / "journal/chat.sqlite") as mine:
        mine.put({key: own})
    with zipfile.ZipFile(person.pack) as pack:  # the store also has runs that no record read
        kind, folder = next(name.split("/")[1:3] for name in pack.namelist() if name.startswith("artefacts/run/"))
    store.make(kind, folder, lambda work: {"mine": np.save(work / "x.npy", np.zeros(1)) or "yes"})
    record = next(person.out.rglob("*.json")).relative_to(person.out)
    (out / record).parent.mkdir(parents=True)
    (out / record).write_text("mine")
    done = r2med.unpack(person.pack, out, store=store)
    assert done.known == 3
    with memo_rows(store.root / "journal/chat.sqlite") as mine:
        kept = dict(mine.items())
    assert (len(kept), kept[key]) == (8, own)
    artefact = store.get(kind, folder)
    assert artefact is not None and artefact.meta["mine"] == "yes"
    assert (out / record).read_text() == "mine"


@pytest.mark.parametrize("write", [5, 40, 90])
def test_a_killed_unpack_is_finished_later(person: Person, r2med: Command, tmp_path: Path, write: int) -> None:
    home, out = tmp_path / "home", tmp_path / "results"
    killed = r2med("unpack", person.pack, fault=signal_at(write, signal.SIGKILL, tmp_path), R2MED_HOME=home)
    assert killed.returncode == -signal.SIGKILL
    folders = [path for holding in holdings(Store(home)) for path in holding.paths if path.is_dir()]
    assert all(Store(home).get(path.parent.name, path.name) for path in folders)
    for record in out.rglob("*-??????????.json"):
        assert Record.read(record).files_are_sound(record.parent)
    done = r2med("unpack", person.pack, R2MED_HOME=home)
    assert done.returncode == 0, done.stderr
    assert [*tree(out).values()] == [*tree(person.out).values()]
    assert {path.parent.parent.name for path in home.glob("*/*/*")} >= {"run", "vectors", "query-vectors"}


# Scores and answers


def _praised(person: Person, tmp_path: Path) -> Path:
    """Return a pack with a record whose best score was raised by hand."""
    files = unzipped(person.pack)
    path = first(files, "results/mini/bge", ".json")
    record = Record.parse(files[path], path)
    record.model_copy(update={"mean": {**record.mean, "nDCG@10": 0.99}}).write(tmp_path / "record.json")
    return zipped(tmp_path / "x", relisted({**files, path: (tmp_path / "record.json").read_bytes()}))


def test_runs_are_scored_again_where_their_dataset_is(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(person.root)
    assert r2med.unpack(person.pack, tmp_path / "out", store=Store(tmp_path / "store")).unscored == ()
    with error_states("nDCG@10", "0.9900", "run"):
        r2med.unpack(_praised(person, tmp_path), tmp_path / "new", store=Store(tmp_path / "other"))
    assert not [*(tmp_path / "new").glob("*"), *(tmp_path / "other").glob("journal"), *(tmp_path / "other").glob("run")]


def test_where_the_dataset_is_missing_one_line_says_so(person: Person, tmp_path: Path, r2med: Command) -> None:
    shown = r2med("unpack", str(_praised(person, tmp_path)), R2MED_HOME=tmp_path / "home")
    assert shown.returncode == 0, shown.stderr
    assert [line for line in shown.stdout.splitlines() if line.startswith("not scored again: mini")]


def test_answer_records_are_inside_and_the_same_command_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("gout", "measles", "scurvy")
    documents = [{"id": name, "text": f"The signs of {name} are known to all."} for name in names]
    queries = [{"id": name, "text": f"Case of {name}: what is it?", "answer": name} for name in names]
    r2med_folder(tmp_path / "mini", documents, queries, [{"q_id": n, "p_id": n, "score": 1} for n in names])
    rules = [{"when": [f"Case of {name}"], "answer": json.dumps({"answer": f"It is {name} [1]."})} for name in names]
    (tmp_path / "reader.jsonl").write_text("".join(f"{json.dumps(rule)}\n" for rule in rules))

    def answer(store: Store, out: Path) -> Any:
        paths = {"reader": tmp_path / "reader.jsonl"}
        return r2med.answer("bm25", "reader", tmp_path / "mini", out=out, store=store, model_paths=paths)

    store, other = Store(tmp_path / "store"), Store(tmp_path / "other")
    answer(store, tmp_path / "results")
    r2med.pack(tmp_path / "results", tmp_path / "a.r2pack", data=tmp_path / "mini", store=store)
    monkeypatch.chdir(tmp_path)  # so that the answers are scored again, too
    done = r2med.unpack("a.r2pack", "unpacked", store=other)
    assert done.unscored == ()
    assert sorted(record.system for record in done.manifest.records) == ["bm25", "bm25 · reader"]
    monkeypatch.setattr(ScriptedBackend, "answer", lambda *_: pytest.fail("a pack must be enough"))
    assert answer(other, tmp_path / "unpacked").reused == 1
    files = unzipped(tmp_path / "a.r2pack")
    path = first(files, "results/", ".answers.jsonl")
    zipped(tmp_path / "x", relisted({**files, path: files[path].replace(b"gout", b"Gout")}))
    with error_states("answers.jsonl"):
        r2med.unpack("x", "forged", store=other)
    assert tree(tmp_path / "forged") == {}


# The commands, and packs of web servers


def test_show_says_what_is_inside_and_unpack_how_to_use_it(person: Person, r2med: Command, tmp_path: Path) -> None:
    shown = r2med("show", str(person.pack))
    assert shown.returncode == 0, shown.stderr
    for words in ("vectors of the store", "answers of LLMs", "4 records", *SYSTEMS):
        assert words in shown.stdout
    done = r2med("unpack", str(person.pack), R2MED_HOME=tmp_path / "home")
    assert "  r2med run bge --data mini --k 20\n" in done.stdout
    assert "  r2med run 'hyde(org/m) → bm25' --data mini --k 20 --base-url URL\n" in done.stdout


def test_the_precision_of_a_record_is_part_of_its_command(person: Person, tmp_path: Path) -> None:
    half, store = {**person.settings, "dtype": "float16"}, Store(tmp_path / "store")
    del half["base_url"]
    assert r2med.run("bge", person.data, out=tmp_path / "half", store=store, **half).errors == {}
    person.packed(tmp_path / "half.r2pack", sources=[tmp_path / "half"], store=store)  # its record says the precision
    done = r2med.unpack(tmp_path / "half.r2pack", tmp_path / "out", store=Store(tmp_path / "other"))
    assert done.commands == ("r2med run bge --data mini --dtype float16",)


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
    assert len(tree(tmp_path / "results")) == len(tree(person.out))


def test_offline_no_pack_is_fetched_from_another_machine(r2med: Command) -> None:
    refused = r2med("unpack", "https://example.org/run.r2pack", "--sha256", "0" * 64, "--offline")
    states(refused.stderr, "offline", "example.org")


def test_a_folder_is_not_the_file_of_a_pack(r2med: Command, tmp_path: Path) -> None:
    done = r2med("pack", "-o", str(tmp_path))
    assert done.returncode == 2
    states(done.stderr, tmp_path, "folder", f"--out {tmp_path}.r2pack")


# Packs of strangers


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[Path], str]:
    """Unpack a file that must be refused, and return the one line that says why."""

    def refuse(path: Path) -> str:
        store, out = tmp_path / "store", tmp_path / "out"
        with pytest.raises(r2med.UserError) as error:
            r2med.unpack(path, out, store=Store(store))
        assert tree(store, out) == {}
        assert "\n" not in str(error.value)
        return str(error.value)

    return refuse


NAMES = ["../../evil.json", "/etc/evil", "results/../../evil", "a\\..\\evil", "C:evil", "results//a", "bad\x07name"]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_leads_out_of_the_pack(person: Person, tmp_path: Path, refused: Any, name: str) -> None:
    files = relisted({**unzipped(person.pack), name: b"{}"})
    states(refused(zipped(tmp_path / "x", files)), "plain name")


@pytest.mark.parametrize(
    "path",
    [
        "anything.txt",
        "artefacts/bm25-postings/" + "0" * 32 + "/ids.npy",
        "artefacts/run/" + "0" * 32 + "/x.so",
        "artefacts/run/short/x.npy",
        "rows/notes/x/" + "0" * 12 + ".jsonl",
        "results/mini/evil.py",
        "results/mini/x.traces.yml",
    ],
)
def test_a_file_must_belong_somewhere(person: Person, tmp_path: Path, refused: Any, path: str) -> None:
    files = relisted({**unzipped(person.pack), path: b"{}"})
    states(refused(zipped(tmp_path / "x", files)), path, "not a file that a pack holds")


def test_a_name_twice_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    name = first(files, "results/", ".json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        twice = zipped(tmp_path / "x", files, lambda archive: archive.writestr(name, b"{}"))
    assert "is in it twice" in refused(twice)
    other = zipped(tmp_path / "y", files, lambda archive: archive.writestr(name.upper(), b"{}"))
    assert "is in it twice" in refused(other)


def test_a_bomb_is_not_opened(person: Person, tmp_path: Path, refused: Any) -> None:
    files = {**unzipped(person.pack), "rows/journal/chat/000000000000.jsonl": bytes(20 << 20)}
    states(refused(zipped(tmp_path / "x", files)), 20 << 20, "bytes")


def test_a_pack_that_does_not_fit_on_the_disk_is_refused(
    person: Person, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    states(refused(person.pack), "1,000", "free")


def test_a_file_that_is_longer_than_it_says_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    content = bytearray(zipped(tmp_path / "x", unzipped(person.pack)).read_bytes())
    with zipfile.ZipFile(tmp_path / "x") as archive:
        info = max(archive.infolist(), key=lambda each: each.file_size)
    directory = content.rindex(info.filename.encode()) - 46
    content[directory + 24 : directory + 28] = (info.file_size - 1).to_bytes(4, "little")
    (tmp_path / "x").write_bytes(content)
    assert "nothing" in refused(tmp_path / "x")


@pytest.mark.parametrize("start", ["artefacts/vectors/", "rows/", "results/"])
def test_every_file_must_have_its_bytes(person: Person, tmp_path: Path, refused: Any, start: str) -> None:
    files = unzipped(person.pack)
    path = first(files, start)
    damaged = {**files, path: files[path][:-1] + bytes([files[path][-1] ^ 1])}
    states(refused(zipped(tmp_path / "x", damaged)), path, "bytes", "manifest")


def test_files_and_manifest_must_agree(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    missing = {path: content for path, content in files.items() if path != first(files, "rows/")}
    for changed in (missing, {**files, "results/mini/more.json": b"{}"}):
        states(refused(zipped(tmp_path / "x", changed)), "files", "manifest")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"format": 99}, ["format 99", "format 1"]),
        ({"records": "none"}, ["manifest", "records"]),
        ({"surprise": 1}, ["manifest", "surprise"]),
    ],
)
def test_the_manifest_must_be_one_of_this_version(
    person: Person, tmp_path: Path, refused: Any, change: dict[str, Any], facts: list[str]
) -> None:
    files = unzipped(person.pack)
    manifest = {**json.loads(files["manifest.json"]), **change}
    states(refused(zipped(tmp_path / "x", {**files, "manifest.json": json.dumps(manifest).encode()})), *facts)


def _line(value: bytes) -> bytes:
    return json.dumps({"key": "0" * 32, "value": base64.b64encode(value).decode()}).encode() + b"\n"


def _pickled() -> bytes:
    content = io.BytesIO()
    np.save(content, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return content.getvalue()


@pytest.mark.parametrize(
    ("start", "end", "content", "facts"),
    [
        ("rows/journal/", ".jsonl", b"[]\n", ["row"]),
        ("rows/journal/", ".jsonl", b'{"key": "00", "value": "no base64"}\n', ["row"]),
        ("rows/journal/", ".jsonl", _line(b'{"model": "m", "answer": {}}'), ["row"]),
        ("rows/journal/", ".jsonl", _line(b'{"model": 1, "failure": {"kind": "empty", "message": ""}}'), ["row"]),
        ("rows/scores/", ".jsonl", b"[" * 100_000, ["row"]),
        ("artefacts/run/", "meta.json", b"[]", ["metadata", "run"]),
        ("artefacts/vectors/", ".npy", b"not an array", ["damaged"]),
        ("artefacts/vectors/", ".npy", _pickled(), ["damaged"]),
        ("results/", ".json", b"{}", ["results/mini"]),
    ],
)
def test_what_cannot_be_read_is_refused(
    person: Person, tmp_path: Path, refused: Any, start: str, end: str, content: bytes, facts: list[str]
) -> None:
    files = unzipped(person.pack)
    forged = relisted({**files, first(files, start, end): content})
    states(refused(zipped(tmp_path / "x", forged)), *facts)


def test_other_files_and_cut_packs_are_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    whole = person.pack.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2], whole[100:]):
        (tmp_path / "x").write_bytes(content)
        assert "is not a pack" in refused(tmp_path / "x")
    states(refused(tmp_path / "nothing.r2pack"), "nothing.r2pack", "no such file")
    with error_states("another SHA-256"):
        r2med.unpack(person.pack, sha256="0" * 64)
    os.mkfifo(tmp_path / "pipe")
    states(refused(tmp_path / "pipe"), "pipe", "not a file")
    with error_states("/dev/null", "device"):  # /dev/zero would fill the memory
        r2med.unpack(os.devnull, store=Store(tmp_path / "store"))

"""Damaged, hostile and foreign packs: one line, and nothing is written."""

import base64
import hashlib
import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import r2med
from r2med.records.record import Record
from r2med.store import Store
from support.packs import Files, Person, tree, unzipped, zipped


@pytest.fixture
def refused(person: Person, tmp_path: Path) -> Callable[[Path], str]:
    """Unpack a file that must be refused, and return the one line that says why."""

    def refuse(path: Path) -> str:
        store, out = tmp_path / "store", tmp_path / "out"
        with pytest.raises(r2med.UserError) as error:
            r2med.unpack(path, out, data=tmp_path / "data", store=Store(store))
        assert tree(store, out, tmp_path / "data") == {}
        assert "\n" not in str(error.value)
        return str(error.value)

    return refuse


def relisted(files: Files) -> Files:
    """Return files with a manifest that has their true sizes and hashes, as a forger would write it."""
    manifest = json.loads(files["manifest.json"])
    known = {part["path"]: part for part in manifest["parts"]}
    manifest["parts"] = [
        {**known.get(path, {"kind": "runs"}), "path": path, "size": len(content), "sha256": _sha(content)}
        for path, content in sorted(files.items())
        if path != "manifest.json"
    ]
    return {**files, "manifest.json": json.dumps(manifest).encode()}


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _first(files: Files, start: str, end: str = "") -> str:
    return next(path for path in files if path.startswith(start) and path.endswith(end))


NAMES = ["../../evil.json", "/etc/evil", "results/../../evil", "a\\..\\evil", "C:evil", "results//a", "bad\x07name"]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_leads_out_of_the_pack(person: Person, tmp_path: Path, refused: Any, name: str) -> None:
    files = relisted({**unzipped(person.pack), name: b"{}"})
    assert "is not a plain name of a file" in refused(zipped(tmp_path / "x", files))


@pytest.mark.parametrize(
    "path",
    [
        "anything.txt",
        "artefacts/corpus/" + "0" * 32 + "/ids.npy",
        "artefacts/run/" + "0" * 32 + "/x.so",
        "rows/texts/journal/other/" + "0" * 12 + ".jsonl",
        "rows/pairs/reviews/x/" + "0" * 12 + ".jsonl",
        "results/mini/evil.py",
        "data/mini/evil.py",
    ],
)
def test_a_part_must_belong_somewhere(person: Person, tmp_path: Path, refused: Any, path: str) -> None:
    files = relisted({**unzipped(person.pack), path: b"{}"})
    assert "is not a part of the kind runs" in refused(zipped(tmp_path / "x", files))


def test_a_link_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    link = zipfile.ZipInfo("results/mini/link.json")
    link.external_attr = 0o120777 << 16
    files = unzipped(person.pack)
    path = zipped(tmp_path / "x", files, lambda archive: archive.writestr(link, "/etc/passwd"))
    assert "is a link or another special file" in refused(path)


def test_a_file_twice_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    name = _first(files, "results/", ".json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        twice = zipped(tmp_path / "x", files, lambda archive: archive.writestr(name, b"{}"))
    assert "is in it twice" in refused(twice)
    other = zipped(tmp_path / "y", files, lambda archive: archive.writestr(name.upper(), b"{}"))
    assert "is in it twice" in refused(other)


def test_a_bomb_is_not_opened(person: Person, tmp_path: Path, refused: Any) -> None:
    files = {**unzipped(person.pack), "rows/texts/journal/chat/000000000000.jsonl": bytes(20 << 20)}
    assert "would become 20,971,520 bytes" in refused(zipped(tmp_path / "x", files))


def test_a_part_that_is_longer_than_it_says_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    content = bytearray(zipped(tmp_path / "x", unzipped(person.pack)).read_bytes())
    with zipfile.ZipFile(tmp_path / "x") as archive:
        info = max(archive.infolist(), key=lambda each: each.file_size)
    directory = content.rindex(info.filename.encode()) - 46
    content[directory + 24 : directory + 28] = (info.file_size - 1).to_bytes(4, "little")
    (tmp_path / "x").write_bytes(content)
    assert "nothing was written" in refused(tmp_path / "x")


def test_every_part_must_have_its_bytes(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    for path in (_first(files, "artefacts/vectors", "vectors.npy"), _first(files, "rows/"), _first(files, "results/")):
        damaged = {**files, path: files[path][:-1] + bytes([files[path][-1] ^ 1])}
        assert f"{path} has other bytes than its manifest says" in refused(zipped(tmp_path / "x", damaged))


def test_files_and_manifest_must_agree(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    missing = {path: content for path, content in files.items() if path != _first(files, "rows/")}
    for changed in (missing, {**files, "results/mini/more.json": b"{}"}):
        assert "its files are not those of its manifest" in refused(zipped(tmp_path / "x", changed))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 99}, "it has format 99, and this version reads format 1: update r2med"),
        ({"records": "none"}, "its manifest has a wrong value at records"),
        ({"surprise": 1}, "its manifest has a wrong value at surprise"),
        ({"records": []}, "its records are not those of its manifest"),
    ],
)
def test_the_manifest_must_be_one_of_this_version(
    person: Person, tmp_path: Path, refused: Any, change: dict[str, Any], reason: str
) -> None:
    files = unzipped(person.pack)
    manifest = {**json.loads(files["manifest.json"]), **change}
    assert reason in refused(zipped(tmp_path / "x", {**files, "manifest.json": json.dumps(manifest).encode()}))


def test_an_unknown_kind_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    manifest = json.loads(files["manifest.json"])
    manifest["parts"][0]["kind"] = "programs"
    path = zipped(tmp_path / "x", {**files, "manifest.json": json.dumps(manifest).encode()})
    assert "its manifest has a wrong value at parts.0.kind" in refused(path)


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{}",
        b'{"key": "00", "value": ""}',
        b'{"key": "' + b"0" * 32 + b'", "value": "no base64"}',
        b'{"key": "' + b"0" * 32 + b'", "value": "' + base64.b64encode(b'{"model": "m", "answer": {}}') + b'"}',
        b'{"key": "' + b"0" * 32 + b'", "value": "'
        + base64.b64encode(b'{"model": "m", "failure": {"kind": "auth", "message": "x"}}') + b'"}',
        b"[" * 100_000,
    ],
)  # fmt: skip
def test_rows_must_be_answers(person: Person, tmp_path: Path, refused: Any, line: bytes) -> None:
    files = unzipped(person.pack)
    path = _first(files, "rows/texts/")
    forged = relisted({**files, path: files[path] + line + b"\n"})
    assert "a row is not one of the answers of LLMs" in refused(zipped(tmp_path / "x", forged))


def test_arrays_must_be_plain_numbers(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    path = _first(files, "artefacts/vectors", "/vectors.npy")
    manifest_path = path.replace("vectors.npy", "manifest.json")
    pickled = io.BytesIO()
    np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    for content in (pickled.getvalue(), files[path] + b"more", b"not an array"):
        manifest = json.loads(files[manifest_path])
        manifest["files"]["vectors.npy"] = {"size": len(content), "sha256": _sha(content)}
        forged = {**files, path: content, manifest_path: json.dumps(manifest).encode()}
        assert "is not an array" in refused(zipped(tmp_path / "x", relisted(forged)))


@pytest.mark.parametrize("change", [{"cost": None}, {"cost": {"seconds": -1}}, {"cost": {"evil": 1}}, {"prepared": 3}])
def test_facts_of_an_artefact_must_be_those_of_its_kind(
    person: Person, tmp_path: Path, refused: Any, change: dict[str, Any]
) -> None:
    files = unzipped(person.pack)
    path = _first(files, "artefacts/run", "manifest.json")
    body = json.loads(files[path])
    forged = {**files, path: json.dumps({**body, "meta": {**body["meta"], **change}}).encode()}
    assert "does not have the files and the facts of its kind" in refused(zipped(tmp_path / "x", relisted(forged)))


def test_a_record_must_have_its_own_key(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    path = _first(files, "results/", "json")
    record = person.records[0].model_copy(update={"settings": {**person.records[0].settings, "k": 21}})
    record.write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json").settings["k"] == 21
    forged = {**files, path: (tmp_path / "record.json").read_bytes()}
    assert "key is not that of its settings" in refused(zipped(tmp_path / "x", relisted(forged)))


def test_other_files_and_cut_packs_are_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    whole = person.pack.read_bytes()
    chance = random.Random(0)
    for content in (b"", b"text", whole[: len(whole) // 2], whole[100:]):
        (tmp_path / "x").write_bytes(content)
        assert "is not a pack" in refused(tmp_path / "x")
    for _ in range(60):  # a flipped byte is noticed, unless it is in a date or another field that is not used
        place = chance.randrange(len(whole))
        (tmp_path / "x").write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            r2med.unpack(tmp_path / "x", tmp_path / "flipped", store=Store(tmp_path / "flipped store"))
        except r2med.UserError as error:
            assert "nothing was written" in str(error)
    assert "there is no such file" in refused(tmp_path / "nothing.r2pack")
    assert "another SHA-256" in _message(lambda: r2med.unpack(person.pack, sha256="0" * 64))


def _message(action: Callable[[], object]) -> str:
    with pytest.raises(r2med.UserError) as error:
        action()
    return str(error.value)

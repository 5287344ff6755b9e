"""Damaged, hostile and foreign packs: one line, and nothing is written."""

import base64
import hashlib
import io
import json
import os
import random
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import r2med
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.data.runs.run_file import read_rankings
from r2med.evaluation.records.record import Record
from r2med.foundation.store import Store
from r2med.publication.packs.verified_pack import listed_pack
from support.facts import error_states, some_states, states
from support.fork_server import Command
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
    states(refused(zipped(tmp_path / "x", files)), "plain name")


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
    states(refused(zipped(tmp_path / "x", files)), path, "kind runs")


def test_a_link_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    link = zipfile.ZipInfo("results/mini/link.json")
    link.external_attr = 0o120777 << 16
    files = unzipped(person.pack)
    path = zipped(tmp_path / "x", files, lambda archive: archive.writestr(link, "/etc/passwd"))
    states(refused(path), "results/mini/link.json", "link")


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
    states(refused(zipped(tmp_path / "x", files)), 20 << 20, "bytes")


def test_a_part_that_is_longer_than_it_says_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    content = bytearray(zipped(tmp_path / "x", unzipped(person.pack)).read_bytes())
    with zipfile.ZipFile(tmp_path / "x") as archive:
        info = max(archive.infolist(), key=lambda each: each.file_size)
    directory = content.rindex(info.filename.encode()) - 46
    content[directory + 24 : directory + 28] = (info.file_size - 1).to_bytes(4, "little")
    (tmp_path / "x").write_bytes(content)
    assert "nothing" in refused(tmp_path / "x")


def test_every_part_must_have_its_bytes(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    for path in (_first(files, "artefacts/vectors", "vectors.npy"), _first(files, "rows/"), _first(files, "results/")):
        damaged = {**files, path: files[path][:-1] + bytes([files[path][-1] ^ 1])}
        states(refused(zipped(tmp_path / "x", damaged)), path, "bytes", "manifest")


def test_files_and_manifest_must_agree(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    missing = {path: content for path, content in files.items() if path != _first(files, "rows/")}
    for changed in (missing, {**files, "results/mini/more.json": b"{}"}):
        states(refused(zipped(tmp_path / "x", changed)), "files", "manifest")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"format": 99}, ["format 99", "format 1"]),
        ({"records": "none"}, ["manifest", "records"]),
        ({"surprise": 1}, ["manifest", "surprise"]),
        ({"records": []}, ["records", "manifest"]),
    ],
)
def test_the_manifest_must_be_one_of_this_version(
    person: Person, tmp_path: Path, refused: Any, change: dict[str, Any], facts: list[str]
) -> None:
    files = unzipped(person.pack)
    manifest = {**json.loads(files["manifest.json"]), **change}
    states(refused(zipped(tmp_path / "x", {**files, "manifest.json": json.dumps(manifest).encode()})), *facts)


def test_an_unknown_kind_is_refused(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    manifest = json.loads(files["manifest.json"])
    manifest["parts"][0]["kind"] = "programs"
    path = zipped(tmp_path / "x", {**files, "manifest.json": json.dumps(manifest).encode()})
    states(refused(path), "manifest", "parts[0].kind")


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
    states(refused(zipped(tmp_path / "x", forged)), "row", "LLMs")


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
        assert "array" in refused(zipped(tmp_path / "x", relisted(forged)))


@pytest.mark.parametrize("change", [{"cost": None}, {"cost": {"seconds": -1}}, {"cost": {"evil": 1}}, {"prepared": 3}])
def test_facts_of_an_artefact_must_be_those_of_its_kind(
    person: Person, tmp_path: Path, refused: Any, change: dict[str, Any]
) -> None:
    files = unzipped(person.pack)
    path = _first(files, "artefacts/run", "manifest.json")
    body = json.loads(files[path])
    forged = {**files, path: json.dumps({**body, "meta": {**body["meta"], **change}}).encode()}
    states(refused(zipped(tmp_path / "x", relisted(forged))), "facts", "kind")


def test_a_record_must_have_its_own_key(person: Person, tmp_path: Path, refused: Any) -> None:
    files = unzipped(person.pack)
    path = _first(files, "results/", "json")
    record = person.records[0].model_copy(update={"settings": {**person.records[0].settings, "k": 21}})
    record.write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json").settings["k"] == 21
    forged = {**files, path: (tmp_path / "record.json").read_bytes()}
    states(refused(zipped(tmp_path / "x", relisted(forged))), path, "key", "settings")


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
            states(error, "nothing")
    states(refused(tmp_path / "nothing.r2pack"), "nothing.r2pack", "no such file")
    assert "another SHA-256" in _message(lambda: r2med.unpack(person.pack, sha256="0" * 64))


def _message(action: Callable[[], object]) -> str:
    with pytest.raises(r2med.UserError) as error:
        action()
    return str(error.value)


# Records and arrays that contradict each other


def _with_array(files: Files, path: str, array: Any) -> Files:
    """Return files in which one array is another one, and all hashes are right again."""
    content = io.BytesIO()
    np.save(content, array)
    manifest_path = path.rpartition("/")[0] + "/manifest.json"
    manifest = json.loads(files[manifest_path])
    facts = {"size": len(content.getvalue()), "sha256": _sha(content.getvalue())}
    manifest["files"][path.rpartition("/")[2]] = facts
    return relisted({**files, path: content.getvalue(), manifest_path: json.dumps(manifest).encode()})


def _array(files: Files, path: str) -> Any:
    return np.load(io.BytesIO(files[path]))


def _changed(array: Any, place: tuple[int, int], value: float) -> Any:
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("name", "forge", "facts"),
    [
        ("rows", lambda a: _changed(a, (0, 0), -2), ["corpus"]),
        ("rows", lambda a: _changed(a, (0, 0), a[0, 1]), ["twice"]),
        ("rows", lambda a: _changed(a, (0, 0), -1), ["gap"]),
        ("rows", lambda a: a.astype(np.int64), ["int64", "float32"]),
        ("rows", lambda a: a[:, :-1], ["int32"]),
        ("scores", lambda a: _changed(a, (0, 0), np.nan), ["finite"]),
        ("scores", lambda a: a.astype(str), ["type <"]),
    ],
)
def test_a_stored_ranking_that_cannot_be_one_is_refused(
    person: Person, tmp_path: Path, refused: Any, name: str, forge: Any, facts: list[str]
) -> None:
    files = unzipped(person.pack)
    path = _first(files, "artefacts/run", f"/{name}.npy")
    states(refused(zipped(tmp_path / "x", _with_array(files, path, forge(_array(files, path))))), *facts)


@pytest.mark.parametrize(
    ("forge", "facts"),
    [
        (lambda a: _changed(a, (0, 0), np.nan), ["vectors.npy", "NaN"]),
        (lambda a: a.astype(str), ["type <"]),
        (lambda a: a.astype(np.float64), ["float64"]),
        (lambda a: a[0], ["float32", "shape"]),
        (lambda a: a[:, :0], ["float32", "shape"]),
    ],
)
@pytest.mark.parametrize("kind", ["vectors", "query-vectors"])
def test_vectors_that_cannot_be_searched_are_refused(
    person: Person, tmp_path: Path, refused: Any, kind: str, forge: Any, facts: list[str]
) -> None:
    files = unzipped(person.pack)
    path = _first(files, f"artefacts/{kind}/", "/vectors.npy")
    states(refused(zipped(tmp_path / "x", _with_array(files, path, forge(_array(files, path))))), *facts)


def _best_first(person: Person, files: Files) -> tuple[Files, str]:
    """Return a pack in which the stored ranking of the dense model is turned around, and its system."""
    record = next(record for record in person.records if record.system == "bge")
    written = read_rankings(next(person.out.rglob(f"bge-{record.key[:10]}.trec.gz")), encoded=True)
    first = np.array([*next(iter(written.values())).values()], dtype=np.float32)
    for path in sorted(files):
        if path.startswith("artefacts/run/") and path.endswith("/scores.npy"):
            scores = _array(files, path)
            if len(first) <= scores.shape[1] and np.array_equal(scores[0, : len(first)], first):
                rows = path.replace("scores.npy", "rows.npy")
                return _with_array(files, rows, _array(files, rows)[:, ::-1].copy()), "bge"
    raise AssertionError("the pack has no ranking of bge")


@pytest.mark.parametrize("is_here", [True, False])
def test_a_stored_ranking_must_be_that_of_the_run_file(
    person: Person, tmp_path: Path, is_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_here:
        monkeypatch.chdir(person.root)
    forged, _ = _best_first(person, unzipped(person.pack))
    path = zipped(tmp_path / "x", forged)
    with error_states("ranking", "bge"):
        r2med.unpack(path, tmp_path / "out", store=Store(tmp_path / "store"))
    assert not (tmp_path / "out").exists()


def test_a_stored_ranking_without_a_record_is_searched_again_before_it_is_used(
    person: Person, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path / "store")
    r2med.unpack(person.pack, tmp_path / "out", store=store)
    for rows in (store.root / "run").glob("*/rows.npy"):  # as if the pack had brought it so
        artefact = store.get("run", rows.parent.name)
        assert artefact is not None and artefact.meta["unpacked"]
        folder = store.scratch()
        np.save(folder / "rows.npy", artefact.array("rows")[:, ::-1])
        np.save(folder / "scores.npy", artefact.array("scores"))
        meta = dict(artefact.meta)
        store.discard("run", rows.parent.name)
        store.add("run", rows.parent.name, folder, meta)
    [cell] = person.run(store, tmp_path / "again", "bge")
    first = next(record for record in person.records if record.system == "bge")
    assert cell.record is not None and cell.record.mean == first.mean
    some_states(caplog.messages, "search", "here")


@pytest.mark.parametrize("value", [0.999, 0.0])
def test_a_record_that_contradicts_its_run_is_refused_or_made_again(
    person: Person, tmp_path: Path, value: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = unzipped(person.pack)
    record = next(record for record in person.records if record.system == "bge")
    path = next(name for name in files if name.endswith(f"bge-{record.key[:10]}.json"))
    false = {query: dict.fromkeys(values, value) for query, values in record.per_query.items()}
    record.model_copy(update={"per_query": false, "mean": dict.fromkeys(record.mean, value)}).write(tmp_path / "r.json")
    forged = zipped(tmp_path / "x", relisted({**files, path: (tmp_path / "r.json").read_bytes()}))
    r2med.unpack(forged, tmp_path / "out", store=Store(tmp_path / "store"))  # its dataset is not here
    [unpacked] = (tmp_path / "out").rglob(f"bge-{record.key[:10]}.json")
    assert Record.read(unpacked).unpacked
    some_states(r2med.compare(tmp_path / "out").notices, "pack", "not scored")
    [cell] = person.run(Store(tmp_path / "store"), tmp_path / "out", "bge")
    assert cell.record is not None and not cell.reused and cell.record.mean == record.mean
    some_states(caplog.messages, "pack")
    assert not Record.read(unpacked).unpacked
    monkeypatch.chdir(person.root)
    fault = _message(lambda: r2med.unpack(forged, tmp_path / "new", store=Store(tmp_path / "other")))
    states(fault, f"{value:.4f}", "run")
    assert not (tmp_path / "new").exists()


def test_records_whose_dataset_is_here_are_scored_and_not_marked(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(person.root)
    done = r2med.unpack(person.pack, tmp_path / "out", store=Store(tmp_path / "store"))
    assert done.unscored == ()
    assert [*tree(tmp_path / "out").values()] == [*tree(person.out).values()]


def test_commands_are_made_from_records_and_not_from_the_words_of_the_pack(
    person: Person, tmp_path: Path, r2med: Command
) -> None:
    files = unzipped(person.pack)
    manifest = json.loads(files["manifest.json"])
    for record in manifest["records"]:
        record["command"] = "rm -rf ~ # r2med run bm25"
    forged = zipped(tmp_path / "x", {**files, "manifest.json": json.dumps(manifest).encode()})
    for words in (("show", str(forged)), ("unpack", str(forged))):
        shown = r2med(*words)
        assert shown.returncode == 0, shown.stderr
        assert "rm -rf" not in shown.stdout
        assert "r2med run bge --data mini --k 20" in shown.stdout
    some_states(shown.stdout.splitlines(), "not scored", "mini")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    states(_message(lambda: r2med.unpack(tmp_path / "pipe", store=Store(tmp_path / "s"))), "pipe", "not a file")


@pytest.mark.parametrize("read", [lambda path: listed_pack(path).__enter__(), RUBRICS["relevance"].template])
def test_a_device_is_refused_before_it_is_read(read: Callable[[Path], object]) -> None:
    """/dev/zero would fill the memory. /dev/null is a device that ends, so that this test can fail."""
    with error_states("/dev/null", "device"):
        read(Path(os.devnull))

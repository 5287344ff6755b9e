"""Files, folders and archives are read one at a time; what cannot be read is one line with its position."""

import gzip
import io
import tarfile
import zipfile

import pytest

from r2med.construction.items import Rejected, SourcePage
from r2med.construction.sources.source_files import SourceError, SourceStep, source_digest, source_files, unreadable
from r2med.construction.step import StepWork, Streams
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime


class Lines(SourceStep, kind="build"):
    """Read a page a line."""

    name: str = "lines"
    writes = "pages"
    endings = (".jsonl",)

    def items(self, file):
        for number, row in file.rows():
            if isinstance(row, SourceError):
                yield unreadable(f"{file.where}:{number}", str(row))
            else:
                yield SourcePage(id=f"{file.name}:{number}", text=row["text"])


def outcome(path, store):
    items = list(Lines(path=path.name).run(Streams({}, path.parent), StepWork(Runtime(store=store))))
    return [each.id for each in items if isinstance(each, SourcePage)], [
        each for each in items if isinstance(each, Rejected)
    ]


def test_folders_are_read_in_the_order_of_their_names(tmp_path, store):
    for name in ("b/2.jsonl", "a.jsonl", ".hidden.jsonl", "notes.txt"):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text('{"text": "x"}\n')
    (tmp_path / "src" / "c.jsonl.gz").write_bytes(gzip.compress(b'{"text": "y"}\n'))
    pages, faults = outcome(tmp_path / "src", store)
    assert pages == ["a.jsonl:1", "b/2.jsonl:1", "c.jsonl.gz:1"]
    assert not faults


def test_members_of_a_zip_that_lead_outside_are_left_out_and_the_others_read(tmp_path, store):
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        for name in ("../evil.jsonl", "/etc/evil.jsonl", "C:/evil.jsonl", "fine/a.jsonl"):
            archive.writestr(name, '{"text": "x"}\n')
    pages, faults = outcome(tmp_path / "s.zip", store)
    assert pages == ["fine/a.jsonl:1"]
    assert len(faults) == 3
    assert all("outside" in each.note for each in faults)


def test_a_damaged_member_does_not_stop_the_others(tmp_path, store):
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        archive.writestr("a.jsonl", '{"text": "damaged here"}\n')
        archive.writestr("b.jsonl", '{"text": "fine"}\n')
    whole = (tmp_path / "s.zip").read_bytes()
    (tmp_path / "s.zip").write_bytes(whole.replace(b"damaged here", b"damaged now!", 1))
    pages, faults = outcome(tmp_path / "s.zip", store)
    assert "b.jsonl:1" in pages
    assert [each.reason for each in faults] == ["unreadable"]


def test_a_tar_that_was_cut_gives_what_stands_before_the_cut(tmp_path, store):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("a.jsonl", "b.jsonl"):
            member = tarfile.TarInfo(name)
            member.size = 14
            archive.addfile(member, io.BytesIO(b'{"text": "x"}\n'))
    (tmp_path / "s.tar").write_bytes(packed.getvalue()[:1540])
    pages, faults = outcome(tmp_path / "s.tar", store)
    assert pages == ["a.jsonl:1"]
    assert faults


@pytest.mark.parametrize("name", ["s.zip", "s.tar"])
def test_what_is_no_archive_is_one_line(tmp_path, store, name):
    (tmp_path / name).write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"s\.(zip|tar) is no"):
        list(source_files(tmp_path / name, (".jsonl",)))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"text": }\n', "s.jsonl:2: not valid JSON at column 10"),
        (b"\xff\xfe\n", "s.jsonl:2: not UTF-8 at byte 1"),
        (b"[1]\n", "s.jsonl:2: not a JSON object"),
        (b'{"text": "cu', "s.jsonl:2: not valid JSON at column 10; the file ends in this line"),
        (b"[" * 100_000 + b"\n", "s.jsonl:2: not valid JSON"),
    ],
)
def test_faults_of_lines_name_the_line(tmp_path, store, line, fault):
    (tmp_path / "s.jsonl").write_bytes(b'{"text": "x"}\n' + line)
    pages, [rejected] = outcome(tmp_path / "s.jsonl", store)
    assert pages == ["s.jsonl:1"]
    assert fault in rejected.note


def test_a_source_has_the_fingerprint_of_its_bytes(tmp_path, store):
    for folder, text in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.jsonl").write_text(text)
    a, b, c = (source_digest(tmp_path / folder, (".jsonl",), store) for folder in "abc")
    assert a == b != c
    (tmp_path / "a" / "1.jsonl").write_text("changed")
    assert source_digest(tmp_path / "a", (".jsonl",), store) != a

"""The folder of a board: what is replaced, what stays, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import sha256
from r2med.publication.site.board_folder import MANIFEST
from r2med.publication.site.site import write_site

NOTES = {".git/config": "[core]", "CNAME": "example.org", "notes.txt": "mine", "results/bm25.json": "{}"}
"""Files that people keep in the folder of a site."""


def write_all(folder: Path, contents: dict[str, str]) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def read_all(folder: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in names}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A board with two data files."""
    write_site(tmp_path / "site", [("site", "old"), ("system/7", 1)])
    return tmp_path / "site"


def test_files_that_the_board_did_not_write_stay_when_it_is_made_again(folder: Path) -> None:
    write_all(folder, NOTES | {"data/mine.csv": "a,b", "data/system/mine.csv": "c"})
    write_site(folder, [("site", "new")])
    assert read_all(folder, NOTES) == NOTES
    assert (folder / "data" / "system" / "mine.csv").read_text() == "c"
    assert not (folder / "data" / "system" / "7.js").exists()
    assert "new" in (folder / "data" / "site.js").read_text()


def test_an_updated_board_is_the_one_that_would_have_been_made_anew(folder: Path, tmp_path: Path) -> None:
    write_site(folder, [("site", "new"), ("gold/1", 2)])
    write_site(tmp_path / "fresh", [("site", "new"), ("gold/1", 2)])
    assert files(folder) == files(tmp_path / "fresh")


def test_an_empty_folder_can_be_given(tmp_path: Path) -> None:
    write_site(tmp_path, [("site", 1)])
    assert (tmp_path / "index.html").is_file()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"assets/base.css": "body { color: red }"}, "base.css was changed after"),
        ({"data/gold/1.js": "mine"}, "1.js was not written by the board"),
        ({"data/gold": "a file"}, "gold was not written by the board"),
        ({MANIFEST: "{"}, "board.json is not the list"),
        ({MANIFEST: '{"scores": [1, 2]}'}, "board.json is not the list"),
        ({MANIFEST: '{"made_by": "r2med board", "files": {"../../notes.txt": ""}}'}, "board.json is not the list"),
    ],
)
def test_a_file_that_somebody_else_wrote_is_named_and_nothing_changes(
    folder: Path, change: dict[str, str], named: str
) -> None:
    write_all(folder, change)
    before = files(folder)
    with pytest.raises(UserError, match=named):
        write_site(folder, [("site", "new"), ("gold/1", 2)])
    assert files(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["site"]


@pytest.mark.parametrize("moved", range(4))
def test_a_board_that_was_killed_while_files_were_moved_is_mended_by_the_next_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    write_all(folder, NOTES)
    left = [moved]
    replace = Path.replace

    def killed(path: Path, target: Any) -> Path:
        if path.suffix == ".js" and not left[0]:
            raise KeyboardInterrupt
        left[0] -= path.suffix == ".js"
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            write_site(folder, [("site", "new"), ("gold/1", 2), ("gold/2", 3), ("gold/3", 4), ("gold/4", 4)])
    write_site(folder, [("site", "newest"), ("gold/2", 5)])
    assert read_all(folder, NOTES) == NOTES
    for name in NOTES:
        (folder / name).unlink()
    shutil.rmtree(folder / ".git"), shutil.rmtree(folder / "results")
    write_site(tmp_path / "fresh", [("site", "newest"), ("gold/2", 5)])
    assert files(folder) == files(tmp_path / "fresh")


@pytest.mark.parametrize("name", ["data/mine.js", "assets/app.js", "assets/base.css", "index.html"])
def test_a_list_of_somebody_else_deletes_and_replaces_no_file(tmp_path: Path, name: str) -> None:
    """A board.json that lists the user's own files, with their digests."""
    write_all(tmp_path, {name: "export const mine = 1;\n", "elsewhere.js": "pages.data(1)"})
    listed = {"made_by": "r2med board", "files": {name: sha256(tmp_path / name)}}
    (tmp_path / MANIFEST).write_text(json.dumps(listed))
    before = files(tmp_path)
    with pytest.raises(UserError, match="is listed as a file of a board, but a board has no such file"):
        write_site(tmp_path, [("site", "new")])
    assert files(tmp_path) == before
    (tmp_path / name).unlink()
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data/link.js").symlink_to(tmp_path / "elsewhere.js")
    listed["files"] = {"data/link.js": sha256(tmp_path / "elsewhere.js")}
    (tmp_path / MANIFEST).write_text(json.dumps(listed))
    with pytest.raises(UserError, match="is listed as a file of a board, but a board has no such file"):
        write_site(tmp_path, [("site", "new")])

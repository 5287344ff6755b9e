"""The digest of the source: every file that a number may depend on is in it."""

from importlib.resources import files
from pathlib import Path

import pytest

from r2med.foundation.core import version

CODE_OR_DATA = {".py", ".toml", ".tsv", ".txt"}
"""Kinds of files that scores can depend on; pages, scripts and styles show them only."""


def test_every_table_of_the_package_is_in_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "__file__", str(tmp_path / "foundation" / "core" / "version.py"))

    def digest() -> str:
        version.source_digest.cache_clear()
        return version.source_digest()

    seen = {digest()}
    for suffix in sorted(CODE_OR_DATA):
        (tmp_path / f"file{suffix}").write_text("content")
        seen.add(digest())
    version.source_digest.cache_clear()
    assert len(seen) == 1 + len(CODE_OR_DATA)


def test_the_tables_that_cut_words_are_of_a_kind_that_is_in_it() -> None:
    tables = [path for path in Path(str(files("r2med.foundation.text"))).iterdir() if path.is_file()]
    assert "word_break.tsv" in {path.name for path in tables}
    assert {path.suffix for path in tables} <= CODE_OR_DATA | {".md"}

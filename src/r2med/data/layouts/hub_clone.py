"""A dataset repository of the hub on disk: configs `corpus`, `query` and `qrels` as Parquet or JSON Lines.

The repository card (`configs:` at the top of its README.md) names the files of a config. If it does not, the usual
names on the hub are tried: CONFIG/SPLIT-*.parquet, CONFIG/SPLIT.jsonl, CONFIG.jsonl, …
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from r2med.data.layouts.r2med_folder import DOCUMENT_FIELDS, DOCUMENT_OPTIONS, QUERY_FIELDS, QUERY_OPTIONS
from r2med.data.problems import Problems
from r2med.data.qrels_file import QRELS_FIELDS
from r2med.data.source_rows import (
    DocumentRow,
    Fields,
    JudgementRow,
    QueryRow,
    document_row,
    judgement_row,
    query_row,
    read_jsonl,
    report_faults,
    with_title,
)
from r2med.foundation.core.errors import UserError

PATTERNS = (
    "{config}/{split}-*.parquet",
    "{config}/{split}.parquet",
    "{config}/{split}-*.jsonl",
    "{config}/{split}.jsonl",
    "{config}/{split}/*.parquet",
    "{config}/{split}/*.jsonl",
    "data/{config}-*.parquet",
    "data/{split}-*.parquet",
    "{config}-*.parquet",
    "{config}.parquet",
    "{config}.jsonl",
    "{config}.json",
)


MAX_BATCH_ROWS, MAX_BATCH_BYTES = 1024, 32 << 20
"""Rows of a Parquet file that are read at a time, and about how many bytes."""

_SHARD = re.compile(r"-\d{5}-of-(\d{5})\.")


class HubClone:
    """A downloaded dataset repository."""

    judged_queries_only = False
    reading: Sequence[str] = ()

    def __init__(self, root: Path) -> None:
        self.root = root
        self.corpus_files = config_files(root, "corpus")
        self._query_files = config_files(root, "query")
        self._qrels_files = config_files(root, "qrels")
        self.query_file, self.qrels_file = self._query_files[0], self._qrels_files[0]
        self.needed = self.corpus_files  # the others were looked for above

    def documents(self, problems: Problems) -> Iterator[DocumentRow]:
        """Yield the corpus, each title before its text."""
        for path, line, row in read_rows(self.corpus_files, DOCUMENT_FIELDS, DOCUMENT_OPTIONS, problems):
            if document := document_row(row["id"], with_title(row), path, line, problems):
                yield document

    def queries(self, problems: Problems) -> Iterator[QueryRow]:
        """Yield the queries."""
        for path, line, row in read_rows(self._query_files, QUERY_FIELDS, QUERY_OPTIONS, problems):
            if query := query_row(row, path, line, problems):
                yield query

    def judgements(self, problems: Problems) -> Iterator[JudgementRow]:
        """Yield the qrels."""
        for path, line, row in read_rows(self._qrels_files, QRELS_FIELDS, {}, problems):
            if judgement := judgement_row(row, path, line, problems):
                yield judgement


def config_files(root: Path, config: str, split: str | None = None) -> list[Path]:
    """Return the files of one split of a config. By default the split has the name of the config."""
    split = split or config
    listed = [path for pattern in _card_patterns(root, config, split) for path in _matches(root, pattern)]
    habits = (_matches(root, pattern.format(config=config, split=split)) for pattern in PATTERNS)
    files = list(dict.fromkeys(listed)) or next(filter(None, habits), [])
    if not files:
        raise UserError(f"{root}: no files for config {config!r}, split {split!r}: is the download complete?")
    if (shard := _SHARD.search(files[-1].name)) and len(files) < int(shard[1]):
        count = f"{len(files)} of {int(shard[1])} files"
        raise UserError(f"{root}: {count} for config {config!r}, split {split!r}: is the download complete?")
    return files


def _matches(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in root.glob(pattern) if path.is_file())
    except (ValueError, OSError):  # an invalid pattern, such as `a**` or one that is too long
        return []


def _card_patterns(root: Path, config: str, split: str) -> list[str]:
    readme = root / "README.md"
    if not readme.is_file():
        return []
    try:
        from huggingface_hub import metadata_load
    except ImportError:  # a clone can be read without the hub's client: the usual names below nearly always match
        return []
    try:
        configs = (metadata_load(readme) or {}).get("configs", ())
        files: Any = next((entry["data_files"] for entry in configs if entry["config_name"] == config), [])
    except Exception:  # any YAML error or a card of another shape: ignore the card and use the usual names
        return []
    patterns: list[Any] = []
    for file in files if isinstance(files, list) else [files]:
        if isinstance(file, dict):
            paths = file.get("path") if file.get("split") == split else []
            patterns += paths if isinstance(paths, list) else [paths]
        else:
            patterns.append(file)
    return [pattern for pattern in patterns if isinstance(pattern, str) and _is_inside(pattern)]


def _is_inside(pattern: str) -> bool:
    """Return True if a pattern can only match files of the repository."""
    parts = PurePosixPath(pattern).parts
    return bool(parts) and "\0" not in pattern and not pattern.startswith("/") and ".." not in parts


def read_rows(
    files: list[Path], required: Fields, optional: Fields, problems: Problems
) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    """Yield (file, row number, row) over the files of a config, whichever format they have."""
    for path in files:
        if path.suffix == ".parquet":
            yield from _read_parquet(path, required, optional, problems)
        else:
            for line, row in read_jsonl(path, required, problems, optional):
                yield path, line, row


def _read_parquet(
    path: Path, required: Fields, optional: Fields, problems: Problems
) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in required if name not in file.schema_arrow.names]
            for name in missing:
                problems.add(path, None, f"missing column {name!r}")
            if missing:
                return
            columns = [n for n in file.schema_arrow.names if n in required or n in optional]
            number = 0
            for batch in file.iter_batches(batch_size=_batch_rows(file.metadata), columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    if not report_faults(row, required, optional, path, number, problems):
                        yield path, number, row
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        problems.add(path, None, f"not a readable Parquet file ({error}): download it again")


def _batch_rows(metadata: Any) -> int:
    """Return the number of rows to read at a time, so that long documents do not fill the memory."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    return max(1, min(MAX_BATCH_ROWS, MAX_BATCH_BYTES * int(metadata.num_rows) // max(1, int(size))))

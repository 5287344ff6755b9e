"""Files of generated texts in the benchmark's layout: METHOD/LLM/query_with_hydoc.jsonl, or a hub config."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from r2med.data import Dataset
from r2med.data.layouts.hub_listing import check_shards, local_tables
from r2med.data.problems import Problems
from r2med.data.source_rows import SourceRow, read_rows
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.store.files import write_atomically
from r2med.systems.expand.expansion import Expansion
from r2med.systems.retrieve.retriever import SearchQuery

GENERATIONS_FILE = "query_with_hydoc.jsonl"

_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_PLAIN = re.compile(r"[A-Za-z0-9+][A-Za-z0-9._+-]*")


class WrittenTexts(SourceRow):
    """The texts of a query in a file that is to be replaced."""

    id: str
    text: Any = None
    hy_doc: Any = None


class NotWrittenError(UserError):
    """A file was not replaced, because there are fewer new texts."""


# The folder name of an LLM. Names of models may have slashes and colons, but folders may not. A slash becomes "--", as
# in the hub's own cache, and a colon becomes "++". Any other unsafe character, and text that looks like one of these
# two, becomes "+" with two hexadecimal digits for each byte. So two names never share a folder.
_MARKS = {"/": "--", ":": "++"}
_SPECIAL = re.compile(r"^[^A-Za-z0-9]|-(?=[-/])|[^A-Za-z0-9._-]")
_WRITTEN = re.compile(r"--|\+\+|(?:\+[0-9A-F]{2})+")


def folder_name(llm: str) -> str:
    """Return the folder name for the texts of an LLM."""
    if not llm.strip() or not llm.isprintable():
        raise UserError(f"{llm!r} is not a name of a model")
    return _SPECIAL.sub(_written, llm)


def llm_name(folder: str) -> str:
    """Return the LLM of a folder, as the inverse of `folder_name`. Other folder names are returned unchanged."""
    return _WRITTEN.sub(_read_back, folder)


def _written(match: re.Match[str]) -> str:
    # Not at the start, where a shell would read a hyphen as an option.
    if match.start() and match[0] in _MARKS:
        return _MARKS[match[0]]
    return "".join(f"+{byte:02X}" for byte in match[0].encode())


def _read_back(match: re.Match[str]) -> str:
    for letter, mark in _MARKS.items():
        if match[0] == mark:
            return letter
    return bytes.fromhex(match[0].replace("+", "")).decode(errors="replace")


def generations_path(method: str, llm: str) -> str:
    """Return the path of the texts of one LLM by one method, in the folder of a dataset."""
    return f"{folder_name(method)}/{folder_name(llm)}/{GENERATIONS_FILE}"


def find_generations(roots: list[Path], method: str, llm: str) -> list[Path]:
    """Return the files with texts of one LLM by one method; empty if there are none. Roots are searched in order."""
    places = list(product(_spellings(folder_name(method)), _folders(llm)))
    for root in roots:
        for config, split in places:
            if (file := root / config / split / GENERATIONS_FILE).is_file():
                return [file]
        if files := _files_of_clone(root, places):
            return files
    return []


def other_llms(roots: list[Path], method: str, llm: str) -> str:
    """Return the end of an error about missing texts of an LLM: the nearest name, and all existing ones."""
    known = sorted({each for root in roots for each in _llms(root, method)})
    if known:
        return f"{nearest(llm, known)}: it has {', '.join(known)}"
    return (
        f": it has no file {method}/LLM/{GENERATIONS_FILE}. Such texts come with the demo and R2MED only. For other "
        f"data, name an LLM that writes them, as in {method}(o3-mini)"
    )


def _folders(llm: str) -> list[str]:
    """Return the folders that may hold the texts of an LLM. The name of a folder may be typed as well."""
    written = [folder_name(name) for name in _spellings(llm)]
    return list(dict.fromkeys([*written, llm] if _PLAIN.fullmatch(llm) else written))


def _spellings(name: str) -> list[str]:
    """Return a name as typed, with hyphens only, and with underscores only, as in the splits of the hub."""
    return list(dict.fromkeys([name, name.replace("_", "-"), name.replace("-", "_")]))


def _files_of_clone(root: Path, places: list[tuple[str, str]]) -> list[Path]:
    found = local_tables(root)
    is_described = (root / "README.md").is_file()
    for config, split in places:
        files = found.get(config, {}).get(split, ())
        # Some repositories name a file by config or split only. Such a file may belong to another LLM. Further down
        # lie the texts of other datasets, unless the card of the repository says otherwise.
        paths = [path for path in map(Path, files) if is_described or path.parts[0] in (config, "data", path.name)]
        if paths and all(_belongs(path, config, split) for path in paths):
            check_shards(files, config, split, str(root))
            return [root / path for path in paths]
    return []


def _belongs(file: Path, config: str, split: str) -> bool:
    stem = _SHARD.sub("", file.stem)
    named_by_folder = config in file.parts[:-1] and split in (stem, file.parent.name)
    return named_by_folder or stem in (f"{config}-{split}", f"{config}_{split}")


def _llms(root: Path, method: str) -> Iterator[str]:
    for config in _spellings(folder_name(method)):
        folder = root / config
        yield from (llm_name(path.parent.name) for path in folder.glob(f"*/{GENERATIONS_FILE}"))
        for suffix in ("parquet", "jsonl"):
            yield from (_SHARD.sub("", path.stem) for path in folder.glob(f"*.{suffix}"))


def write_generations(
    expansion: Expansion, dataset: Dataset, folder: Path, method: str, llm: str, *, overwrite: bool = False
) -> Path:
    """Write the texts of one dataset below `folder`, whole or not at all. Raises NotWrittenError if they are fewer.

    Generated texts cost money. A file with more texts, or with texts of other queries, is replaced only with
    `overwrite`, and never by an empty result.
    """
    file = folder / dataset.name / generations_path(method, llm)
    count = sum(len(search.generated) for search in expansion.queries)
    if not count and dataset.queries:
        raise NotWrittenError(f"{file} was not written: none of {len(expansion.queries)} queries got a text")
    same, others = _count_texts(file, dataset)
    if (same > count or others) and not overwrite:
        has = f"has {same} texts and there are {count} now" if same > count else f"has {others} texts of other queries"
        raise NotWrittenError(f"{file} {has}: it was not changed; overwrite (--overwrite) replaces it")
    lines = [json.dumps(_row(search), ensure_ascii=False) for search in expansion.queries]
    write_atomically(file, "".join(f"{line}\n" for line in lines).encode())
    return file


def _count_texts(file: Path, dataset: Dataset) -> tuple[int, int]:
    """Return the numbers of texts in a file for queries of a dataset and for others; 0 if it is unreadable."""
    asked = {query.id: query.text for query in dataset.queries}
    count = {True: 0, False: 0}
    for _, row in read_rows(file, WrittenTexts, Problems()) if file.is_file() else ():
        texts = row.hy_doc if isinstance(row.hy_doc, list) else [row.hy_doc]
        count[row.id in asked and row.text in (None, asked[row.id])] += sum(map(bool, texts))
    return count[True], count[False]


def _row(search: SearchQuery) -> dict[str, Any]:
    # One text is a string, as the original code reads it. Several texts are a list. A query without text has a line,
    # because some tools join this file with the queries line by line.
    texts: str | list[str] = list(search.generated) if len(search.generated) > 1 else "".join(search.generated)
    row: dict[str, Any] = {"id": search.query.id, "text": search.query.text, "hy_doc": texts}
    return {**row, "excluded_ids": list(search.query.excluded)} if search.query.excluded else row

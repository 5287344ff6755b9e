"""Where recorded generations lie: METHOD/LLM/query_with_hydoc.jsonl in a folder, or a config of a hub clone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from r2med.data.layouts.hub_clone import config_files
from r2med.errors import UserError, nearest
from r2med.expand.llm_names import folder_name, llm_name

FILE = "query_with_hydoc.jsonl"

_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_PLAIN = re.compile(r"[A-Za-z0-9+][A-Za-z0-9._+-]*")
_INCOMPLETE = re.compile(r"\d+ of \d+ files for config")


def find(roots: list[Path], method: str, llm: str) -> list[Path]:
    """Return the files of one LLM's texts by one method, however their names join words, or none; roots in order."""
    for root, config, split in product(roots, _spellings(method), _folders(llm)):
        file = root / config / split / FILE
        if file.is_file():
            return [file]
        if found := _of_clone(root, config, split):
            return found
    return []


def others(roots: list[Path], method: str, llm: str) -> str:
    """Return what to tell of the LLMs that there are texts of, where there are none of one."""
    there = sorted({name for root in roots for name in _llms(root, method)})
    return f"{nearest(llm, there)}: it has {', '.join(there) or f'none of this method, as {method}/LLM/{FILE}'}"


def _folders(llm: str) -> list[str]:
    """Return the folders that may hold an LLM's texts; a folder's own name may be typed as well."""
    written = [folder_name(name) for name in _spellings(llm)]
    return list(dict.fromkeys([*written, llm] if _PLAIN.fullmatch(llm) else written))


def _spellings(name: str) -> list[str]:
    """Return a name as typed, with only hyphens, with only underscores, and as whoever mixed them may have it."""
    marks = [place for place, letter in enumerate(name) if letter in "-_"]
    spelt = [name, name.replace("_", "-"), name.replace("-", "_")]
    for chosen in product("-_", repeat=len(marks)) if len(marks) <= 6 else ():
        letters = list(name)
        for place, mark in zip(marks, chosen, strict=True):
            letters[place] = mark
        spelt.append("".join(letters))
    return list(dict.fromkeys(spelt))


def _of_clone(root: Path, config: str, split: str) -> list[Path]:
    try:
        files = config_files(root, config, split)
    except UserError as error:
        if _INCOMPLETE.search(str(error)):
            raise
        return []
    # Some habits of the hub name the config or the split alone: such a file may be any other LLM's.
    return files if all(_belongs(file.relative_to(root), config, split) for file in files) else []


def _belongs(file: Path, config: str, split: str) -> bool:
    stem, folders = _SHARD.sub("", file.stem), file.parts[:-1]
    return (config in folders and split in (stem, file.parent.name)) or stem in (
        f"{config}-{split}",
        f"{config}_{split}",
    )


def _llms(root: Path, method: str) -> Iterator[str]:
    for config in _spellings(method):
        folder = root / config
        yield from (llm_name(path.parent.name) for path in folder.glob(f"*/{FILE}"))
        for suffix in ("parquet", "jsonl"):
            yield from (_SHARD.sub("", path.stem) for path in folder.glob(f"*.{suffix}"))

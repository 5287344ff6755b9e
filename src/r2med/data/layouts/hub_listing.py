"""Find the tables of a hub repository by the names of its files, and choose those of a dataset.

A table is one split of one config. The repository card (`configs:` at the top of its README.md) names the files of each
table. Files that it does not name are found by the usual names on the hub: CONFIG/SPLIT-*.parquet, CONFIG.jsonl, …
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

from r2med.data.dataset_cards import Hub
from r2med.foundation.core.errors import UserError, nearest

Role = Literal["documents", "queries", "judgements", "aspects", "pairs"]

SUFFIXES = (".parquet", ".jsonl", ".json", ".csv", ".tsv")
CORPUS_NAMES = ("corpus", "documents")
QUERY_NAMES = ("queries", "query", "examples")
JUDGEMENT_NAMES = ("qrels", "default")
PART_NAMES = (*CORPUS_NAMES, *QUERY_NAMES, *JUDGEMENT_NAMES, "aspects")
"""Names of configs on the hub, by the part of a dataset that they hold. The first that exists counts."""

README = "README.md"
"""The card of a repository."""

TEST_SPLIT = "test"

MAX_DEPTH = 4
"""Folders below which files on disk are not looked for, as a dataset may lie beside anything else."""

_SHARD = re.compile(r"-\d{5}-of-(\d{5})$")

Splits = dict[str, tuple[str, ...]]
"""Split -> names of its files."""


@dataclass(frozen=True)
class HubTable:
    """The table of one part of a dataset."""

    config: str
    split: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        return self.config if self.split in ("", self.config) else f"{self.config}, split {self.split}"


def tables(names: Sequence[str], configs: Sequence[Mapping[str, Any]] = ()) -> dict[str, Splits]:
    """Return config -> split -> files. `configs` are those of the repository card."""
    found: dict[str, Splits] = {}
    for config, split, pattern in _listed(configs):
        if files := tuple(sorted(name for name in names if _is_match(name, pattern))):
            splits = found.setdefault(config, {})
            splits[split] = tuple(dict.fromkeys((*splits.get(split, ()), *files)))
    listed = {name for splits in found.values() for files in splits.values() for name in files}
    for name in sorted(set(names) - listed):
        if place := _usual_place(PurePosixPath(name)):
            config, split = place
            if config in found and split in found[config] and listed.intersection(found[config][split]):
                continue  # the card names all files of this table
            splits = found.setdefault(config, {})
            splits[split] = (*splits.get(split, ()), name)
    return found


def choose(found: Mapping[str, Splits], hub: Hub, names: Sequence[str] = ()) -> dict[Role, HubTable]:
    """Return the table of each part of a dataset. Raises UserError if the config or the split must be named.

    If there is no corpus, `pairs` is the table to guess the parts from.
    """
    if hub.files is not None:
        return _named(hub, names)
    if not found:
        raise UserError(f"{hub.repository} has no tables ({', '.join(SUFFIXES)}): r2med cannot read it")
    _check_asked(found, hub)
    ask = hub.config
    corpus = _first(found, (f"{ask}-corpus", f"corpus-{ask}", ask if ask.endswith(CORPUS_NAMES) else "", *CORPUS_NAMES))
    if not corpus:
        return {"pairs": _table(found, _only_config(found, hub), hub)}
    other = ask if ask in found and ask != corpus else ""
    query = _first(found, (f"{ask}-queries", f"queries-{ask}", other, *QUERY_NAMES))
    judged = _first(found, (f"{ask}-qrels", f"qrels-{ask}", *JUDGEMENT_NAMES))
    parts: dict[Role, str] = {"documents": corpus, "queries": query, "judgements": judged}
    if "aspects" in found:
        parts["aspects"] = "aspects"
    return {role: _table(found, config, hub) for role, config in parts.items() if config}


def _named(hub: Hub, names: Sequence[str]) -> dict[Role, HubTable]:
    """Return the tables whose files a card names."""
    chosen: dict[Role, HubTable] = {}
    for role, pattern in hub.files or ():
        files = tuple(sorted(name for name in names if pattern and _is_match(name, pattern)))
        if pattern and not files:
            raise UserError(f"{hub.repository} has no file {pattern!r}, which its card names as {role}")
        if files:
            chosen[cast("Role", role)] = HubTable(pattern, "", files)
    return chosen


def _check_asked(found: Mapping[str, Splits], hub: Hub) -> None:
    configs = list(dict.fromkeys([*(_without_part(config) for config in found if config not in PART_NAMES), *found]))
    splits = list(dict.fromkeys(split for config in found.values() for split in config))
    if hub.config and hub.config not in configs:
        known = f"{nearest(hub.config, found)}: {', '.join(configs)}"
        raise UserError(f"{hub.repository} has no config {hub.config!r}{known}")
    if hub.split and hub.split not in splits:
        raise UserError(f"{hub.repository} has no split {hub.split!r}{nearest(hub.split, splits)}: {', '.join(splits)}")


def _without_part(config: str) -> str:
    """Return the name of a config without that of a table: `en` of `en-corpus` and of `queries-en`."""
    for part in PART_NAMES:
        config = config.removeprefix(f"{part}-").removesuffix(f"-{part}")
    return config


def _first(found: Mapping[str, Splits], configs: Sequence[str]) -> str:
    return next((config for config in configs if config and config in found), "")


def _only_config(found: Mapping[str, Splits], hub: Hub) -> str:
    if hub.config or len(found) == 1:
        return hub.config or next(iter(found))
    if "default" in found:
        return "default"
    words = ", ".join(list(found)[:20])
    raise UserError(
        f"{hub.repository} has several configs: name one, as in hub:{hub.repository}/{next(iter(found))}: {words}"
    )


def _table(found: Mapping[str, Splits], config: str, hub: Hub) -> HubTable:
    """Return the table of a config: the split that was asked for, that of the config's name, the only one, or test."""
    splits = found[config]
    word = next((split for split in (hub.split, config, _part_name(config)) if split and split in splits), "")
    if not word and len(splits) == 1:
        word = next(iter(splits))
    if not word and not hub.split and TEST_SPLIT in splits:
        word = TEST_SPLIT
    if not word:
        known = ", ".join(splits)
        example = f"hub:{hub.repository}{f'/{hub.config}' if hub.config else ''}:{next(iter(splits))}"
        raise UserError(f"{hub.repository}: config {config!r} has the splits {known}: name one, as in {example}")
    check_shards(splits[word], config, word, hub.repository)
    return HubTable(config, word, splits[word])


def _part_name(config: str) -> str:
    return next((part for part in config.split("-") if part in PART_NAMES), "")


def check_shards(files: Sequence[str], config: str, split: str, repository: str) -> None:
    """Raise UserError if the last file says that there are more."""
    shard = _SHARD.search(PurePosixPath(files[-1]).stem)
    if shard and len(files) < int(shard[1]):
        count = f"{len(files)} of {int(shard[1])} files"
        raise UserError(f"{repository}: {count} for config {config!r}, split {split!r}: is the download complete?")


def _listed(configs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield (config, split, pattern) of the repository card. Entries of another shape are ignored."""
    for entry in configs:
        config, files = entry.get("config_name"), entry.get("data_files")
        for file in files if isinstance(files, list) else [files]:
            split, paths = (file.get("split"), file.get("path")) if isinstance(file, dict) else ("", file)
            for path in paths if isinstance(paths, list) else [paths]:
                if isinstance(config, str) and isinstance(split, str) and isinstance(path, str):
                    yield config, split or config, path


def _is_match(name: str, pattern: str) -> bool:
    """Return True if the hub's pattern matches a file. A pattern that names a folder matches the files in it."""
    pattern = pattern.removeprefix("./")
    if PurePosixPath(name).suffix not in SUFFIXES:
        return False
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern.rstrip('/')}/*")


def _usual_place(path: PurePosixPath) -> tuple[str, str] | None:
    """Return the config and the split of a file by its name; None for a file that is not a table."""
    if path.suffix not in SUFFIXES or any(part.startswith(".") for part in path.parts):
        return None
    stem = _SHARD.sub("", path.stem)
    folders = path.parts[:-1]
    if not folders:
        return stem, stem
    if len(folders) > 1:  # CONFIG/SPLIT/*.parquet
        return folders[-2], folders[-1]
    if folders[0] == "data":
        return (stem, stem) if _part_name(stem) else ("default", stem)
    if _part_name(stem) and not _part_name(folders[0]):  # SPLIT/CONFIG.jsonl
        return stem, folders[0]
    return folders[0], stem


def local_names(folder: Path) -> list[str]:
    """Return the names of the files of a folder, as the hub lists them, but not of hidden ones."""
    paths = (path for depth in range(MAX_DEPTH) for path in folder.glob("/".join(["[!.]*"] * (depth + 1))))
    return sorted(path.relative_to(folder).as_posix() for path in paths if path.is_file())


def local_tables(root: Path) -> dict[str, Splits]:
    """Return config -> split -> files of a repository on disk."""
    return tables(local_names(root), card_configs(root))


def config_files(root: Path, config: str, split: str | None = None) -> list[Path]:
    """Return the files of one split of a config on disk. By default the split has the name of the config."""
    split = split or config
    files = local_tables(root).get(config, {}).get(split)
    if not files:
        raise UserError(f"{root}: no files for config {config!r}, split {split!r}: is the download complete?")
    check_shards(files, config, split, str(root))
    return [root / file for file in files]


def card_configs(folder: Path) -> list[Mapping[str, Any]]:
    """Return the configs that the card of a repository lists. A card of another shape has none."""
    configs = card_metadata(folder).get("configs")
    return [entry for entry in configs if isinstance(entry, dict)] if isinstance(configs, list) else []


def card_metadata(folder: Path) -> Mapping[str, Any]:
    """Return the fields at the top of the card of a repository; none if it has no card, or it cannot be read."""
    try:
        from huggingface_hub import metadata_load

        metadata = metadata_load(folder / README)
    except Exception:  # no card, or any YAML error: the usual names of files are used, and the licence is not stated
        return {}
    return metadata if isinstance(metadata, dict) else {}

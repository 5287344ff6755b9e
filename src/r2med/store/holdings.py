"""What a store holds, by what it is about: a dataset, a model, an LLM; and clearing some of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from r2med.store.artefacts import MANIFEST, Store
from r2med.store.verify import size_of


@dataclass(frozen=True)
class Holding:
    """All artefacts of one kind about the same things."""

    kind: str
    dataset: str
    model: str
    paths: tuple[Path, ...]
    size: int

    def is_about(self, dataset: str = "", model: str = "") -> bool:
        """Tell whether it is about what is named; an empty name says nothing."""
        return dataset in ("", self.dataset) and model in ("", self.model)


def holdings(store: Store) -> list[Holding]:
    """Return what the store holds, sorted by kind; caches of scores and embeddings are about a model."""
    groups: dict[tuple[str, str, str], list[Path]] = {}
    for kind, dataset, model, path in sorted(_entries(store)):
        groups.setdefault((kind, dataset, model), []).append(path)
    return [Holding(*key, tuple(paths), sum(map(size_of, paths))) for key, paths in groups.items()]


def _entries(store: Store) -> Iterator[tuple[str, str, str, Path]]:
    for manifest in store.root.glob(f"*/*/{MANIFEST}"):
        path = manifest.parent
        if "~" in path.name:  # work in progress
            continue
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # damaged: `verify` tells
            about = json.loads(manifest.read_bytes())["meta"].get("about", {})
            yield path.parent.name, about.get("dataset", ""), about.get("model", ""), path
    for path in store.root.glob("*/*.sqlite"):
        if path.parent.name != "journal":
            yield path.parent.name, "", path.stem, path


def clear(store: Store, holding: Holding) -> None:
    """Remove all artefacts of a holding; whoever needs them makes them again."""
    for path in holding.paths:
        if path.is_dir():
            store.discard(path.parent.name, path.name)
        else:
            for part in (path, *path.parent.glob(f"{path.name}-*")):  # SQLite's journals beside it
                part.unlink(missing_ok=True)

"""List overlays, compare two of them, and remove them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from r2med.data.overlays import SUFFIX, Overlay
from r2med.evaluation.measure.agreement import cohen_kappa, gwet_ac1
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.page import Page, Table, table_page


def overlay_paths(places: Sequence[Path]) -> list[Path]:
    """Return the overlay files in folders, or the files themselves. Raises UserError if no file is found."""
    found = [file for place in places for file in (sorted(place.rglob(f"*{SUFFIX}")) if place.is_dir() else [place])]
    if not any(file.exists() for file in found):
        raise UserError(f"there is no overlay in {', '.join(map(str, places))}: r2med judge makes one")
    return found


def overlay_rows(paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the facts of every overlay and dataset."""
    for path in paths:
        overlay = Overlay.read(path)
        for dataset in overlay.datasets:
            labels = [label for label in overlay.labels if label.dataset == dataset]
            yield {
                "file": str(path),
                "dataset": dataset,
                "aspects": ", ".join(dict.fromkeys(label.aspect for label in labels)),
                "labels": len(labels),
                "queries": len({label.query for label in labels}),
                "judges": ", ".join(dict.fromkeys(label.judge for label in labels if label.judge)) or None,
                "reviewers": len({label.reviewer for label in labels if label.reviewer}),
                "digest": overlay.digest[:12],
            }


def overlays_page(rows: Sequence[dict[str, Any]]) -> Page:
    """Return overlays as one table."""
    return table_page("Overlays", Table.of(tuple(rows[0]), [list(row.values()) for row in rows], name="overlays"))


def compared_overlays(first: Overlay, second: Overlay) -> Iterator[dict[str, Any]]:
    """Yield for each dataset and aspect how far two overlays agree on the pairs that both label."""
    for dataset in (name for name in first.datasets if name in second.datasets):
        for aspect in ("relevance", "mimic"):
            one, other = first.grades(dataset, aspect), second.grades(dataset, aspect)
            shared = [
                (float(grade > 0), float(other[query][document] > 0))
                for query, documents in one.items()
                for document, grade in documents.items()
                if document in other.get(query, {})
            ]
            if not shared:
                continue
            ratings = np.array(shared)
            yield {
                "dataset": dataset,
                "aspect": aspect,
                "pairs of both": len(shared),
                f"yes in {first.name}": int(ratings[:, 0].sum()),
                f"yes in {second.name}": int(ratings[:, 1].sum()),
                "agree": float((ratings[:, 0] == ratings[:, 1]).mean()),
                "Cohen's κ": cohen_kappa(ratings),
                "Gwet's AC1": gwet_ac1(ratings, 2),
            }


def comparison_page(paths: Sequence[Path]) -> tuple[Page, list[dict[str, Any]]]:
    """Return the comparison of two overlays as a page and as JSON values."""
    if len(paths) != 2:
        raise UserError(f"a comparison needs two overlays, not {len(paths)}")
    first, second = (Overlay.read(path) for path in paths)
    if first.name == second.name:  # the columns need different names
        second = Overlay(f"{second.name} (2)", second.labels)
    rows = list(compared_overlays(first, second))
    if not rows:
        raise UserError(f"{paths[0]} and {paths[1]} label no pair in common, so they cannot be compared")
    table = Table.of(tuple(rows[0]), [list(row.values()) for row in rows], name="overlays-compared")
    plain = [{name: getattr(value, "value", value) for name, value in row.items()} for row in rows]
    return table_page("Two overlays", table), plain


def remove_overlays(paths: Sequence[Path]) -> None:
    """Delete overlay files. Raises UserError before anything is deleted if one of them is not an overlay."""
    for path in paths:
        Overlay.read(path)
    for path in paths:
        path.unlink()

"""List overlays, and compare two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from r2med.assessment.panels.ratings import RaterAgreement, Ratings, agreement_table
from r2med.data.overlays import SUFFIX, Overlay
from r2med.evaluation.measure.coefficients import Agreement
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
                "labels": len(labels),
                "queries": len({label.query for label in labels}),
                "judges": ", ".join(dict.fromkeys(label.judge for label in labels if label.judge)) or None,
                "reviewers": len({label.reviewer for label in labels if label.reviewer}),
                "digest": overlay.digest[:12],
            }


def overlays_page(rows: Sequence[dict[str, Any]]) -> Page:
    """Return overlays as one table."""
    return table_page("Overlays", Table.of(tuple(rows[0]), [list(row.values()) for row in rows], name="overlays"))


def compared_overlays(first: Overlay, second: Overlay) -> Iterator[tuple[str, Ratings]]:
    """Yield for each dataset what two overlays say (yes or no) about the pairs that both label."""
    for dataset in (name for name in first.datasets if name in second.datasets):
        given = (
            ((query, document), overlay.name, "yes" if grade > 0 else "no")
            for overlay in (first, second)
            for query, documents in overlay.grades(dataset).items()
            for document, grade in documents.items()
        )
        both = {pair: said for pair, said in Ratings.of(("no", "yes"), given).said.items() if len(said) == 2}
        if both:
            yield dataset, Ratings(("no", "yes"), both)


def comparison_page(paths: Sequence[Path]) -> tuple[Page, list[dict[str, Any]]]:
    """Return the comparison of two overlays as a page and as JSON values."""
    if len(paths) != 2:
        raise UserError(f"a comparison needs two overlays, not {len(paths)}")
    first, second = (Overlay.read(path) for path in paths)
    if first.name == second.name:  # the columns need different names
        second = Overlay(f"{second.name} (2)", second.labels)
    names = first.name, second.name
    found: list[tuple[tuple[str | int, ...], RaterAgreement]] = [
        ((dataset, *_yes(both, names)), both.agreement(*names)) for dataset, both in compared_overlays(first, second)
    ]
    if not found:
        raise UserError(f"{paths[0]} and {paths[1]} label no pair in common, so they cannot be compared")
    heads = ("dataset", *(f"yes in {name}" for name in names))
    plain = [
        dict[str, Any](zip(heads, lead, strict=True))
        | {"pairs of both": each.items, "agree": each.observed.value, "Cohen's κ": _value(each.kappa)}
        | {"Krippendorff's α": _value(each.alpha), "Gwet's AC1": _value(each.gwet)}
        for lead, each in found
    ]
    return table_page("Two overlays", agreement_table(heads, found, name="overlays-compared")), plain


def _yes(ratings: Ratings, names: Sequence[str]) -> list[int]:
    return [sum(said[name] == "yes" for said in ratings.said.values()) for name in names]


def _value(found: Agreement | None) -> float | None:
    return None if found is None else found.value

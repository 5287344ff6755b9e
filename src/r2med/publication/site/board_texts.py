"""Find boards that show the texts of a dataset, so that they can be deleted."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from r2med.evaluation.records.text_files import is_of
from r2med.foundation.core.errors import UserError
from r2med.publication.site.board_folder import MANIFEST, written_files


def boards_with_texts(folder: Path, datasets: Collection[str]) -> list[Path]:
    """Return all files of the boards in a folder that show texts of these datasets. A board is made as a whole.

    A board whose files were changed is not touched, except that its files of texts are returned.
    """
    found: list[Path] = []
    for manifest in sorted(folder.rglob(MANIFEST)):
        board = manifest.parent
        texts = [file for place in _explorers(board, datasets) for file in sorted(place.rglob("*.js"))]
        if not texts:
            continue
        try:
            found += [manifest, *(board / name for name in sorted(written_files(board)))]
        except UserError:
            found += texts
    return found


def _explorers(board: Path, datasets: Collection[str]) -> list[Path]:
    """Return the folders with the texts of these datasets. They are named after the dataset's place in the board."""
    listed = enumerate(_site(board).get("datasets", ()))
    numbers = [number for number, each in listed if isinstance(each, dict) and is_of(each.get("name"), datasets)]
    return [place for number in numbers if (place := board / "data" / "explorer" / str(number)).is_dir()]


def _site(board: Path) -> dict[str, Any]:
    """Return the value that every page of a board reads; empty if it cannot be read."""
    try:
        script = (board / "data" / "site.js").read_text("utf-8")
        value = json.loads(json.loads(script.partition(", ")[2].rstrip().removesuffix(");")))
    except (OSError, ValueError, TypeError):
        return {}
    return value if isinstance(value, dict) else {}

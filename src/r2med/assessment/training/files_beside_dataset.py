"""What the folder of a built dataset says beside its queries and documents: pages, judged candidates, models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from r2med.data.dataset import Dataset
from r2med.data.problems import Problems
from r2med.data.source_rows import OpenRow, read_rows
from r2med.foundation.store.files import json_object

PROVENANCE, CANDIDATES, CROISSANT = "provenance.jsonl", "candidates.jsonl", "croissant.json"


@dataclass(frozen=True)
class JudgedCandidate:
    """A candidate of a build that its judges or people labelled."""

    query: str
    document: str
    label: str
    """positive, negative or discarded, by the mean scores of the judges or by people."""
    by: str
    """judges, people or adjudication."""
    scores: str
    """The mean scores of the judges, as text; empty without judges."""


def pages_of(dataset: Dataset) -> Mapping[str, frozenset[str]]:
    """Return document -> the pages that it is a part of, where the dataset says it: its own and those of copies."""
    return {str(row["id"]): frozenset(_pages(row)) for row in _rows(dataset, PROVENANCE) if row.get("id") is not None}


def _pages(row: Mapping[str, Any]) -> Iterator[str]:
    copies = row.get("copies")
    for page in (row.get("page"), *(copies if isinstance(copies, list) else ())):
        if page:
            yield page_name(str(page))


def page_name(place: str) -> str:
    """Return the name of a page. One page has many addresses: with www or not, with a section, with a last slash."""
    _, is_address, rest = place.partition("://")
    if not is_address:
        return place
    page, mark, section = unquote(rest).partition("#")
    host, slash, path = page.partition("/")
    host = host.lower().removeprefix("www.").replace(".m.", ".")
    # Behind #/ is not a section but a page of its own.
    return f"{host}{slash}{path}".rstrip("/") + (f"{mark}{section}" if section.startswith(("/", "!")) else "")


def judged_candidates(dataset: Dataset) -> Iterator[JudgedCandidate]:
    """Yield the labelled candidates of a built dataset, in the order of the committee's proposals."""
    for row in _rows(dataset, CANDIDATES):
        scores = [
            f"{name} {row[name]:g}" for name in ("relevance", "support") if isinstance(row.get(name), int | float)
        ]
        query, document, label, by = (str(row.get(name) or "") for name in ("q_id", "p_id", "label", "by"))
        yield JudgedCandidate(query, document, label, by, ", ".join(scores))


def models_of(dataset: Dataset) -> Mapping[str, tuple[str, ...]]:
    """Return step or task -> the models that made this part of the dataset, where its metadata says it."""
    described = json_object(dataset.folder / CROISSANT) if dataset.folder else {}
    found: dict[str, tuple[str, ...]] = {}
    activities = described.get("prov:wasGeneratedBy")
    for activity in activities if isinstance(activities, list) else ():
        agents = activity.get("prov:wasAssociatedWith") or () if isinstance(activity, Mapping) else ()
        names = [str(agent.get("name", "")) for agent in agents if isinstance(agent, Mapping)]
        models = tuple(name for name in names if name and not name.startswith("r2med "))
        if models:
            found[str(activity.get("name", ""))] = models
    tools = described.get("rai:machineAnnotationTools")
    if isinstance(tools, list) and tools:
        found["judging"] = tuple(map(str, tools))
    return found


def _rows(dataset: Dataset, name: str) -> Iterator[dict[str, Any]]:
    file = dataset.folder / name if dataset.folder else None
    if file is not None and file.is_file():
        yield from (row.model_extra or {} for _, row in read_rows(file, OpenRow, Problems()))

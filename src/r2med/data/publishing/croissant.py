"""Croissant 1.1 metadata: the content and origin of a dataset's files, and what its makers state about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

CROISSANT_VERSION, RAI_VERSION = "http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"

TEXT, INTEGER, FLOAT = "sc:Text", "sc:Integer", "sc:Float"

Configs = Mapping[str, tuple[str, Mapping[str, str]]]
"""Name of each file of rows -> its description and its columns with their types."""
CONFIGS: Configs = {
    "query": (
        "The queries, with facts about each for analysis.",
        dict.fromkeys(("id", "text", "answer", "body_system"), TEXT),
    ),
    "corpus": ("The documents.", {"id": TEXT, "text": TEXT}),
    "qrels": ("The relevant documents of each query.", {"q_id": TEXT, "p_id": TEXT, "score": INTEGER}),
}
"""The files of rows that every dataset has."""

FORMATS = {".jsonl": "application/jsonlines", ".html": "text/html", ".md": "text/markdown", ".toml": "application/toml"}
NOT_STATED = "not stated"

CONTEXT: Mapping[str, Any] = json.loads(
    (resources.files("r2med.data.publishing") / "croissant_context.json").read_text("utf-8")
)
"""The JSON-LD context of Croissant 1.1, with the vocabularies of RAI and of provenance."""


@dataclass(frozen=True)
class PublishedFacts:
    """What the makers of a dataset state about it. Builds and exports fill it."""

    name: str
    description: str
    url: str = ""
    licence: str = ""
    version: str = "1.0.0"
    languages: Sequence[str] = ("en",)
    """Codes of languages."""
    authorship: Mapping[str, Any] = field(default_factory=dict)
    """Creators, date and citation, by the name of the metadata field. Empty if they are not known."""
    responsible: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the RAI vocabulary."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Sources and steps, in the vocabulary of provenance."""


def croissant(facts: PublishedFacts, files: Mapping[str, tuple[int, str]], configs: Configs) -> dict[str, Any]:
    """Return the metadata of a dataset. `files` maps a name to its size in bytes and its SHA-256."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [CROISSANT_VERSION, RAI_VERSION] if facts.responsible else CROISSANT_VERSION,
        "name": facts.name,
        "description": facts.description,
        "url": facts.url or "https://example.org/not-published",
        "license": facts.licence or NOT_STATED,
        "version": facts.version,
        "inLanguage": in_language(facts.languages),
        "isLiveDataset": False,
        **facts.authorship,
        **facts.responsible,
        **facts.provenance,
        **contents(files, configs),
    }


def in_language(codes: Sequence[str]) -> str | list[str]:
    """Return the value of inLanguage: one code, or a list of several."""
    return codes[0] if len(codes) == 1 else list(codes)


def contents(files: Mapping[str, tuple[int, str]], configs: Configs) -> dict[str, Any]:
    """Return the fields that describe the files, with their rows and columns."""
    return {
        "distribution": [
            {
                **{"@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name},
                **{"contentSize": f"{size} B", "sha256": digest},
                "encodingFormat": FORMATS[name[name.rindex(".") :]],
            }
            for name, (size, digest) in files.items()
        ],
        "recordSet": list(_record_sets(configs)),
    }


def _record_sets(configs: Configs) -> Iterator[dict[str, Any]]:
    for name, (description, columns) in configs.items():
        fields = [
            {
                **{"@type": "cr:Field", "@id": f"{name}/{column}", "name": column, "dataType": kind},
                "source": {"fileObject": {"@id": f"{name}.jsonl"}, "extract": {"column": column}},
            }
            for column, kind in columns.items()
        ]
        key = {"key": {"@id": f"{name}/id"}} if "id" in columns else {}
        yield {"@type": "cr:RecordSet", "@id": name, "name": name, "description": description, **key, "field": fields}

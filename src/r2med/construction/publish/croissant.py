"""Croissant 1.1 metadata with RAI fields: the content and origin of a dataset's files, and its limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from r2med.assessment.review.review_outcomes import PUBLISHED_POINTS
from r2med.construction.publish.build_outcome import BuildOutcome
from r2med.construction.publish.datasheet import GENERAL_LIMITS, NOT_STATED
from r2med.construction.publish.label_trust import trust_sections
from r2med.construction.publish.reviewers import demographics
from r2med.foundation.core.version import __version__
from r2med.foundation.pages.page import Page, Table

VERSIONS = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")

DEMOGRAPHICS = "rai:annotatorDemographics"

TEXT, INTEGER, FLOAT = "sc:Text", "sc:Integer", "sc:Float"

Configs = Mapping[str, tuple[str, Mapping[str, str]]]
CONFIGS: Configs = {
    "query": (
        "The queries, with facts about each for analysis.",
        dict.fromkeys(
            (
                *("id", "text", "answer", "body_system", "kind", "original", "reasoning", "source", "licence"),
                *PUBLISHED_POINTS,
            ),
            TEXT,
        ),
    ),
    "corpus": ("The documents.", {"id": TEXT, "text": TEXT}),
    "qrels": ("The relevant documents of each query.", {"q_id": TEXT, "p_id": TEXT, "score": INTEGER}),
    "provenance": (
        "The origin of each document.",
        {"id": TEXT, "page": TEXT, "start": INTEGER, "end": INTEGER}
        | dict.fromkeys(("title", "url", "source", "licence"), TEXT),
    ),
    "candidates": (
        "The label of every judged candidate, who decided it, and which systems proposed the candidate.",
        dict.fromkeys(("q_id", "p_id", "label", "by", "judged"), TEXT)
        | {"relevance": FLOAT, "support": FLOAT, "proposed": TEXT},
    ),
    "labels": (
        "The opinion of every judge and every person about a candidate, including planted controls, and of every "
        "person about each point of a question.",
        {"q_id": TEXT, "p_id": TEXT, "by": TEXT, "relevance": FLOAT, "support": FLOAT}
        | dict.fromkeys(("verdict", "why", "control", "text", "kind", "point", "correction"), TEXT),
    ),
    "rejected": (
        "The items that each step left out, with the reason.",
        dict.fromkeys(("step", "key", "reason", "note", "item"), TEXT),
    ),
}
"""Name of each file of rows -> its description and its columns."""

TRANSLATED_QUERY = dict.fromkeys(("source_language", "source_text"), TEXT)
"""Further columns of the queries of a translated dataset."""
TRANSLATIONS: Configs = {
    "translations": (
        "The translated sentences of queries and pages, each beside its source, with the results of the checks.",
        dict.fromkeys(("of", "id", "language", "field", "source", "target", "back"), TEXT)
        | {"similarity": FLOAT, "faults": TEXT},
    )
}
"""The file of rows that only a translated dataset has."""


CORRECTIONS: Configs = {
    "corrections": (
        "The texts of queries that people corrected, before and after.",
        dict.fromkeys(("q_id", "kind", "field", "before", "after"), TEXT),
    )
}
"""The file of rows that a dataset has if people corrected texts."""


def configs_of(made: BuildOutcome) -> Configs:
    """Return the files of rows of a dataset. A translated dataset keeps its source beside the translation."""
    corrected = CORRECTIONS if made.corrections else {}
    if not made.translations:
        return {**CONFIGS, **corrected}
    described, columns = CONFIGS["query"]
    return {**CONFIGS, "query": (described, {**columns, **TRANSLATED_QUERY}), **TRANSLATIONS, **corrected}


FORMATS = {".jsonl": "application/jsonlines", ".html": "text/html", ".md": "text/markdown", ".toml": "application/toml"}

CONTEXT: Mapping[str, Any] = json.loads(
    (resources.files("r2med.construction.publish") / "croissant_context.json").read_text("utf-8")
)
"""The JSON-LD context of Croissant 1.1, with the vocabularies of RAI and of provenance."""


def croissant(made: BuildOutcome, sheet: Page, files: Mapping[str, tuple[int, str]], date: str) -> dict[str, Any]:
    """Return the metadata of a dataset. `files` maps a name to its size in bytes and its SHA-256."""
    plan = made.plan
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(VERSIONS),
        "name": plan.name,
        "description": plan.description or plan.title or plan.name,
        "url": plan.url or "https://example.org/not-published",
        "license": plan.licence or NOT_STATED,
        "creator": [{"@type": "sc:Person", "name": name} for name in plan.creators or (NOT_STATED,)],
        "version": plan.version,
        "datePublished": date,
        "inLanguage": in_language(made.languages),
        "keywords": ["medicine", "retrieval", "reasoning", "benchmark"],
        "citeAs": f"{', '.join(plan.creators) or NOT_STATED}: {plan.title or plan.name}, {date[:4]}",
        "isLiveDataset": False,
        **_responsible(made, sheet),
        **_provenance(made),
        **contents(files, configs_of(made)),
    }


def in_language(codes: Sequence[str]) -> str | list[str]:
    """Return the value of inLanguage: one code, or a list of several."""
    return codes[0] if len(codes) == 1 else list(codes)


def contents(files: Mapping[str, tuple[int, str]], configs: Configs = CONFIGS) -> dict[str, Any]:
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


def _responsible(made: BuildOutcome, sheet: Page) -> dict[str, Any]:
    """Return the fields of the RAI vocabulary."""
    plan = made.plan
    labelling = next(section for section in sheet.sections if section.title == "Labels")
    trust = [part for section in trust_sections(made) for part in section.parts]
    analysis = [part for part in trust if isinstance(part, str)]
    for part in trust:
        if isinstance(part, Table):
            rows = zip(*(column.texts for column in part.shown_columns), strict=True)
            analysis.append(f"{part.title}: {'; '.join(' '.join(row) for row in rows)}")
    people = len({review.annotator for review in made.reviews})
    return {
        "rai:dataLimitations": [*plan.limits, *GENERAL_LIMITS],
        "rai:dataBiases": list(plan.biases) or [GENERAL_LIMITS[0]],
        "rai:personalSensitiveInformation": plan.sensitive or NOT_STATED,
        "rai:dataUseCases": plan.uses or NOT_STATED,
        "rai:dataSocialImpact": plan.impact or NOT_STATED,
        "rai:hasSyntheticData": any(each.original or each.source_text for each in made.questions),
        "rai:dataCollection": "; ".join(done.step for done in made.steps),
        "rai:dataAnnotationProtocol": [part for part in labelling.parts if isinstance(part, str)],
        "rai:dataAnnotationPlatform": "r2med build" + (" and r2med review" if people else ""),
        "rai:dataAnnotationAnalysis": analysis,
        "rai:annotationsPerItem": f"{len(made.judges)} LLM judges; {people} people, on a sample",
        DEMOGRAPHICS: demographics(made.annotators),
        "rai:machineAnnotationTools": [f"{judge.model} (prompt {judge.digest})" for judge in made.judges],
    }


def _provenance(made: BuildOutcome) -> dict[str, Any]:
    """Return the sources of the dataset, and the steps and models that made it."""
    models: dict[str, list[str]] = {}
    for asked in made.asked:
        models.setdefault(asked.step, []).append(asked.model)
    return {
        "prov:wasDerivedFrom": [
            {"@type": "prov:Entity", "name": source or NOT_STATED, "license": licence or NOT_STATED}
            for _, source, licence in sorted(made.sources)
        ],
        "prov:wasGeneratedBy": [
            {
                "@type": "prov:Activity",
                "name": done.step,
                "description": f"{done.kept} {done.stream} kept, {sum(done.rejected.values())} left out",
                "prov:wasAssociatedWith": [
                    {"@type": "prov:SoftwareAgent", "name": agent}
                    for agent in (f"r2med {__version__}", *models.get(done.step, ()))
                ],
            }
            for done in made.steps
        ],
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

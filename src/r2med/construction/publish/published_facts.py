"""What a build states about its dataset, for Croissant metadata and the card of the hub."""

from __future__ import annotations

from typing import Any

from r2med.assessment.review.review_outcomes import PUBLISHED_POINTS
from r2med.construction.publish.build_outcome import BuildOutcome
from r2med.construction.publish.datasheet import GENERAL_LIMITS
from r2med.construction.publish.label_trust import trust_sections
from r2med.data.publishing.croissant import CONFIGS, FLOAT, INTEGER, NOT_STATED, TEXT, Configs, PublishedFacts
from r2med.data.publishing.hub_card import hub_head
from r2med.foundation.core.version import __version__
from r2med.foundation.pages.page import Page, Table

BUILD_CONFIGS: Configs = {
    **CONFIGS,
    "query": (
        CONFIGS["query"][0],
        {
            **CONFIGS["query"][1],
            **dict.fromkeys(("kind", "original", "reasoning", "source", "licence", *PUBLISHED_POINTS), TEXT),
        },
    ),
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
        "The translated sentences of queries and pages, each beside its source and its translation back, with marks.",
        dict.fromkeys(("of", "id", "language", "field", "source", "target", "back"), TEXT)
        | {"similarity": FLOAT, "marks": TEXT},
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
        return {**BUILD_CONFIGS, **corrected}
    described, columns = BUILD_CONFIGS["query"]
    return {**BUILD_CONFIGS, "query": (described, {**columns, **TRANSLATED_QUERY}), **TRANSLATIONS, **corrected}


def published_facts(made: BuildOutcome, sheet: Page, date: str) -> PublishedFacts:
    """Return what a build states about its dataset."""
    plan = made.plan
    return PublishedFacts(
        name=plan.name,
        description=plan.description or plan.title or plan.name,
        url=plan.url,
        licence=plan.licence,
        version=plan.version,
        languages=made.languages,
        authorship={
            "creator": [{"@type": "sc:Person", "name": name} for name in plan.creators or (NOT_STATED,)],
            "datePublished": date,
            "keywords": ["medicine", "retrieval", "reasoning", "benchmark"],
            "citeAs": f"{', '.join(plan.creators) or NOT_STATED}: {plan.title or plan.name}, {date[:4]}",
        },
        responsible=_responsible(made, sheet),
        provenance=_provenance(made),
    )


def hub_card(made: BuildOutcome) -> str:
    """Return the head of the README for a build."""
    plan = made.plan
    files = {name: f"{name}.jsonl" for name in configs_of(made)}
    return hub_head(plan.title or plan.name, plan.licence, made.documents, files, languages=made.languages)


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
        "rai:annotatorDemographics": plan.reviewers or NOT_STATED,
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

"""Audit a dataset: copies, leaks, what the labels can tell, faults of encoding, licence and source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from r2med.assessment.audit.answer_leaks import (
    answers_in_metadata,
    answers_in_queries,
    is_open_answer,
    quoted_documents,
)
from r2med.assessment.audit.audit_findings import Audit, AuditGap
from r2med.assessment.audit.audit_material import AuditMaterial, rankings_at_hand
from r2med.assessment.audit.copies import contradictory_labels, partial_copies, repeated_queries, unlabelled_copies
from r2med.assessment.audit.label_power import (
    detectable_gap,
    label_distribution,
    single_relevant,
    unjudged_documents,
)
from r2med.assessment.audit.links import checked_files, empty_documents, missing_documents, scorable_queries
from r2med.assessment.audit.overlaps import overlap_finding
from r2med.assessment.audit.provenance import encoding, provenance
from r2med.assessment.audit.query_metadata import query_lines
from r2med.assessment.audit.turned_labels import turned_labels
from r2med.data.check import check
from r2med.data.dataset import Dataset
from r2med.data.dataset_word import DatasetWord
from r2med.data.loading import load_dataset
from r2med.data.problems import DATA_CHECKS, FILES
from r2med.data.qrels_file import read_qrels
from r2med.evaluation.measure.incomplete_labels import Lists
from r2med.evaluation.records.collection import record_files
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import __version__
from r2med.foundation.engine.reporting import announcing
from r2med.foundation.pages.finding import Finding, worst
from r2med.foundation.text.terminal_text import quoted

RESULTS = Path("results")

# What a check may need -> what to say if it is not there.
_NEEDS: Mapping[str, tuple[Callable[[AuditMaterial], bool], str]] = {
    "judgements": (lambda material: bool(material.qrels), "there are no judgements"),
    "texts": (
        lambda material: material.dataset is not None,
        "it needs the queries and documents, not judgements alone",
    ),
    "files": (
        lambda material: material.problems is not None,
        "it needs the files of a dataset, not values in memory",
    ),
    "answers": (
        lambda material: any(is_open_answer(query.answer) for query in material.queries.values()),
        "no query states an answer that could be found in a text",
    ),
    "fields": (
        lambda material: material.dataset is not None and query_lines(material.dataset) is not None,
        "the queries are not in a file of JSON lines, so other fields are not known",
    ),
    "systems": (
        lambda material: bool(material.rankings),
        "no rankings of this dataset are at hand: make some with r2med run, and audit it again in the same folder",
    ),
}


@dataclass(frozen=True)
class AuditCheck:
    """The declaration of a check."""

    title: str
    function: Callable[[AuditMaterial], Finding]
    needs: tuple[str, ...] = ()
    """What it needs, as names in `_NEEDS`. Without it the check is left out."""


QUICK_CHECKS = (FILES, "aspects-and-nuggets", "card-counts")
"""The checks of `r2med data check` that no other check of the audit replaces."""

CHECKS: Mapping[str, AuditCheck] = {
    **{name: AuditCheck(DATA_CHECKS[name][0], partial(checked_files, name), ("files",)) for name in QUICK_CHECKS},
    "scorable-queries": AuditCheck("Queries that can be scored", scorable_queries),
    "missing-documents": AuditCheck("Relevant documents exist", missing_documents, ("judgements", "texts")),
    "empty-documents": AuditCheck("Documents have text", empty_documents, ("texts",)),
    "unlabelled-copies": AuditCheck("Copies of relevant documents", unlabelled_copies, ("judgements", "texts")),
    "partial-copies": AuditCheck("Parts of relevant documents", partial_copies, ("judgements", "texts")),
    "contradictory-labels": AuditCheck("Labels of equal texts", contradictory_labels, ("judgements", "texts")),
    "repeated-queries": AuditCheck("Queries that occur twice", repeated_queries, ("judgements", "texts")),
    "answers-in-queries": AuditCheck("Answers in queries", answers_in_queries, ("texts", "answers")),
    "quoted-documents": AuditCheck("Relevant documents quoted in queries", quoted_documents, ("judgements", "texts")),
    "answers-in-metadata": AuditCheck("Answers in other fields of queries", answers_in_metadata, ("texts", "fields")),
    "detectable-gap": AuditCheck("Smallest difference that can be shown", detectable_gap, ("judgements",)),
    "unjudged-documents": AuditCheck(
        "Documents without a label", unjudged_documents, ("judgements", "texts", "systems")
    ),
    "single-relevant": AuditCheck("Queries with one relevant document", single_relevant, ("judgements",)),
    "turned-labels": AuditCheck("Order of grades", turned_labels, ("judgements", "texts")),
    "label-distribution": AuditCheck("Distribution of labels", label_distribution, ("judgements",)),
    "encoding": AuditCheck("Encoding of texts", encoding, ("texts",)),
    "provenance": AuditCheck("Licence and source", provenance, ("texts",)),
}


def audited(
    dataset: str | Path | Dataset | None,
    qrels: Path | None = None,
    results: Path | None = None,
    against: Sequence[Path] = (),
) -> Audit:
    """Audit a dataset, or a file of judgements. `results` is a folder of records of the dataset.

    `against` are files of other data, such as training data, in which the texts of the dataset are looked for.
    """
    if (dataset is None) == (qrels is None):
        raise UserError(
            "an audit is about one dataset or one file of judgements: r2med audit DATASET, or r2med audit --qrels FILE"
        )
    if qrels is not None:
        if results is not None or against:
            what = "texts" if against else "rankings"
            raise UserError(f"{what} belong to a dataset: name it instead of a file of judgements")
        return _audited(AuditMaterial(qrels.name, read_qrels(qrels)))
    if isinstance(dataset, Dataset):
        loaded, problems = dataset, None
    else:
        word = DatasetWord.typed(dataset or "")
        loaded, problems = load_dataset(word), check(word.word)
    material = AuditMaterial(loaded.name, loaded.qrels, loaded, *_rankings(loaded, results), problems)
    return _audited(material, [overlap_finding(loaded, file) for file in against])


def _rankings(dataset: Dataset, results: Path | None) -> tuple[Mapping[str, Lists], str]:
    """Return the rankings of a dataset, and why they could not be read."""
    if results is not None:
        rankings = rankings_at_hand(dataset, results)
        if not rankings:
            raise UserError(
                f"{results} has no ranking of {dataset.name} as it is now: make one with "
                f"r2med run SYSTEM --data {quoted(dataset.word)} -o {quoted(results)}"
            )
        return rankings, ""
    try:
        return rankings_at_hand(dataset, RESULTS) if record_files(RESULTS) else {}, ""
    except UserError as error:  # the folder was not named, so the audit goes on without it
        return {}, f"the records in {RESULTS} could not be read: {error}"


def _lacking(need: str, material: AuditMaterial) -> str:
    return material.no_rankings if need == "systems" and material.no_rankings else _NEEDS[need][1]


def _audited(material: AuditMaterial, overlaps: Sequence[Finding] = ()) -> Audit:
    announce = announcing(len(CHECKS))
    findings: list[Finding] = [*overlaps]
    gaps: list[AuditGap] = []
    for name, declared in CHECKS.items():
        announce(name)
        missing = next((_lacking(need, material) for need in declared.needs if not _NEEDS[need][0](material)), "")
        if missing:
            gaps.append(AuditGap(id=name, title=declared.title, why=missing))
            continue
        findings.append(declared.function(material).model_copy(update={"id": name, "title": declared.title}))
    return Audit(
        dataset=material.name,
        fingerprint=material.dataset.fingerprint if material.dataset else "",
        r2med=__version__,
        queries=len(material.qrels),
        documents=len(material.dataset.corpus) if material.dataset else 0,
        judgements=sum(map(len, material.qrels.values())),
        systems=tuple(material.rankings),
        verdict=worst(finding.verdict for finding in findings),
        findings=tuple(findings),
        left_out=tuple(gaps),
    )

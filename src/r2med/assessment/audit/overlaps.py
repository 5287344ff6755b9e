"""What other data, such as training data, share with datasets: counts for a datasheet, and a finding of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from r2med.assessment.audit.audit_findings import verdict_for
from r2med.assessment.audit.containment import OtherText, SharedText, SharedTexts, known_texts, shared_texts
from r2med.assessment.audit.text_columns import texts_of
from r2med.data.dataset import Dataset
from r2med.data.training_sheet import TrainingOverlap
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.finding import Evidence, Finding
from r2med.foundation.text.plurals import counted

SHOWN = 100
"""Number of characters of shared words that are shown as evidence."""
HOW = {"equal": "the same words", "near": "nearly the same", "run": "13 words or more in a row"}
NOUNS = {"question": "question", "passage": "relevant document", "answer": "answer"}


def overlap_of(dataset: Dataset, shared: Iterable[SharedText], queries: int, fold: int = 0) -> TrainingOverlap:
    """Return the counts of shared texts of one dataset. `queries` is the number of queries that were compared."""
    found = list(shared)
    kinds = [each.known.kind for each in found]
    return TrainingOverlap(
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        corpus_fingerprint=dataset.corpus.fingerprint,
        fold=fold,
        queries=queries,
        touched=len({query for each in found for query in each.known.queries}),
        questions=kinds.count("question"),
        passages=kinds.count("passage"),
        answers=kinds.count("answer"),
    )


def overlaps(datasets: Sequence[Dataset], others: Iterable[OtherText]) -> list[TrainingOverlap]:
    """Return what texts share with each dataset. The texts are read once for all datasets."""
    shared = shared_texts([text for each in datasets for text in known_texts(each)], others, datasets)
    by_name: dict[str, list[SharedText]] = {each.name: [] for each in datasets}
    for each in shared.found:
        by_name[each.known.dataset].append(each)
    return [overlap_of(each, by_name[each.name], len(each.queries)) for each in datasets]


def overlap_finding(dataset: Dataset, file: Path) -> Finding:
    """Compare the questions, answers and relevant documents of a dataset with all texts of a file."""
    shared = shared_texts(known_texts(dataset), texts_of(file), [dataset])
    if not shared.read:
        raise UserError(f"{file}: no cell of the file is a text of two words or more, so there is nothing to compare")
    overlap = overlap_of(dataset, shared.found, len(dataset.queries))
    rows = [
        (each.known.kind, each.known.id, HOW[each.kind], round(each.share, 3), each.place, _cut(each.words))
        for each in sorted(shared.found, key=lambda each: (each.known.kind != "question", -each.share))
    ]
    heads = ("text", "id", "how", "share in common", "where", "the words")
    numbers = overlap.model_dump(include={"questions", "passages", "answers", "touched", "queries"})
    return Finding(
        id="overlap",
        title=f"Overlap with {file.name}",
        verdict=verdict_for(overlap.touched, len(dataset.queries)),
        sentence=_sentence(overlap, shared, file.name),
        numbers=numbers | {"texts": shared.read, "pairs_not_compared": shared.unread},
        evidence=Evidence.found(heads, rows),
    )


def _sentence(overlap: TrainingOverlap, shared: SharedTexts, name: str) -> str:
    read = counted(shared.read, "different text")
    if not shared.found:
        said = f"No overlap found: no question, answer or relevant document is among the {read} of {name}."
    else:
        counts = {kind: getattr(overlap, f"{kind}s") for kind in NOUNS}
        parts = [counted(count, NOUNS[kind]) for kind, count in counts.items() if count]
        said = (
            f"{overlap.words[0].upper()}{overlap.words[1:]}: {name} ({read}) holds {_joined(parts)} of "
            f"{overlap.touched:,} of {counted(overlap.queries, 'query', 'queries')}. A model that was trained with it "
            "has seen them."
        )
    return (
        f"{said} At least {shared.unread:,} further pairs of similar texts were not compared."
        if shared.unread
        else said
    )


def _joined(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN else f"{flat[: SHOWN - 1]}…"

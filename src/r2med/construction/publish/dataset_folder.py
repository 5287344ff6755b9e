"""Write the dataset folder of a build. It has R2MED's layout, is a hub repository too, and has a datasheet."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.construction.pipeline import Build
from r2med.construction.publish.build_outcome import BuildOutcome, origin
from r2med.construction.publish.croissant import CONFIGS, FILES, croissant
from r2med.construction.publish.datasheet import datasheet
from r2med.construction.publish.hub_card import hub_card
from r2med.construction.review.review_book import read_reviews
from r2med.construction.review.reviews import Review
from r2med.core.errors import UserError
from r2med.data.loading import load
from r2med.pages.html import page_html
from r2med.pages.markdown import page_markdown
from r2med.runtime.runtime import Runtime, running
from r2med.runtime.setup import Setup
from r2med.store.files import json_line, replaced, sha256

CARD, LABELS = "card.toml", "labels.jsonl"
Row = Mapping[str, Any]


def write_output(build: Build, setup: Setup | Runtime) -> Path | None:
    """Write the folder DIR/NAME, named after the plan, and replace an earlier one; None if nothing was judged yet.

    Raises UserError if no question has a relevant document.
    """
    made = BuildOutcome.read(build, read_reviews(build.out))
    if not made.labels:
        return None
    if not made.questions:
        raise UserError(f"no question has a relevant document: r2med build sample {build.out} shows the judgements")
    folder = build.dataset
    with replaced(folder, CARD, "a dataset") as new:
        for name, rows in _tables(made).items():
            _write(new / name, rows)
        (new / CARD).write_text(_card(made), "utf-8")
        files = {name: sha256(new / name) for name in [*FILES, CARD]}
        with running(setup) as runtime:
            sheet = datasheet(made, load(new, runtime.store), files, runtime.store)
        (new / "README.md").write_text(hub_card(made) + page_markdown(sheet), "utf-8")
        (new / "datasheet.html").write_text(page_html(sheet), "utf-8")
        sizes = {path.name: (path.stat().st_size, sha256(path)) for path in sorted(new.iterdir())}
        described = croissant(made, sheet, sizes, _date(build))
        (new / "croissant.json").write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return folder


def lacks_reviews(build: Build) -> bool:
    """Return True if people have added or changed reviews since the dataset was written."""
    if not (build.dataset / LABELS).is_file():
        return False
    with (build.dataset / LABELS).open(encoding="utf-8") as lines:
        published = Counter(_said(row) for row in map(json.loads, lines) if row["verdict"])
    return published != Counter(map(_said, _human_rows(read_reviews(build.out))))


def _said(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in ("q_id", "p_id", "by", "verdict", "why"))


def _tables(made: BuildOutcome) -> dict[str, Iterable[Row]]:
    """Return the rows of each file, by its name. Rows are read and written one at a time."""
    return {
        "query.jsonl": _queries(made),
        "corpus.jsonl": ({"id": chunk.id, "text": chunk.text} for chunk in made.streams.chunks()),
        "qrels.jsonl": (
            {"q_id": query, "p_id": chunk, "score": 1} for query, chunks in made.positives.items() for chunk in chunks
        ),
        "provenance.jsonl": _provenance(made),
        "candidates.jsonl": _candidates(made),
        LABELS: _opinions(made),
        "rejected.jsonl": _rejected(made),
    }


def _write(path: Path, rows: Iterable[Row]) -> None:
    with path.open("wb") as file:
        file.writelines(map(json_line, rows))


def _queries(made: BuildOutcome) -> Iterator[Row]:
    for question in made.questions:
        yield {name: getattr(question, name) for name in CONFIGS["query"][1]}


def _provenance(made: BuildOutcome) -> Iterator[Row]:
    for chunk in made.streams.chunks():
        made.sources["documents", origin(chunk.url or chunk.source), chunk.licence] += 1
        yield chunk.model_dump(exclude={"text"})


def _candidates(made: BuildOutcome) -> Iterator[Row]:
    labels = {(label.question, label.chunk): label for label in made.labels}
    for candidate in made.candidates():
        if label := labels.get((candidate.question, candidate.chunk)):
            yield {
                **{"q_id": label.question, "p_id": label.chunk, "label": label.label, "by": label.by},
                **{"judged": label.judged, "relevance": label.relevance, "support": label.support},
                "proposed": json.dumps([hit.model_dump() for hit in candidate.found]),
            }


def _opinions(made: BuildOutcome) -> Iterator[Row]:
    """Yield the opinions of all judges and people, including planted controls. People have numbers, not names."""
    texts = {(each.question, each.chunk): each.text for each in made.streams.candidates() if each.control}
    for judgement in made.streams.judgements():
        pair = {"q_id": judgement.question, "p_id": judgement.chunk, "by": judgement.judge}
        scores: Row = {"relevance": judgement.relevance, "support": judgement.support, "verdict": None}
        text = texts.get((judgement.question, judgement.chunk), "")
        yield {**pair, **scores, "why": judgement.rationale, "control": judgement.control, "text": text}
    yield from _human_rows(made.reviews)


def _human_rows(reviews: Sequence[Review]) -> Iterator[Row]:
    """Yield the opinions of all people, each with a number instead of a name."""
    numbers = {name: number for number, name in enumerate(sorted({each.annotator for each in reviews}), 1)}
    for review in reviews:
        who = f"{'adjudicator' if review.adjudicated else 'person'} {numbers[review.annotator]}"
        pair = {"q_id": review.question, "p_id": review.chunk, "by": who}
        scores = {"relevance": None, "support": None, "verdict": review.verdict}
        yield {**pair, **scores, "why": review.comment, "control": "", "text": ""}


def _rejected(made: BuildOutcome) -> Iterator[Row]:
    for done in made.steps:
        for each in made.build.rejected(done.number):
            item = json.dumps(each.item, ensure_ascii=False)
            yield {"step": done.step, "key": each.key, "reason": each.reason, "note": each.note, "item": item}
    for question in made.left_over:
        yield {
            **{"step": "labels", "key": question.id, "reason": "no positive", "note": ""},
            "item": question.model_dump_json(exclude_defaults=True),
        }


def _card(made: BuildOutcome) -> str:
    """Return the dataset's card. The TOML values used here are written like JSON."""
    plan = made.plan
    families = sorted({family for judge in made.judges for family in judge.families})
    facts: dict[str, Any] = {"name": plan.name, "task": plan.task, "scenario": plan.scenario, "kind": plan.kind}
    facts |= {"licence": plan.licence, "judges": families}
    per_query = Counter({query: len(chunks) for query, chunks in made.positives.items()})
    counts = {"queries": len(made.questions), "documents": made.documents}
    counts |= {"positives": per_query.total(), "most_positives": max(per_query.values())}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items() if value]
    return "\n".join([*lines, "", "[counts]", *(f"{name} = {count}" for name, count in counts.items()), ""])


def _date(build: Build) -> str:
    """Return the day on which the last step was finished."""
    done = [build.folder(number) / "step.json" for number in range(1, len(build.plan.steps) + 1)]
    latest = max(path.stat().st_mtime for path in done if path.is_file())
    return datetime.datetime.fromtimestamp(latest, datetime.UTC).date().isoformat()

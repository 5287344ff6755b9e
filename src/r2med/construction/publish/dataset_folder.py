"""Write the dataset folder of a build. It has R2MED's layout, is a hub repository too, and has a datasheet."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from r2med.assessment.review.kinds import PASSAGE
from r2med.assessment.review.review_outcomes import PUBLISHED_POINTS, published_replies
from r2med.assessment.review.reviews import Review
from r2med.assessment.rubrics.rubric import VERDICT
from r2med.construction.items import SourcePage, SourceQuestion
from r2med.construction.pipeline import BuildFolder
from r2med.construction.publish.build_outcome import BuildOutcome, origin
from r2med.construction.publish.datasheet import datasheet
from r2med.construction.publish.published_facts import (
    CORRECTIONS,
    TRANSLATIONS,
    configs_of,
    hub_card,
    published_facts,
)
from r2med.construction.review_items import read_reviews
from r2med.data.dataset_cards import own_name
from r2med.data.loading import load_new
from r2med.data.publishing.croissant import croissant
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.text_formats import page_markdown
from r2med.foundation.runtime.runtime import Runtime, running
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store.files import json_line, replaced, sha256, write_json
from r2med.foundation.text.search_languages import ENGLISH
from r2med.foundation.text.terminal_text import quoted

CARD, LABELS, CROISSANT = "card.toml", "labels.jsonl", "croissant.json"
Row = Mapping[str, Any]


def write_output(build: BuildFolder, setup: Setup | Runtime) -> Path | None:
    """Write the folder DIR/NAME, named after the plan, and replace an earlier one; None if nothing was judged yet.

    Raises UserError if no question has a relevant document.
    """
    made = BuildOutcome.read(build, read_reviews(build.out))
    if not made.labels:
        return None
    if not made.questions:
        people = f"; people rejected {len(made.refused)} (r2med build show {quoted(build.out)})" if made.refused else ""
        look = f"r2med build show {quoted(build.out)} -n 5 shows judgements"
        raise UserError(f"no question has a relevant document: {look}{people}")
    folder = build.dataset
    with replaced(folder, CARD, "a dataset") as new:
        for name, rows in _tables(made).items():
            _write(new / name, rows)
        (new / CARD).write_text(_card(made), "utf-8")
        files = {name: sha256(new / name) for name in [*_tables(made), CARD]}
        with running(setup) as runtime:
            dataset = load_new(new, own_name(build.plan.facts.name), build.dataset, runtime.store)
            sheet = datasheet(made, dataset, files, runtime.store)
        (new / "README.md").write_text(hub_card(made) + page_markdown(sheet), "utf-8")
        (new / "datasheet.html").write_text(page_html(sheet), "utf-8")
        sizes = {path.name: (path.stat().st_size, sha256(path)) for path in sorted(new.iterdir())}
        described = croissant(published_facts(made, sheet, _date(build)), sizes, configs_of(made))
        write_json(new / CROISSANT, described)
    return folder


def lacks_reviews(build: BuildFolder) -> bool:
    """Return True if people have added or changed reviews since the dataset was written."""
    if not (build.dataset / LABELS).is_file():
        return False
    with (build.dataset / LABELS).open(encoding="utf-8") as lines:
        published = Counter(_said(row) for row in map(json.loads, lines) if row["verdict"])
    return published != Counter(map(_said, _human_rows(read_reviews(build.out))))


def _said(row: Row) -> tuple[str, ...]:
    names = ("kind", "point", "q_id", "p_id", "by", "verdict", "why", "correction")
    return tuple(row[name] for name in names)


def _tables(made: BuildOutcome) -> dict[str, Iterable[Row]]:
    """Return the rows of each file, by its name. Rows are read and written one at a time."""
    translated = {f"{name}.jsonl": _translations(made) for name in TRANSLATIONS if made.translations}
    return {
        "query.jsonl": _queries(made),
        "corpus.jsonl": ({"id": chunk.id, "text": chunk.text} for chunk in made.chunks()),
        "qrels.jsonl": (
            {"q_id": query, "p_id": chunk, "score": 1} for query, chunks in made.positives.items() for chunk in chunks
        ),
        "provenance.jsonl": _provenance(made),
        "candidates.jsonl": _candidates(made),
        LABELS: _opinions(made),
        "rejected.jsonl": _rejected(made),
        **translated,
        **({f"{name}.jsonl": map(asdict, made.corrections) for name in CORRECTIONS} if made.corrections else {}),
    }


def _write(path: Path, rows: Iterable[Row]) -> None:
    with path.open("wb") as file:
        file.writelines(map(json_line, rows))


def _queries(made: BuildOutcome) -> Iterator[Row]:
    replies = published_replies(made.reviews)
    _, columns = configs_of(made)["query"]
    for question in made.questions:
        said = dict.fromkeys(PUBLISHED_POINTS, "") | dict(replies.get(question.id, {}))
        yield {name: said[name] if name in said else getattr(question, name) for name in columns}


def _provenance(made: BuildOutcome) -> Iterator[Row]:
    for chunk in made.chunks():
        made.sources["documents", origin(chunk.url or chunk.source), chunk.licence] += 1
        yield chunk.model_dump(exclude={"text"})


def _translations(made: BuildOutcome) -> Iterator[Row]:
    """Yield the translated sentences of queries and pages. The ids of pages are those of provenance.jsonl."""
    items: Iterable[tuple[str, SourceQuestion | SourcePage]] = chain(
        (("query", question) for question in made.questions),
        (("page", page) for page in made.streams.pages() if page.id not in made.refused_pages),
    )
    for kind, item in items:
        for pair in item.sentences:
            row = {"of": kind, "id": item.id, "language": item.source_language, **pair.model_dump()}
            yield {**row, "marks": "; ".join(pair.marks)}


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
        about = {"kind": PASSAGE, "point": VERDICT}
        said = {"why": judgement.rationale, "control": judgement.control, "text": text}
        yield {**pair, **scores, **said, **about, "correction": ""}
    yield from _human_rows(made.reviews)


def _human_rows(reviews: Sequence[Review]) -> Iterator[Row]:
    """Yield the opinions of all people, one for each point, with a number instead of a name."""
    numbers = {name: number for number, name in enumerate(sorted({each.annotator for each in reviews}), 1)}
    for review in reviews:
        who = f"{'adjudicator' if review.adjudicated else 'person'} {numbers[review.annotator]}"
        pair = {"q_id": review.question, "p_id": review.chunk, "by": who, "relevance": None, "support": None}
        for point, said in review.written.items():
            texts = {"verdict": said, "why": review.comment, "control": "", "text": ""}
            yield {**pair, **texts, "kind": review.kind, "point": point, "correction": review.correction}


def _rejected(made: BuildOutcome) -> Iterator[Row]:
    for done in made.steps:
        is_private = made.holds_personal_data(done)
        for each in made.build.rejected(done.number):
            item = "{}" if is_private else json.dumps(each.item, ensure_ascii=False)
            note = "" if is_private else each.note
            yield {"step": done.step, "key": each.key, "reason": each.reason, "note": note, "item": item}
    why = {question.id: ("labels", "no positive", "") for question in made.left_over}
    why |= {question: ("review", reason, ", ".join(more)) for question, (reason, *more) in made.refused.items()}
    for question in made.streams.questions():
        if question.id in why:
            step, reason, note = why[question.id]
            item = question.model_dump_json(exclude_defaults=True)
            yield {"step": step, "key": question.id, "reason": reason, "note": note, "item": item}
    for page in made.streams.pages() if made.refused_pages else ():
        if page.id in made.refused_pages:
            reason, *more = made.refused_pages[page.id]
            item = page.model_dump_json(exclude_defaults=True)
            yield {"step": "review", "key": page.id, "reason": reason, "note": ", ".join(more), "item": item}


def _card(made: BuildOutcome) -> str:
    """Return the dataset's card. The TOML values used here are written like JSON."""
    plan = made.plan
    families = sorted({family for judge in made.judges for family in judge.families})
    facts: dict[str, Any] = {"name": plan.name, "task": plan.task, "scenario": plan.scenario, "kind": plan.kind}
    facts |= {
        "licence": plan.licence,
        "judges": families,
        "judge_test": made.judge_trust,
        "languages": [] if made.languages == (ENGLISH,) else list(made.languages),
    }
    per_query = Counter({query: len(chunks) for query, chunks in made.positives.items()})
    counts = {"queries": len(made.questions), "documents": made.documents}
    counts |= {"positives": per_query.total(), "most_positives": max(per_query.values())}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items() if value]
    return "\n".join([*lines, "", "[counts]", *(f"{name} = {count}" for name, count in counts.items()), ""])


def _date(build: BuildFolder) -> str:
    """Return the day on which the last step was finished."""
    done = [build.folder(number) / "step.json" for number in range(1, len(build.plan.steps) + 1)]
    latest = max(path.stat().st_mtime for path in done if path.is_file())
    return datetime.datetime.fromtimestamp(latest, datetime.UTC).date().isoformat()

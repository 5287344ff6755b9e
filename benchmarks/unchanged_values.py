"""The values of `unchanged.py`: they are read from what commands wrote, and compared by name, never by place in a file.

Each function `_read_…` reads one kind of output. If a file's layout changes, only its function changes: it then reads
both layouts, and gives both the same names.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Value = float | int | bool | str | None | tuple[tuple[str, float], ...]
"""A number, a text, or a ranking: documents with their scores."""


class Key(NamedTuple):
    """What a value is about."""

    kind: str
    system: str = ""
    reader: str = ""
    condition: str = ""
    dataset: str = ""
    query: str = ""
    """A query, or the labels of a row of a table."""
    measure: str = ""

    def __str__(self) -> str:
        return " · ".join(filter(None, self))


Pair = tuple[Key, Value]

NOT_VALUES = {
    *("seconds", "encoder_seconds", "latencies", "p50", "p95", "fastest", "created", "at", "r2med", "version"),
    *("key", "prompt", "format", "fingerprint", "sha256", "checksum", "files", "described", "source"),
}
"""Names in JSON of what is no result: times, versions, digests."""
CONTAINERS = {"means": "system", "marks": "system", "datasets": "dataset", "per_query": "query"}
"""Names in JSON of objects whose own names are a part of the key."""
ROW_NAMES = (
    *("system", "a", "b", "reader", "condition", "dataset", "query", "q_id", "document", "p_id", "nugget"),
    *("id", "step", "stage", "kind", "label", "by", "judge"),
)
"""Fields and columns that name a row."""
DATASET_NAMES = ("id", "q_id", "p_id", "step", "key", "by")
"""Fields that name a row of a dataset. All others are values."""
TEXT_VALUES = {"verdict", "best", "recommended", "said", "by rule", "by LLM", "leader", "largest move", "letters"}
"""Fields and columns of text that are results, where other texts are labels or sentences."""
SENTENCES = {"finding", "sentence", "data", "why", "reason of the LLM", "SHA-256"}
"""Columns whose wording is no result."""
NUMBERS = re.compile(r"([-–\d.,%/() e∞]|\b(?:to|of|nan|inf|True|False)\b)*")
"""A cell of numbers, such as "1,024", "25%" or "-0.34 to 0.37"."""
MODELS = ("minilm", "bge", "colbert", "splade", "medcpt", "monobert", "cosine")
"""Words in systems, conditions and measures whose numbers come from a model. They may differ by `MODEL_TOLERANCE`."""
MODEL_TOLERANCE = 1e-5
"""Other batches of texts change the last digits of a vector."""


def read_values(folder: Path) -> dict[Key, Value]:
    """Return everything that commands wrote into a folder. The second value of a key gets the name "… #2"."""
    found: dict[Key, Value] = {}
    seen: Counter[Key] = Counter()
    readers = (_read_records, _read_pages, _read_tables, _read_labels, _read_datasets, _read_training, _read_prompts)
    for reader in readers:
        for key, value in reader(folder):
            seen[key] += 1
            found[key if seen[key] == 1 else key._replace(query=f"{key.query} #{seen[key]}")] = value
    return found


def _read_records(folder: Path) -> Iterator[Pair]:
    for file in sorted(folder.joinpath("results").rglob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(record, dict) and "system" in record:
            is_about_answers = "reader" in record or "answers" in record
            yield from _read_answers(_of_format_3(record)) if is_about_answers else _read_run(record, file)


def _read_run(record: Mapping[str, Any], file: Path) -> Iterator[Pair]:
    repeat = record.get("settings", {}).get("repeat", 0)
    key = Key("run", record["system"], condition=f"repeat {repeat}" if repeat else "", dataset=_dataset_name(record))
    for query, measures in {"mean": record["mean"], **record["per_query"]}.items():
        yield from ((key._replace(query=query, measure=name), value) for name, value in measures.items())
    for stage in record["stages"]:
        named = key._replace(kind="stage", query=f"{stage['stage']} {stage['name']}")
        for name in ("cost", "failures", "asked", "failure_kinds", "repairs"):
            yield from tree(stage[name], named, name) if name in stage else ()
        for query, ranks in stage.get("gold", {}).items():
            yield named._replace(measure=f"ranks of relevant documents, query {query}"), json.dumps(ranks)
    with gzip.open(file.with_name(record["run"]["file"]), "rt", encoding="utf-8") as lines:
        rankings: dict[str, list[tuple[str, float]]] = {}
        for query, _, document, _, score, _ in map(str.split, lines):
            rankings.setdefault(query, []).append((document, float(score)))
    for query, ranking in rankings.items():
        yield key._replace(kind="ranking", query=query, measure="documents and scores"), tuple(ranking)


def _of_format_3(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record of answers in the shape of the commit that is compared with."""
    if "reader" in record:
        return record
    answers, ranked = record["answers"], record["per_query"]
    retrieval = {query: value for query, values in ranked.items() for value in values.values()}
    return {**record, **answers, "reader_costs": answers["costs"], "retrieval": retrieval}


def _read_answers(record: Mapping[str, Any]) -> Iterator[Pair]:
    key = Key("answer", record["system"], record["reader"], dataset=_dataset_name(record))
    for condition, measures in record["mean"].items():
        named = key._replace(condition=f"{condition}, {record['form']}")
        for query, scores in {"mean": measures, **record["per_query"][condition]}.items():
            yield from tree(scores, named._replace(query=query))
        for name in ("statuses", "reader_costs"):
            yield from tree(record.get(name, {}).get(condition, {}), named, name)
    for name in ("retrieval", "judge"):
        yield from tree(record.get(name) or {}, key._replace(condition=record["form"]), name)


def _dataset_name(record: Mapping[str, Any]) -> str:
    return str(record["dataset"]["name"]).removeprefix("own/")


def _read_pages(folder: Path) -> Iterator[Pair]:
    """Read what commands printed as JSON. "compare, slices.json" is of the kind *compare*, the rest is a condition."""
    for file in sorted(folder.joinpath("printed").glob("*.json")):
        kind, _, variant = file.stem.partition(", ")
        yield from tree(json.loads(file.read_text(encoding="utf-8")), Key(kind, condition=variant))


def _read_tables(folder: Path) -> Iterator[Pair]:
    """Read the CSV files of analyses, and the tables of datasheets."""
    for file in sorted(folder.glob("analysis*/**/*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            yield from table(list(csv.DictReader(lines)), Key(f"table {file.stem}"))
    for file in sorted(folder.glob("*/**/README.md")):
        caption = ""
        for block in re.split(r"\n\s*\n", file.read_text(encoding="utf-8")):
            if block.startswith("| "):
                lines = (line.removeprefix("| ").removesuffix(" |").split(" | ") for line in block.strip().split("\n"))
                head, _, *rows = ([cell.strip() for cell in cells] for cells in lines)
                key = Key(f"table datasheet {caption}", condition=str(file.parent.relative_to(folder)))
                named = [dict(zip(_distinct(head), row, strict=True)) for row in rows]
                yield from table(named, key, [] if any(head) else _distinct(head)[:1])
            caption = block.strip("*# \n")[:60]


def _read_labels(folder: Path) -> Iterator[Pair]:
    """Read the labels of judges, and nuggets."""
    for file in sorted(folder.glob("labels/*.jsonl")):
        for row in _rows(file):
            yield from tree([row], Key(f"labels {file.stem}"))


def _read_datasets(folder: Path) -> Iterator[Pair]:
    """Read the datasets that `build` and `data import` wrote. Their texts are values, too."""
    for file in sorted(folder.glob("made/**/qrels.jsonl")):
        for part in ("corpus", "query", "qrels", "candidates", "rejected", "labels"):
            if (rows := file.with_name(f"{part}.jsonl")).exists():
                key = Key(f"dataset {part}", dataset=str(file.parent.relative_to(folder)))
                for row in _rows(rows):
                    named, rest = _named(row, key, DATASET_NAMES)
                    yield from tree(rest, named, with_texts=True)


def _read_training(folder: Path) -> Iterator[Pair]:
    """Read training sets. Their rows have no names, so their order counts."""
    for file in sorted(folder.glob("training*/**/*.jsonl")):
        key = Key(f"training {file.relative_to(folder)}")
        for place, row in enumerate(_rows(file), start=1):
            yield from tree(row, key._replace(query=f"row {place}"), with_texts=True)


def _read_prompts(folder: Path) -> Iterator[Pair]:
    """Read how many different prompts each command sent, and their digest."""
    for file in sorted(folder.joinpath("prompts").glob("*.json")):
        yield from tree(json.loads(file.read_text(encoding="utf-8")), Key(f"prompts {file.stem}"), with_texts=True)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def tree(value: Any, key: Key, measure: str = "", with_texts: bool = False) -> Iterator[Pair]:
    """Yield every value of a JSON tree. Rows with names are known by them, other rows by their place."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name in NOT_VALUES:
                continue
            if name in CONTAINERS and isinstance(part, dict):
                for own, below in part.items():
                    yield from tree(below, key._replace(**{CONTAINERS[name]: own}), measure or name, with_texts)
            elif not isinstance(part, str) or with_texts or name in TEXT_VALUES:
                yield from tree(part, key, f"{measure} {name}".strip(), with_texts)
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        for place, row in enumerate(value, start=1):
            if isinstance(row, dict):
                named, rest = _named(row, key)
                if named == key:
                    named = key._replace(query=f"{key.query} row {place}".strip())
                yield from tree(rest, named, measure, with_texts)
    elif isinstance(value, list):
        yield key._replace(measure=measure), json.dumps(value, ensure_ascii=False)
    else:
        yield key._replace(measure=measure), value


def table(rows: Sequence[Mapping[str, str]], key: Key, labels: Sequence[str] = ()) -> Iterator[Pair]:
    """Yield the values of a table: its columns of numbers. All other cells name their row, or those of `labels`."""
    columns = [name for name in (rows[0] if rows else ()) if name not in SENTENCES]
    labels = labels or [name for name in columns if _is_label(name, [row.get(name) or "" for row in rows])]
    for place, row in enumerate(rows, start=1):
        named, rest = _named(row, key, labels)
        named = named if labels else named._replace(query=f"row {place}")
        for name, cell in rest.items():
            if name not in SENTENCES:
                yield named._replace(measure=name), _number(cell or "")


def _is_label(name: str, cells: Sequence[str]) -> bool:
    if name in ROW_NAMES:
        return True
    return name not in TEXT_VALUES and not all(NUMBERS.fullmatch(cell) for cell in cells)


def _number(cell: str) -> Value:
    if cell in ("", "–"):
        return None
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return cell


def _named(row: Mapping[str, Any], key: Key, names: Sequence[str] = ROW_NAMES) -> tuple[Key, dict[str, Any]]:
    """Return the key of a row, and its values."""
    labels = {name: str(row[name]) for name in names if isinstance(row.get(name), str | int) and row[name] != ""}
    parts = {name: labels[name] for name in ("system", "reader", "condition", "dataset") if name in labels}
    if "a" in labels and "b" in labels:
        parts["system"] = f"{labels['a']} – {labels['b']}"
    others = [label for name, label in labels.items() if name not in (*parts, "a", "b")]
    if others:
        parts["query"] = " · ".join(filter(None, (key.query, *others)))
    return key._replace(**parts), {name: part for name, part in row.items() if name not in labels}


def _distinct(names: Iterable[str]) -> list[str]:
    """Return names of columns, with a number at those that come again."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name} {seen[name]}" if seen[name] > 1 else name)
    return found


@dataclass
class Comparison:
    """The keys of two sets of values."""

    equal: list[Key] = field(default_factory=list)
    differs: list[Key] = field(default_factory=list)
    gone: list[Key] = field(default_factory=list)
    new: list[Key] = field(default_factory=list)


def compare(before: Mapping[Key, Value], now: Mapping[Key, Value]) -> Comparison:
    """Compare two sets of values key by key."""
    found = Comparison(new=[key for key in now if key not in before])
    for key, value in before.items():
        if key not in now:
            found.gone.append(key)
        else:
            (found.equal if are_equal(key, value, now[key]) else found.differs).append(key)
    return found


def are_equal(key: Key, first: Value, second: Value) -> bool:
    """Return True if two values are equal; numbers of a model, within its tolerance. NaN is equal to NaN."""
    name = f"{key.system} {key.condition} {key.measure}"
    tolerance = MODEL_TOLERANCE if any(word in name for word in MODELS) else 0.0
    if isinstance(first, tuple) and isinstance(second, tuple):
        return _are_equal_rankings(first, second, tolerance)
    if isinstance(first, float | int) and isinstance(second, float | int):
        return repr(first) == repr(second) or abs(first - second) <= tolerance * max(1.0, abs(first))
    return type(first) is type(second) and first == second


def _are_equal_rankings(
    first: tuple[tuple[str, float], ...], second: tuple[tuple[str, float], ...], tolerance: float
) -> bool:
    """Return True for the same documents in the same order. Documents within the tolerance may change places."""
    if not tolerance or len(first) != len(second):
        return first == second
    scores = dict(second)
    return all(
        abs(score - other) <= tolerance * max(1.0, abs(score))
        and (document == there or abs(scores.get(document, other) - score) <= tolerance * max(1.0, abs(score)))
        for (document, score), (there, other) in zip(first, second, strict=True)
    )

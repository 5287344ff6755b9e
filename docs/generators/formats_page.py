"""docs/formats.md and docs/schemas/: the files that r2med reads and writes, with a JSON Schema for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter

from generators.markdown import NOTICE, code, field_tables, table
from r2med.assessment.audit.audit_findings import Audit
from r2med.assessment.review.reviews import Review
from r2med.construction.build_plan import PlanFile
from r2med.evaluation.records.answer_facts import GivenAnswer
from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.record import FORMATS as RECORD_FORMATS
from r2med.evaluation.records.record import Record
from r2med.publication.leaderboard.entry_verdicts import Verdicts
from r2med.publication.leaderboard.submission import FORMAT as ENTRY_FORMAT
from r2med.publication.leaderboard.submission import Entry
from r2med.publication.packs.pack_file import PackManifest
from r2med.systems.system.presets import Preset
from r2med.systems.system.suites import Suite

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ANSWER_DEFAULTS = tuple(name for name, field in GivenAnswer.model_fields.items() if not field.is_required())
CHECKSUM = {"description": "SHA-256 of the other fields as canonical JSON.", "type": "string"}


class Format(NamedTuple):
    """A file format of the page."""

    title: str
    text: str
    """Where such a file is, and what to know about it."""
    kind: type[Any] | None = None
    """The class that declares it; None for a schema that is written by hand in SCHEMAS."""
    more: Mapping[str, Any] = {}
    """Fields of the file that the class does not have."""
    left_out: tuple[str, ...] = ()
    """Fields of the class that the file need not have."""
    nested: bool = True
    """True if the page shows the classes within the class as well."""
    known: tuple[type[Any], ...] = ()
    """Classes within the class that another section shows."""


FORMATS = {
    "record": Format(
        "Record",
        "`results/DATASET/SYSTEM-KEY.json`: all that one system did on one dataset. "
        "`results/DATASET/SYSTEM__READER-KEY.answers.json`: how one reader answered from its results; the field "
        "`answers` has what it answered, and the answers themselves are in the file `….answers.jsonl` beside it. "
        "`r2med.Record.read(path)` reads both and checks the checksum.",
        Record,
        {"format": {"enum": sorted(RECORD_FORMATS.values()), "type": "integer"}, "checksum": CHECKSUM},
    ),
    "answers": Format(
        "Answers",
        "`results/DATASET/SYSTEM__READER-KEY.answers.jsonl`: one answer a line, as a JSON object. Fields with their "
        "default are left out.",
        GivenAnswer,
        left_out=ANSWER_DEFAULTS,
    ),
    "entry": Format(
        "Entry of a leaderboard",
        "What `r2med submit` writes and `r2med verify` checks ([leaderboards](leaderboard.md)). It holds "
        "[records](#record) of both kinds without texts and without anything of your machine.",
        Entry,
        {"format": {"const": ENTRY_FORMAT, "type": "integer"}, "checksum": CHECKSUM},
        left_out=("answers",),
        nested=False,
    ),
    "verdicts": Format(
        "Verdicts of entries",
        "What `r2med verify --verdicts FILE` writes and `r2med board --verdicts FILE` reads "
        "([leaderboards](leaderboard.md#check)).",
        Verdicts,
    ),
    "pack": Format(
        "Pack",
        "`manifest.json` in a `.r2pack` file, which is a plain zip ([passing on results](share.md)). Paths of parts: "
        "`results/…` as in a folder of results, `artefacts/KIND/KEY/FILE` as in the store, and `rows/FOLDER/NAME/…` "
        "with a line for each row (its key in hex, its value in Base64).",
        PackManifest,
    ),
    "lock": Format(
        "Lock",
        "What `r2med lock` writes, and `r2med run --lock` and `r2med compare --lock` keep to "
        "([deciding beforehand](paper.md#decide-beforehand)).",
        Lock,
        {"digest": {"description": "A digest of the other fields. Records carry it.", "type": "string"}},
    ),
    "audit": Format(
        "Audit",
        "What `r2med audit --format json` prints about a dataset ([audit](audit.md)).",
        Audit,
    ),
    "query": Format(
        "Queries of a dataset",
        "`query.jsonl` in the folder of a dataset: one JSON object a line ([data](data.md#folders)).",
    ),
    "corpus": Format("Documents of a dataset", "`corpus.jsonl`: one JSON object a line."),
    "qrels": Format("Judgements of a dataset", "`qrels.jsonl`: one JSON object a line."),
    "aspects": Format(
        "Aspects of answers",
        "`aspects.jsonl`: one JSON object a line ([aspects](aspects.md)). A dataset may have it.",
    ),
    "nuggets": Format(
        "Nuggets",
        "`nuggets.jsonl`: a line for each fact that an answer must contain ([nuggets](answer-scores.md#nuggets)).",
    ),
    "generated": Format(
        "Generated texts",
        "`results/DATASET/SYSTEM-KEY.generated.jsonl`: the texts that an expansion added to a query, a query a line.",
    ),
    "suite": Format(
        "Suite",
        "A TOML file for `r2med run --suite` ([suites](suites.md)).",
        Suite,
        left_out=("name",),
    ),
    "preset": Format(
        "Preset",
        "A TOML file in a folder `systems/` of a plugin: a named pipeline ([the reasoner](expansion.md#the-reasoner)).",
        Preset,
        left_out=("name",),
    ),
    "plan": Format(
        "Plan of a build", "A TOML file for `r2med build run` ([building a benchmark](build.md)).", PlanFile
    ),
    "review": Format(
        "Review of a candidate",
        "A row of the reviews of a build, in Python, CSV and JSON ([review](review.md)).",
        Review,
    ),
}
"""Name of the schema -> the format."""

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "query": {
        "required": ["id", "text"],
        "properties": {
            "id": {"type": "string", "description": "The id of the query. It may equal the id of a document."},
            "text": {"type": "string", "description": "The query."},
            "answer": {"type": ["string", "null"], "description": "The answer, for analyses. No retriever sees it."},
            "body_system": {"type": ["string", "null"], "description": "The body system, to group scores."},
            "excluded_ids": {
                "type": ["array", "null"],
                "items": {"type": "string"},
                "description": "Documents that are left out of the results, unless they are judged relevant.",
            },
            "options": {
                "type": ["array", "object", "null"],
                "description": "Options of a multiple-choice question: texts, or letter -> text. One is the answer.",
            },
        },
    },
    "corpus": {
        "required": ["id", "text"],
        "properties": {
            "id": {
                "type": "string",
                "description": "The id of the document. If rows share an id, the last one counts.",
            },
            "text": {"type": "string", "description": "The document."},
            "title": {"type": ["string", "null"], "description": "A title. It is joined to the text with a space."},
        },
    },
    "qrels": {
        "required": ["q_id", "p_id", "score"],
        "properties": {
            "q_id": {"type": "string", "description": "The id of the query."},
            "p_id": {"type": "string", "description": "The id of the document."},
            "score": {"type": "number", "multipleOf": 1, "description": "The grade. Above 0 means relevant."},
        },
    },
    "aspects": {
        "required": ["query", "aspect", "documents"],
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "The id of the query."},
            "aspect": {"type": "string", "minLength": 1, "description": "The name of the aspect, unique in its query."},
            "weight": {
                "type": ["number", "null"],
                "exclusiveMinimum": 0,
                "description": "The importance of the aspect. 1 if it is missing.",
            },
            "documents": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "description": "The relevant documents that support the aspect. A document may support several.",
            },
        },
    },
    "nuggets": {
        "required": ["query", "nugget", "text", "vital"],
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "The id of the query."},
            "nugget": {"type": "string", "minLength": 1, "description": "The id of the nugget, unique in its query."},
            "text": {"type": "string", "minLength": 1, "description": "The fact, in one sentence."},
            "vital": {"type": "boolean", "description": "True if an answer without the fact is not good."},
            "by": {"type": ["string", "null"], "description": "The LLM or the person that wrote it."},
            "reviewed": {"type": ["boolean", "null"], "description": "True if people checked it."},
        },
    },
    "generated": {
        "required": ["id", "texts"],
        "properties": {
            "id": {"type": "string", "description": "The id of the query."},
            "texts": {"type": "array", "items": {"type": "string"}, "description": "The generated texts."},
        },
    },
}
"""Schemas of formats that no class declares; tests/test_docs.py validates real files against all schemas."""

HEAD = """# File formats

Every format has a JSON Schema in `docs/schemas/`. The schema of a TOML file describes the values in it. Files that
r2med wrote state their format as a number. A file of another format is refused in one line, with the command that
makes it again.
"""

RUNS = """
## Run

`results/DATASET/SYSTEM-KEY.trec.gz`: the ranking of a record in TREC's six columns, packed with gzip: query, `Q0`,
document, rank, score, tag. White space in ids is percent-encoded. Any TREC run can be read: `r2med score`,
`run:FILE` in a system, `r2med.Run.read(path)`.
"""


def page() -> str:
    """Return the page."""
    return "".join((HEAD, "\n", _overview(), *(_section(name, each) for name, each in FORMATS.items()), RUNS, NOTICE))


def _overview() -> str:
    """Return the table of all formats, each with the first sentence of its section."""
    sections = [(each.title, each.text) for each in FORMATS.values()] + [("Run", RUNS.partition("\n\n")[2])]
    rows = [(f"[{title}](#{title.lower().replace(' ', '-')})", _first_sentence(text)) for title, text in sections]
    return table(("format", "what it is"), rows)


def _first_sentence(text: str) -> str:
    return text.replace("\n", " ").partition(". ")[0].rstrip(".")


def schemas() -> dict[str, str]:
    """Return the JSON Schemas: name -> text of the file."""
    return {name: json.dumps(_schema(name), indent=2, ensure_ascii=False) + "\n" for name in FORMATS}


def _section(name: str, each: Format) -> str:
    title = f"\n## {each.title}\n\n{each.text} Schema: [`{name}.json`](schemas/{name}.json).\n"
    if each.kind is not None:
        declared = getattr(each.kind, "model_fields", {})
        added = {field: fact for field, fact in each.more.items() if field not in declared}
        more = "".join(f"\nThe file also has `{field}`: {_meaning(fact)}\n" for field, fact in added.items())
        return title + "".join(field_tables(each.kind, "", nested=each.nested, known=each.known)) + more
    facts = _schema(name)
    rows = [
        (code(field), code(_type(fact)), "yes" if field in facts["required"] else "", fact["description"])
        for field, fact in facts["properties"].items()
    ]
    return title + "\n" + table(("field", "type", "needed", "meaning"), rows)


def _meaning(fact: Mapping[str, Any]) -> str:
    return str(fact.get("description") or f"always {fact['const']}.")


def _type(fact: Mapping[str, Any]) -> str:
    kinds = fact["type"] if isinstance(fact["type"], list) else [fact["type"]]
    return " or ".join(kinds)


def _schema(name: str) -> dict[str, Any]:
    each = FORMATS[name]
    if each.kind is None:
        return {"$schema": DRAFT, "title": each.title, "type": "object", **SCHEMAS[name]}
    if issubclass(each.kind, BaseModel):
        schema = each.kind.model_json_schema()
    else:
        schema = TypeAdapter(each.kind).json_schema()
    schema["properties"] = {**schema["properties"], **each.more}
    required = [*schema.get("required", []), *each.more]
    schema["required"] = [field for field in required if field not in each.left_out]
    return {"$schema": DRAFT, **schema}

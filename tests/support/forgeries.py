"""Forgeries of entries: edits of an honest entry and its files, with every hash, key and mean made right again.

`forgeries(case)` yields the name and the edit of each. An edit gets a copy of the honest case and changes it.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.assessment.answers.answer_controls import OTHER, REFERENCE
from r2med.assessment.answers.answer_scores import rule_verdict, scores_of
from r2med.assessment.answers.searched_answers import searching_means
from r2med.data.benchmark_names import source_of
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import nuggets_of
from r2med.evaluation.records.answer_record import GivenAnswer, answer_key
from r2med.evaluation.records.answer_words import READ_CONDITIONS
from r2med.evaluation.records.record import record_key
from r2med.foundation.store import digest
from r2med.publication.leaderboard.submitted_answers import failed_scores, means_of

OPEN, CHOICE = 0, 1
"""Numbers of the answer records of the honest entry."""
BM25, HYDE = 0, 1
"""Numbers of its records."""


@dataclass
class Case:
    """An entry and the files beside it, by name."""

    body: dict[str, Any]
    files: dict[str, bytes]
    dataset: Dataset

    def copied(self) -> Case:
        """Return a case that can be changed."""
        return Case(copy.deepcopy(self.body), dict(self.files), self.dataset)

    def write(self, entry: Path, runs: Path) -> None:
        """Write the entry with its checksum, and its files."""
        body = {name: part for name, part in self.body.items() if name != "checksum"}
        entry.write_text(json.dumps({**body, "checksum": digest(body)}))
        for name, content in self.files.items():
            (runs / name).write_bytes(content)

    def record(self, number: int = BM25) -> Any:
        """Return a record of the entry."""
        return self.body["records"][number]

    def answers(self, number: int = OPEN) -> Any:
        """Return an answer record of the entry."""
        return self.body["answers"][number]

    def rekeyed(self, number: int = BM25) -> None:
        """Make the key of a record that of its settings."""
        record = self.record(number)
        record["key"] = record_key(record["settings"], record["dataset"]["fingerprint"])

    def rekeyed_answers(self, number: int = OPEN) -> None:
        """Make the key of an answer record that of its settings."""
        record = self.answers(number)
        record["key"] = answer_key(record["settings"], record["dataset"]["fingerprint"])

    def run(self, number: int = BM25) -> list[str]:
        """Return the lines of the run of a record."""
        content = gzip.decompress(self.files[f"{self.record(number)['run']['sha256']}.gz"])
        return content.decode().splitlines()

    def give_run(self, lines: list[str] | bytes, number: int = BM25, level: int = 9) -> None:
        """Put other lines into the run of a record."""
        content = lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode()
        packed = gzip.compress(content, level, mtime=0)
        self.record(number)["run"]["sha256"] = sha = hashlib.sha256(packed).hexdigest()
        self.files[f"{sha}.gz"] = packed

    def given(self, number: int = OPEN) -> list[dict[str, Any]]:
        """Return the answers of an answer record."""
        file = self.files[f"{self.answers(number)['answers']['sha256']}.answers.jsonl"]
        return [GivenAnswer(**json.loads(line)).model_dump(mode="json") for line in file.splitlines()]

    def give(self, rows: list[dict[str, Any]], number: int = OPEN, scored: bool = True) -> None:
        """Put other answers into an answer record, with the scores, means and counts that they give."""
        record = self.answers(number)
        made = [GivenAnswer(**row) for row in rows]
        made = [self._rescored(each, record) for each in made] if scored else made
        lines = "".join(json.dumps(each.model_dump(mode="json", exclude_defaults=True)) + "\n" for each in made)
        record["answers"]["sha256"] = sha = hashlib.sha256(lines.encode()).hexdigest()
        self.files[f"{sha}.answers.jsonl"] = lines.encode()
        conditions = list(dict.fromkeys(each.condition for each in made))
        per_query = {
            condition: {each.query: dict(each.scores) for each in made if each.condition == condition}
            for condition in conditions
        }
        for each in made:
            if each.status == "failed":
                measures = {name for scores in per_query[each.condition].values() for name in scores}
                per_query[each.condition][each.query] = failed_scores(measures)
        record["per_query"] = per_query
        record["mean"] = {condition: means_of(rows) for condition, rows in per_query.items()}
        record["statuses"] = {
            condition: dict(Counter(each.status for each in made if each.condition == condition))
            for condition in conditions
        }
        record["reader_costs"] = {each: cost for each, cost in record["reader_costs"].items() if each in conditions}
        asked = {each.query for each in made}
        for part in ("queries", "retrieval"):
            record[part] = {query: value for query, value in record[part].items() if query in asked}
        if record["judge"]:
            both = [each for each in made if None not in (each.by_rule, each.by_judge) and each.status == "answered"]
            agreed = sum(each.by_rule == each.by_judge for each in both)
            record["judge"] |= {"both": len(both), "agreed": agreed}

    def _rescored(self, answer: GivenAnswer, record: Any) -> GivenAnswer:
        reference = next((query.answer for query in self.dataset.queries if query.id == answer.query), "")
        known = nuggets_of(self.dataset) if record["nuggets"] else None
        mine = known.by_query.get(answer.query, ()) if known else ()
        grades = self.dataset.qrels.get(answer.query, {})
        answer = answer.model_copy(update={"by_rule": rule_verdict(answer, reference)})
        return answer.model_copy(update={"scores": scores_of(answer, mine, grades, judged=bool(record["judge"]))})


Edit = Callable[[Case], object]


def forgeries(honest: Case) -> Iterator[tuple[str, Edit]]:
    """Yield the name and the edit of each forgery."""
    yield from _facts()
    # Whatever an edit does not need is left out, so that there is less to verify.
    for part in (_scores(honest), _settings(), _runs(), _locks()):
        yield from ((name, _after(lambda case: case.body.update(answers=[]), edit)) for name, edit in part)
    for part in (_answer_records(honest), _given(honest)):
        yield from ((name, _after(lambda case: _only(case, OPEN), edit)) for name, edit in part)
    yield from _choices()


def _after(first: Edit, then: Edit) -> Edit:
    def edit(case: Case) -> None:
        first(case)
        then(case)

    return edit


def _only(case: Case, number: int) -> None:
    case.body |= {"records": [case.record(BM25)], "answers": [case.answers(number)]}


def _scores(honest: Case) -> Iterator[tuple[str, Edit]]:
    """Raise or lower one measure, in a query and in the mean."""

    def changed(measure: str, to: float) -> Edit:
        def edit(case: Case) -> None:
            rows = case.record()["per_query"]
            query = next(query for query, values in rows.items() if values[measure] != to)
            rows[query][measure] = to
            case.record()["mean"][measure] = means_of(rows)[measure]

        return edit

    for measure, mean in honest.record()["mean"].items():
        if mean < 1:
            yield f"{measure} raised", changed(measure, 1.0)
        if mean > 0 and measure.endswith("10"):
            yield f"{measure} lowered", changed(measure, 0.0)

    def dropped(case: Case) -> None:
        record = case.record()
        worst = min(record["per_query"], key=lambda query: record["per_query"][query]["nDCG@10"])
        for part in ("per_query", "queries"):
            del record[part][worst]
        record["mean"] = means_of(record["per_query"])

    def ranks(case: Case) -> None:
        gold = case.record()["stages"][-1]["gold"]
        for found in gold.values():
            found.update(dict.fromkeys(found, 1))

    yield "the worst query left out", dropped
    yield "better ranks of relevant documents", ranks
    yield "no ranks", lambda case: case.record()["stages"][-1]["gold"].clear()


def _facts() -> Iterator[tuple[str, Edit]]:
    """State other facts about the dataset and its queries, with a key that fits."""
    changes: dict[str, Any] = {
        "fingerprint": "f" * 32,
        "corpus_fingerprint": "f" * 32,
        "queries": 9,
        "documents": 10**6,
        "judged_queries": 7,
        "task": "another",
        "scenario": "another",
        "source": "R2MED/Biology@1",
        "judges": ["gpt"],
        "overlays": [{"name": "x", "digest": "0" * 32, "labels": 3}],
        "name": "Medical-Sciences",
    }

    def changed(field: str, value: Any, of_answers: bool) -> Edit:
        def edit(case: Case) -> None:
            part = case.answers() if of_answers else case.record()
            part["dataset"][field] = value
            case.rekeyed_answers() if of_answers else case.rekeyed()

        return edit

    for of_answers in (False, True):
        kind = "answers" if of_answers else "record"
        for field, value in changes.items():
            yield f"{kind}: {field} of the dataset", changed(field, value, of_answers)
        for name in ("demo/Biology", "own/Biology", "../../etc", "irds:beir/scifact"):
            yield f"{kind}: on {name}", changed("name", name, of_answers)

    def renamed(case: Case) -> None:
        for part in (*case.body["records"], *case.body["answers"]):
            part["dataset"] |= {"name": "Medical-Sciences", "source": source_of("Medical-Sciences")}

    yield "the demo renamed to the benchmark", renamed
    for field, value in (("words", 3), ("positives", 99), ("body_system", "Nervous")):
        yield (
            f"record: {field} of a query",
            lambda case, field=field, value=value: next(iter(case.record()["queries"].values())).update({field: value}),
        )
        yield (
            f"answers: {field} of a query",
            lambda case, field=field, value=value: next(iter(case.answers()["queries"].values())).update(
                {field: value}
            ),
        )


def _settings() -> Iterator[tuple[str, Edit]]:
    """State another system: settings, names, stages and keys that do not belong together."""

    def setting(change: Callable[[Any], object], number: int = BM25, key: bool = True) -> Edit:
        def edit(case: Case) -> None:
            change(case.record(number)["settings"])
            if key:
                case.rekeyed(number)

        return edit

    yield "the name of another system", lambda case: case.record().update(name="bm25(k1=2.0)")
    yield "a name that no run gives", lambda case: case.record().update(name="ours (verified)")
    yield "another k", setting(lambda settings: settings.update(k=10))
    yield "another k1", setting(lambda settings: settings["retrieve"].update(k1=1.5))
    yield "another scorer", setting(lambda settings: settings["retrieve"].update(scorer="lucene"))
    yield "settings of a model", setting(lambda settings: settings.update(retrieve={"stage": "bge"}))
    yield "an expansion in the settings", setting(lambda s: s.update(expand={"stage": "hyde", "llm": "gpt4"}))
    yield "a reranker in the settings", setting(lambda settings: settings.update(rerank=[{"stage": "monobert"}]))
    yield "no expansion in the settings", setting(lambda settings: settings.update(expand=None), HYDE)
    yield "another LLM in the settings", setting(lambda settings: settings["expand"].update(llm="gpt4"), HYDE)
    yield "settings without their key", setting(lambda settings: settings.update(note="x"), key=False)
    yield "a setting of one's own", setting(lambda settings: settings.update(verified="by the authors"), HYDE)
    yield "the key of another record", lambda case: case.record().update(key=case.record(HYDE)["key"])
    yield "recorded removed", setting(lambda settings: settings["expand"].pop("source"), HYDE)
    yield "recorded called generated", setting(lambda settings: settings["expand"].update(source="generated"), HYDE)

    def with_calls(case: Case) -> None:
        case.record(HYDE)["settings"]["expand"].update(source="generated")
        case.record(HYDE)["stages"][0]["cost"].update(calls=8, prompt_tokens=100)
        case.rekeyed(HYDE)

    yield "recorded called generated, with invented calls", with_calls
    for part, told in {
        "failure_kinds": {"the best system of all": 1},
        "repairs": {"the best system of all": 1},
        "failed": {"0": "1 empty, the best system of all"},
    }.items():
        text = {part: told}
        yield f"a sentence in {part}", lambda case, t=text: case.record()["stages"][0].update(t)
    unknown = {"failed": {"the best system of all": "1 empty"}}
    yield "a sentence as a failed query", lambda case: case.record()["stages"][0].update(unknown)

    def named(name: str, stages: bool, settings: bool) -> Edit:
        def edit(case: Case) -> None:
            record = case.record()
            record["system"], record["lock"] = name, ""
            if stages:
                record["stages"][0]["name"] = name
            if settings:
                record["settings"]["retrieve"] = {"stage": name}
                case.rekeyed()

        return edit

    for name in ("bge", "path:mine", "hyde(gpt4) → bm25"):
        yield f"called {name}", named(name, stages=False, settings=False)
        yield f"called {name}, and its stage", named(name, stages=True, settings=False)
    for name in ("bm2５", "bm25\u3164", "bm25\u0301", "b\u039c25", "bm25 (ward)", "bm25 (not verified)"):
        yield f"called {name!a}, with its settings", named(name, stages=True, settings=True)
    yield "called bge, without its settings", named("bge", stages=False, settings=True)
    yield "a stage less", lambda case: case.record(HYDE)["stages"].pop(0)
    yield "a stage more", lambda case: case.record()["stages"].insert(0, dict(case.record(HYDE)["stages"][0]))
    yield "a stage of another kind", lambda case: case.record()["stages"][0].update(stage="rerank")
    yield "a stage of another name", lambda case: case.record()["stages"][0].update(name="bge")
    yield "seeds", lambda case: case.record().update(seeds={"expand": 1})
    yield "made in the future", lambda case: case.record().update(created="2999-01-01T00:00:00+00:00")
    yield "made never", lambda case: case.record().update(created="tomorrow")
    yield "a negative cost", lambda case: case.record()["stages"][0]["cost"].update(dollars=-1)
    yield "an old format", lambda case: case.record().update(format=1)
    yield "an invisible name", lambda case: case.record().update(system="bm\u200b25")
    yield "a record twice", lambda case: case.body["records"].append(case.record())
    yield "an unknown field", lambda case: case.record().update(verified=True)
    yield "a verdict in the entry", lambda case: case.body.update(verdict="matches")

    def stolen(change: Callable[[list[str]], list[str]], level: int = 1) -> Edit:
        def edit(case: Case) -> None:
            thief = copy.deepcopy(case.record())
            thief |= {"system": "path:mine", "lock": ""}
            thief["stages"][0]["name"] = "path:mine"
            thief["settings"]["retrieve"] = {"stage": "path:mine"}
            case.body["records"].append(thief)
            case.rekeyed(-1)
            case.give_run(change(case.run(-1)), -1, level)

        return edit

    def doubled(lines: list[str]) -> list[str]:
        columns = [line.split(" ") for line in lines]
        return [" ".join([*each[:4], str(2 * float(each[4])), each[5]]) for each in columns]

    yield "the same run under another name", stolen(lambda lines: lines)
    yield "the same run under another name, packed again", stolen(lambda lines: lines, level=5)
    yield "the same run under another name, scores doubled", stolen(doubled)
    yield "the same run under another name, another tag", stolen(lambda lines: [f"{line}x" for line in lines])


def _runs() -> Iterator[tuple[str, Edit]]:
    """Submit another run, or one that other tools would read differently."""

    def lines(change: Callable[[list[str]], list[str]]) -> Edit:
        return lambda case: case.give_run(change(case.run()))

    def first(old: str, new: Callable[[list[str]], list[str]]) -> Edit:
        return lines(lambda run: [" ".join(new(run[0].split(" "))), *run[1:]])

    yield "a run without its hash", lambda case: case.record()["run"].update(sha256="0" * 64)
    yield "another depth", lambda case: case.record()["run"].update(depth=10)
    yield "a path as run", lambda case: case.record()["run"].update(file="../x.trec.gz")
    yield "another file beside", lambda case: case.record().update(traces={"file": "x", "sha256": "0" * 64})
    yield "a run of another system", lambda case: case.record().update(run=dict(case.record(HYDE)["run"]))
    yield "a run without its first line", lines(lambda run: run[1:])
    yield "an infinite score", first("score", lambda cells: [*cells[:4], "inf", cells[5]])
    yield "a score too large", first("score", lambda cells: [*cells[:4], "1e400", cells[5]])
    yield "a score that is no number", first("score", lambda cells: [*cells[:4], "nan", cells[5]])
    yield "a score in other digits", first("score", lambda cells: [*cells[:4], "９９", cells[5]])
    yield "a score with a sign", first("score", lambda cells: [*cells[:4], f"+{cells[4]}", cells[5]])
    yield "another rank", first("rank", lambda cells: [*cells[:3], "7", *cells[4:]])
    yield "another second column", first("Q0", lambda cells: [cells[0], "Q1", *cells[2:]])
    yield "an unknown document", first("document", lambda cells: [*cells[:2], "elsewhere", *cells[3:]])
    yield "an unknown query", first("query", lambda cells: ["elsewhere", *cells[1:]])
    yield "a document twice", lines(lambda run: [run[0], *run])
    yield "a mark of byte order", lambda case: case.give_run(b"\xef\xbb\xbf" + "\n".join(case.run()).encode() + b"\n")
    yield "other ends of lines", lambda case: case.give_run("\r\n".join(case.run()).encode() + b"\r\n")
    yield "more spaces", lines(lambda run: [run[0].replace(" ", "  "), *run[1:]])
    yield "no last end of line", lambda case: case.give_run("\n".join(case.run()).encode())
    yield "two lines in another order", lines(lambda run: [run[1], run[0], *run[2:]])
    yield "an empty run", lambda case: case.give_run([])
    yield "a file that is no run", lambda case: case.give_run(b"\x00\x01")


def _locks() -> Iterator[tuple[str, Edit]]:
    """Claim that an evaluation was decided beforehand."""

    def locked(change: Callable[[dict[str, Any]], object]) -> Edit:
        def edit(case: Case) -> None:
            body = json.loads(case.files["plan.lock"])
            del body["digest"]
            change(body)
            case.record()["lock"] = sha = digest(body)
            case.files["plan.lock"] = json.dumps({**body, "digest": sha}).encode()

        return edit

    yield "any text as lock", lambda case: case.record().update(lock="yes")
    yield "a lock that is not there", lambda case: case.record().update(lock="0" * 32)
    yield "the lock of another record", lambda case: case.record(HYDE).update(lock=case.record()["lock"])
    yield "a lock without its file", lambda case: case.files.pop("plan.lock")
    yield (
        "an edited lock",
        lambda case: case.files.update({"plan.lock": case.files["plan.lock"].replace(b"lucene-english", b"lucene")}),
    )
    yield "a lock made after the results", locked(lambda body: body.update(created="2999-01-01T00:00:00+00:00"))
    yield "a lock made on no day", locked(lambda body: body.update(created="0000"))
    yield "a lock of no measure", locked(lambda body: body.update(measure="nDCG@11"))
    yield "a lock of another k", locked(lambda body: body.update(k=10))
    yield "a lock with a pair of other systems", locked(lambda body: body.update(pairs=[["bm25", "bge"]]))
    yield "a lock with another baseline", locked(lambda body: body.update(baseline="bge"))
    yield "a lock without settings", locked(lambda body: body["settings"].clear())
    yield "a lock of another dataset", locked(lambda body: body["datasets"].update({"demo/Medical-Sciences": "0" * 32}))
    yield (
        "a lock of other settings",
        locked(lambda body: body["settings"]["bm25"]["demo/Medical-Sciences"].update(k=5)),
    )


def _answer_records(honest: Case) -> Iterator[tuple[str, Edit]]:
    """Change the record of answers, and leave the answers as they are."""

    def setting(name: str, value: Any, key: bool = True) -> Edit:
        def edit(case: Case) -> None:
            case.answers()["settings"][name] = value
            if key:
                case.rekeyed_answers()

        return edit

    for name, value in (
        ("reader", {"llm": "gpt4"}),
        ("form", "choice"),
        ("passages", 5),
        ("conditions", ["retrieved"]),
        ("queries", 3),
        ("queries", -1),
        ("queries", "all"),
        ("judge", {"llm": "o3-mini"}),
        ("judge", ""),
        ("nuggets", ""),
        ("retrieval", "0" * 32),
    ):
        yield f"answers: {name} {value!r} in the settings", setting(name, value)
    yield "answers: a setting of one's own", setting("verified", "by the authors")
    yield "answers: settings without their key", setting("note", 1, key=False)
    yield "answers: the key of another record", lambda case: case.answers().update(key="0" * 32)
    for field, other in (
        ("reader", "gpt4"),
        ("system", "bge"),
        ("form", "choice"),
        ("passages", 5),
        ("nuggets", ""),
        ("created", "2999-01-01T00:00:00+00:00"),
        ("judge", None),
        ("answers", None),
        ("format", 9),
        ("notes", "x"),
    ):
        yield f"answers: another {field}", lambda case, f=field, o=other: case.answers().update({f: o})
    yield "answers: without their hash", lambda case: case.answers()["answers"].update(sha256="0" * 64)
    yield "answers: nDCG@10 of a query", lambda case: case.answers()["retrieval"].update({"0": 1.0})
    yield "answers: nDCG@10 of nothing", lambda case: case.answers()["retrieval"].clear()
    judges: dict[str, dict[str, Any]] = {
        "all controls wrong": {"controls": {REFERENCE: [0, 20], OTHER: [0, 20]}},
        "no controls": {"controls": {}},
        "controls of one kind are wrong": {"controls": {REFERENCE: [20, 20], OTHER: [9, 20]}},
        "controls that a coin passes": {"controls": {REFERENCE: [14, 20], OTHER: [14, 20]}},
        "controls of one sign": {"controls": {REFERENCE: [40, 40]}},
        "few controls to say no to": {"controls": {REFERENCE: [30, 30], OTHER: [1, 1]}},
        "more controls than there are": {"controls": {REFERENCE: [60, 60], OTHER: [60, 60]}},
        "too few controls": {"controls": {REFERENCE: [9, 9], OTHER: [9, 9]}},
        "more right than asked": {"controls": {REFERENCE: [21, 20], OTHER: [20, 20]}},
        "not tested, with controls": {"trust": "not tested"},
        "invented controls": {"controls": {"easy ones": [20, 20]}},
        "the reader as judge": {"judge": "smollm2"},
        "another judge": {"judge": "o3-mini"},
        "agreement": {"agreed": 99, "both": 99},
    }
    for name, change in judges.items():
        yield f"judge: {name}", lambda case, change=change: case.answers()["judge"].update(change)

    def own_judge(case: Case) -> None:
        case.answers()["judge"].update(judge="smollm2")
        setting("judge", {"llm": "smollm2"})(case)

    yield "judge: the reader itself, in the settings too", own_judge

    def score(measure: str, condition: str) -> Edit:
        def edit(case: Case) -> None:
            record = case.answers()
            rows = record["per_query"][condition]
            query = next(query for query, values in rows.items() if values.get(measure) not in (None, 1.0))
            rows[query][measure] = 1.0
            record["mean"][condition] = means_of(rows)

        return edit

    record = honest.answers()
    for condition in READ_CONDITIONS:
        for measure, mean in record["mean"][condition].items():
            if mean < 1:
                yield f"answers: {measure} of {condition} in the record", score(measure, condition)
        yield (
            f"answers: counts of {condition}",
            lambda case, condition=condition: case.answers()["statuses"].update({condition: {"refused": 8}}),
        )


def _given(honest: Case) -> Iterator[tuple[str, Edit]]:
    """Change what was answered, with all scores, means and counts made right."""

    def rows(change: Callable[[dict[str, Any]], object], condition: str, count: int = 1, scored: bool = True) -> Edit:
        def edit(case: Case) -> None:
            given = case.given()
            for row in [each for each in given if each["condition"] == condition][:count]:
                change(row)
            case.give(given, scored=scored)

        return edit

    def twins(case: Case) -> None:
        record = case.answers()
        file = case.files[f"{record['answers']['sha256']}.answers.jsonl"]
        lines = file.replace(b'"text": ', b'"text": "another answer", "text": ', 1)
        record["answers"]["sha256"] = sha = hashlib.sha256(lines).hexdigest()
        case.files[f"{sha}.answers.jsonl"] = lines

    yield "a key twice in the file of answers", twins
    for condition in READ_CONDITIONS:
        for status in ("refused", "other language", "copied", "cut off", "unreadable", "failed"):
            update = {"status": status}
            yield f"{condition}: called {status}", rows(lambda row, u=update: row.update(u), condition, 9)
        yield f"{condition}: another text", rows(lambda row: row.update(text="It is gout."), condition)
        yield f"{condition}: a refusal called an answer", rows(_refusal, condition)
        yield f"{condition}: right by the rule", rows(_right, condition, scored=False)
        yield f"{condition}: citations removed", rows(lambda row: row.update(sentences=[]), condition)
        yield f"{condition}: a cited document that was not read", rows(_cite, condition)
        yield f"{condition}: passages that do not exist", rows(lambda row: row.update(read=["nowhere"]), condition)
        yield f"{condition}: more statements", rows(lambda row: row.update(statements=9, statements_found=9), condition)
        yield f"{condition}: other nuggets", rows(lambda row: row.update(nuggets={"x": "support"}), condition)
        yield f"{condition}: an option", rows(lambda row: row.update(options=["a", "b"], choice=0), condition)
        if condition != "closed book":
            yield f"{condition}: read nothing", rows(lambda row: row.update(read=[], sentences=[]), condition, 9)
            yield f"{condition}: read nothing, all cut", rows(lambda row: row.update(read=[], cut=3), condition)
            yield (
                f"{condition}: read the first passage only",
                rows(lambda row: row.update(read=row["read"][:1]), condition, 9),
            )
            yield (
                f"{condition}: read in another order",
                rows(lambda row: row.update(read=row["read"][::-1]), condition, 9),
            )

    relevant = {each["query"]: each["read"] for each in honest.given() if each["condition"] == "relevant"}
    drawn = {each["query"]: each["read"] for each in honest.given() if each["condition"] == "random"}
    for condition, read in (
        ("closed book", relevant),
        ("retrieved", relevant),
        ("random", relevant),
        ("relevant", drawn),
    ):
        yield (
            f"{condition}: passages of another condition",
            rows(lambda row, read=read: row.update(read=read[row["query"]]), condition, 9),
        )

    def picked(limit: int | None) -> Edit:
        def edit(case: Case) -> None:
            given = case.given()
            right = [
                row["query"] for row in given if row["condition"] == "retrieved" and row["scores"]["accuracy"] == 1
            ]
            if limit is not None:
                case.answers()["settings"]["queries"] = len(right)
                case.rekeyed_answers()
            case.give([row for row in given if row["query"] in right])

        return edit

    yield "questions picked by hand", picked(None)
    yield "questions picked by hand, and their number in the settings", picked(3)

    def failed(case: Case) -> None:
        given = case.given()
        wrong = [row for row in given if row["condition"] == "retrieved" and row["scores"]["accuracy"] == 0]
        for row in wrong:
            row.update(status="failed", failure="timeout", text="", sentences=[], nuggets={}, statements=0)
            row.update(statements_found=0, by_judge=None, why="")
        case.give(given)
        rows = case.answers()["per_query"]["retrieved"]
        for row in wrong:
            rows[row["query"]] = {}
        case.answers()["mean"]["retrieved"] = means_of(rows)

    yield "wrong answers called failed, without a score", failed

    def without(condition: str) -> Edit:
        return lambda case: case.give([row for row in case.given() if row["condition"] != condition])

    for condition in READ_CONDITIONS:
        yield f"the condition {condition} left out", without(condition)
    yield "an answer twice", lambda case: case.give([*case.given(), case.given()[0]])
    yield "an answer less", lambda case: case.give(case.given()[1:])

    def stolen(case: Case) -> None:
        thief = copy.deepcopy(case.answers())
        thief["reader"] = "qwen-7b"
        thief["settings"]["reader"] = {"llm": "qwen-7b"}
        case.body["answers"].append(thief)
        case.rekeyed_answers(-1)

    yield "the same answers of another reader", stolen


def _refusal(row: dict[str, Any]) -> None:
    text = "I cannot answer this."
    sentence = {"text": text, "documents": [], "unknown": 0, "supported": None}
    row.update(text=text, sentences=[sentence], nuggets={}, statements=0, statements_found=0)


def _right(row: dict[str, Any]) -> None:
    row.update(by_rule=not row["by_rule"], scores={**row["scores"], "accuracy": 1 - row["scores"]["accuracy"]})


def _cite(row: dict[str, Any]) -> None:
    row["sentences"][0]["documents"] = ["another"]


def _choices() -> Iterator[tuple[str, Edit]]:
    """Make a choice easier, or choose again."""

    def rows(change: Callable[[dict[str, Any]], object], scored: bool = True) -> Edit:
        def edit(case: Case) -> None:
            given = case.given(CHOICE)
            for row in given:
                change(row)
            case.give(given, CHOICE, scored)

        return edit

    yield "choice: other options", rows(lambda row: row.update(options=[row["text"], "a tree"], choice=0))
    yield "choice: an option less", rows(lambda row: row.update(options=row["options"][:-1]))
    yield "choice: options in another order", rows(lambda row: row.update(options=row["options"][::-1]))
    yield "choice: another option than its text", rows(lambda row: row.update(choice=(row["choice"] + 1) % 2))
    yield "choice: an option that does not exist", rows(lambda row: row.update(choice=99), scored=False)
    yield "choice: none", rows(lambda row: row.update(choice=None))
    yield "choice: called refused", rows(lambda row: row.update(status="refused"))
    yield "choice: a verdict of a judge", rows(lambda row: row.update(by_judge=True))
    yield "choice: no options", rows(lambda row: row.update(options=[], choice=None))


def searched_forgeries() -> Iterator[tuple[str, Edit]]:
    """Yield forgeries of an entry with the answers of an agent: of its answers, and of its conversations.

    All scores, means, counts and digests are made right.
    """

    def row(change: Callable[[dict[str, Any]], object], query: str = "finder") -> Edit:
        def edit(case: Case) -> None:
            given = case.given()
            change(next(each for each in given if each["query"] == query and each["condition"] == "searched"))
            case.give(given)
            case.answers()["searching"] = searching_means([GivenAnswer(**each) for each in given])

        return edit

    def fact(name: str, value: Any, query: str = "finder") -> Edit:
        return row(lambda each: each["search"].update({name: value}), query)

    def step(name: str, documents: list[str], query: str) -> Edit:
        return row(lambda each: each["search"]["steps"].update({name: documents}), query)

    def told(change: Callable[[dict[str, Any]], object]) -> Edit:
        def edit(case: Case) -> None:
            facts = case.answers()["conversations"]
            traces = json.loads(case.files[f"{facts['sha256']}.traces.json"])
            change(traces["finder"])
            content = json.dumps(traces).encode()
            facts["sha256"] = sha = hashlib.sha256(content).hexdigest()
            case.files[f"{sha}.traces.json"] = content

        return edit

    def cited(each: dict[str, Any]) -> None:
        each["text"] = "Illness dropper [1]."
        each["sentences"] = [{"text": "Illness dropper .", "documents": [each["read"][0]]}]
        each["search"]["steps"]["cited"] = [each["read"][0]]

    def without_first_search(trace: dict[str, Any]) -> None:
        trace["turns"] = [turn for turn in trace["turns"] if turn["documents"] is None]

    yield (
        "another answer",
        row(lambda each: each.update(text="Illness finder.", sentences=[{"text": "Illness finder."}])),
    )
    yield (
        "a right answer instead of none",
        row(
            lambda each: each.update(
                status="answered", failure="", text="Illness quitter.", sentences=[{"text": "Illness quitter."}]
            ),
            "quitter",
        ),
    )
    yield "a further citation", row(cited, "dropper")
    yield "another confidence", fact("confidence", 1.0)
    yield "no confidence", fact("confidence", None, "skimmer")
    yield "fewer searches", fact("searches", 0)
    yield "fewer repeated searches", fact("repeated", 0, "looper")
    yield "a guess called a find", fact("named", "find", "guesser")
    yield "fewer tokens read", fact("prompt_tokens", 1)
    yield "fewer tokens written", fact("completion_tokens", 1)
    yield "fewer turns", fact("turns", 1)
    yield "less time", fact("seconds", 123.0)
    yield "opened documents", step("opened", ["dropper-alpha"], "dropper")
    yield "kept documents", step("kept", ["dropper-alpha"], "dropper")
    yield "shown documents left out", step("shown", [], "skimmer")
    yield "a step left out", row(lambda each: each["search"]["steps"].pop("opened"), "dropper")
    yield "other means of the path", lambda case: case.answers()["searching"].update(tokens=1.0)
    yield "no conversations", lambda case: case.answers().update(conversations=None)
    yield "conversations that are not here", lambda case: case.answers()["conversations"].update(sha256="0" * 64)
    yield "a conversation with another answer", told(lambda trace: trace.update(text="Measles."))
    yield "a conversation with another confidence", told(lambda trace: trace.update(confidence=0.1))
    yield "a conversation without a search", told(without_first_search)
    yield "a conversation with fewer tokens", told(lambda trace: trace["total"].update(prompt_tokens=1))
    yield "a conversation with an opened document", told(lambda trace: trace["steps"]["opened"].append("finder-gamma"))
    yield "a conversation that is no object", told(lambda trace: trace.update(turns=[1]))

"""The answer records of a pack: those of readers that read its records, and what readers and judges said.

As for systems, everything is asked once more on the store, and what is read is noted. So the same `r2med answer` asks
nobody where only the pack is.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.assessment.answers.answering import AnswerPlan, plan_answers
from r2med.assessment.answers.reading import DEPTH
from r2med.data import Dataset
from r2med.data.nuggets_file import nuggets_of, read_nuggets
from r2med.evaluation.records.answer_collection import answer_files, read_current
from r2med.evaluation.records.answer_record import SUFFIX, AnswerRecord, answer_key
from r2med.evaluation.records.answer_words import READ_CONDITIONS, SEARCHED
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.repeats import setting_difference
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.evaluation.records.text_files import NUGGETS_ENDING
from r2med.evaluation.running.evaluation import run_path
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store.reads import Reads, noted_reads
from r2med.publication.packs.gathering import flags_of, model_flags, model_settings


@dataclass(frozen=True)
class PackedAnswers:
    """An answer record, and the record of the system whose results were read."""

    record: AnswerRecord
    path: Path
    retrieval: StoredRecord


def answers_of(collection: RecordCollection) -> list[PackedAnswers]:
    """Return the answer records beside the records of a collection that were read from them."""
    by_key = {kept.record.key: kept for kept in collection.runs_of_all}
    files = sorted({file for kept in collection.runs_of_all for file in answer_files(kept.path.parent)})
    return [
        PackedAnswers(record, file, by_key[key])
        for record, file in read_current(files)
        if isinstance(key := record.settings.get("retrieval"), str) and key in by_key
    ]


def answer_reads(answers: PackedAnswers, dataset: Dataset, runtime: Runtime, nuggets: Path | str = "") -> Reads:
    """Return what an answer record reads from the store. Raises UserError if that is no longer the same record.

    `nuggets` is the file that its `r2med answer` was given.
    """
    record, retrieval = answers.record, answers.retrieval
    record.given(answers.path.parent)  # raises UserError if its answers are missing or were changed
    try:
        with noted_reads() as reads, tempfile.TemporaryDirectory(prefix="r2med-") as folder:
            opened = runtime.with_settings(**model_settings(record.settings, runtime), repeat=record.repeat)
            plan = _plan(record, dataset, opened, given_nuggets(record, dataset, nuggets))
            (reader,) = plan.readers(plan.retrieval.systems[0])
            settings = plan.key(dataset, retrieval.record, reader)
            if answer_key(settings, dataset.fingerprint) != record.key:
                raise UserError(
                    f"{setting_difference(record.settings, settings)} in the record: give the flags of its r2med answer"
                )
            run = retrieval.run_file or run_path(retrieval.path)
            made = _asked_again(plan, record, dataset, retrieval.record, run, Path(folder) / answers.path.name)
            if made.per_query != record.per_query or made.answers != record.answers:
                raise UserError("this store gives other answers than those of the record")
    except UserError as error:
        raise UserError(
            f"{answers.path}: {record.name} on {record.dataset.name}: ",
            error,
            f"; ask again ({answer_command(record, form_of(dataset), *flags_of(runtime))}), then pack it, "
            "or pack without answers",
        ) from None
    return reads


def _asked_again(
    plan: AnswerPlan, record: AnswerRecord, dataset: Dataset, retrieval: Record, run: Path, path: Path
) -> AnswerRecord:
    """Return the record from what the store has.

    If its command had several systems, readers or datasets, the controls of the judge were drawn over all of them, and
    those of this record alone were never asked. Then the record's own counts are kept.
    """
    (reader,) = plan.readers(plan.retrieval.systems[0])
    asked = dataset, retrieval, reader, run, path
    try:
        made = plan.ask(*asked)
    except UserError:
        if record.judge is None:
            raise
    else:
        if record.judge is None or made.judge == record.judge:
            return made
    return plan.ask(*asked, record.judge)


def given_nuggets(record: AnswerRecord, dataset: Dataset, nuggets: Path | str) -> Path | str:
    """Return the file of nuggets that a record was made with; empty if it has none, or those of the dataset.

    Raises UserError if `nuggets` is not that file.
    """
    stated, own = record.settings.get("nuggets"), nuggets_of(dataset)
    if not stated or (own is not None and own.digest == stated):
        return ""
    if nuggets and read_nuggets(Path(nuggets), dataset).digest == stated:
        return nuggets
    raise UserError("it was made with other nuggets: give the file of its r2med answer with r2med pack --nuggets FILE")


def nuggets_path(path: Path) -> Path:
    """Return the path of the nuggets of an answer record from a pack, beside the record."""
    return path.with_name(path.name.removesuffix(SUFFIX) + NUGGETS_ENDING)


def _plan(record: AnswerRecord, dataset: Dataset, runtime: Runtime, nuggets: Path | str) -> AnswerPlan:
    settings = record.settings
    return plan_answers(
        [record.system],
        [] if SEARCHED in settings["conditions"] else [record.reader],
        [dataset],
        runtime,
        judge=_judge(settings),
        passages=record.passages,
        conditions=settings["conditions"],
        form=record.form,
        nuggets=nuggets,
        queries=settings["queries"],
        untested=bool(record.judge and record.judge.trust),
    )


def _judge(settings: Mapping[str, Any]) -> str:
    judge = settings.get("judge")
    return str(judge["llm"]) if isinstance(judge, Mapping) else ""


def form_of(dataset: Dataset) -> str:
    """Return the form of answers that a dataset states."""
    return dataset.card.answers if dataset.card else "open"


def answer_command(
    record: AnswerRecord,
    form: str = "",
    base_url: str = "",
    generations: str = "",
    nuggets: Path | str = "",
) -> str:
    """Return the command that makes an answer record from a pack, with the flags that its key depends on.

    `form` is that of the dataset's answers, which needs no flag. `nuggets` is the file of nuggets, if it needs one.
    """
    settings = record.settings
    words = ["r2med", "answer", record.system, "--data", record.dataset.name]
    if SEARCHED not in settings["conditions"]:  # an agent that searches is its own reader
        words[3:3] = ["--reader", record.reader]
    if judge := _judge(settings):
        words += ["--judge", judge]
    if record.passages != DEPTH:
        words += ["--passages", str(record.passages)]
    if settings["conditions"] != list(READ_CONDITIONS):
        words += [word for condition in settings["conditions"] for word in ("--condition", condition)]
    if record.form != form:
        words += ["--form", record.form]
    if nuggets:
        words += ["--nuggets", str(nuggets)]
    if record.judge and record.judge.trust:
        words.append("--untested")
    if settings["queries"]:
        words += ["--queries", str(settings["queries"])]
    if record.repeat:
        words += ["--repeats", str(record.repeat + 1)]
    return shlex.join([*words, *model_flags(settings, base_url, generations)])

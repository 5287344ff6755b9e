"""Answer the questions of datasets with LLMs that read the results of systems, and record every answer.

Answers come from the journal where it has them, so a killed command asks nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from r2med.assessment.answers.answer_judge import JudgeOfAnswers
from r2med.assessment.answers.answer_sheets import AnswerSheet
from r2med.assessment.answers.answering_agents import (
    agent_questions,
    agent_reader,
    answering_system,
)
from r2med.assessment.answers.judged_answers import AnswerJudging
from r2med.assessment.answers.new_answer_record import (
    answer_record_path,
    named_again,
    recorded_answers,
    write_answer_record,
)
from r2med.assessment.answers.reader import AnswerReader, ReaderAnswers
from r2med.assessment.answers.reader_prompts import ReaderQuestion, prompts_digest
from r2med.assessment.answers.reading import DEPTH, asked_queries
from r2med.assessment.answers.scoring import ScoredAnswers, scored
from r2med.assessment.answers.searched_answers import agent_cost, searched_answer
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import Nuggets, nuggets_of, read_nuggets
from r2med.data.runs.trec import WrittenRun
from r2med.evaluation.records.answer_facts import CitedSentence, GivenAnswer
from r2med.evaluation.records.answer_words import CONDITIONS, READ_CONDITIONS, SEARCHED, AnswerForm, Condition
from r2med.evaluation.records.record import Record, record_key
from r2med.evaluation.records.record_paths import files_beside, record_path
from r2med.evaluation.records.repeats import repeat_setting
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.running.batch import RunPlan, plan_run
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.llm_cards import sampling_of
from r2med.systems.system import System

Lists = Mapping[str, Sequence[str]]

SENTENCES = 3
"""Number of cited sentences that an answer is assumed to have."""


def _stand_in(question: ReaderQuestion, system: str, reader: str) -> GivenAnswer:
    """Return an answer whose text differs from all others, since equal questions are asked only once."""
    read = question.read.documents
    where = f"{question.condition}, {system}, {reader}"
    sentences = tuple(
        CitedSentence(text=f"{question.query.answer} ({where}, {number}).", documents=read[number : number + 1])
        for number in range(SENTENCES)
    )
    text = " ".join(sentence.text for sentence in sentences)
    given = {"query": question.query.id, "condition": question.condition, "read": read}
    return GivenAnswer(**given, status="answered", text=text, sentences=sentences)


@dataclass(frozen=True)
class AnsweredSystems:
    """The records of readers, and the errors of the combinations that have none. It is a sequence of its records."""

    records: tuple[Record, ...]
    """One record for each system, reader, dataset and repeat."""
    errors: tuple[str, ...]
    """One line for each combination that has no record."""
    reused: int
    """Number of records that existed already."""

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, number: int) -> Record:
        return self.records[number]


def all_repeats(answered: Sequence[AnsweredSystems]) -> AnsweredSystems:
    """Return the records and errors of several repeats together."""
    records = tuple(record for each in answered for record in each.records)
    errors = dict.fromkeys(error for each in answered for error in each.errors)
    return AnsweredSystems(records, tuple(errors), sum(each.reused for each in answered))


@dataclass(frozen=True)
class _ReaderWork:
    """A reader with the results of a system on a dataset that has no record yet."""

    dataset: Dataset
    retrieval: Record
    reader: AnswerReader
    run_file: Path
    path: Path
    key: str = ""

    def traces(self) -> Mapping[str, Sequence[Any]]:
        """Return query -> the conversations of the agent that searched. Raises UserError if their file is missing."""
        return StoredRecord(self.retrieval, self.run_file).traces()

    @property
    def name(self) -> str:
        """The system and its reader, as messages show them."""
        return f"{self.retrieval.system} · {self.reader.card.spec}"


@dataclass(frozen=True)
class _ReaderSaid:
    """What a reader said."""

    work: _ReaderWork
    questions: Sequence[ReaderQuestion]
    said: ReaderAnswers
    sheet: AnswerSheet


@dataclass(frozen=True)
class AnswerPlan:
    """The systems, datasets and readers of an evaluation of answers, before anything is asked."""

    retrieval: RunPlan
    given_readers: tuple[AnswerReader, ...]
    """The readers of all systems. Empty if each system is an agent that answers by itself."""
    runtime: Runtime
    passages: int
    conditions: tuple[Condition, ...]
    form: AnswerForm | None = None
    """The form of all answers; None for the form of each dataset's card."""
    queries: int = 0
    """The largest number of questions of each dataset; 0 for all."""
    judge: str = ""
    nuggets: Path | str = ""
    """A file of nuggets; empty for those of each dataset."""
    untested: bool = False
    """True if a judge is used although the answers give too few controls to test it."""

    @property
    def steps(self) -> int:
        """Number of steps that `answer` announces."""
        readings = sum(1 + len(self.readers(system)) for system in self.retrieval.systems)
        return readings * len(self.retrieval.data) + bool(self.judge)

    def readers(self, system: System) -> tuple[AnswerReader, ...]:
        """Return the readers of a system. That of an agent which searches and answers is its own LLM."""
        return self.given_readers or (agent_reader(system, self.runtime),)

    def _stand_ins(
        self, system: str, dataset: Dataset, reader: AnswerReader, questions: Sequence[ReaderQuestion]
    ) -> AnswerSheet:
        """Return answers like those that are to be expected, for a guess of what a judge will be asked."""
        answers = [_stand_in(each, system, reader.card.spec) for each in questions if not each.options]
        return AnswerSheet(dataset, reader.card, answers, self._nuggets(dataset) if self.judge else None)

    def answer(self, out: Path, announce: Callable[[str], None] = lambda step: None) -> AnsweredSystems:
        """Run the systems that have no record, ask all readers, then the judge, and write the records.

        An error of one system or reader is reported, and the others go on. Raises UserError if the judge cannot be
        used: the answers of the readers are in the journal, and no record is written.
        """
        retrieval = self.retrieval
        if SEARCHED in self.conditions:
            retrieval = replace(retrieval, data=tuple(map(self._searched_data, retrieval.datasets())))

        results = retrieval.evaluate(out, announce=announce)
        errors = [
            f"{row.system} on {dataset}: {error}"
            for row in results.rows
            for dataset, error in zip(results.datasets, row.errors, strict=True)
            if error
        ]
        known: dict[Path, Record] = {}
        work: list[_ReaderWork] = []
        order: list[Path] = []
        for each in self._readings(out, results.records, errors):
            order.append(each.path)
            if (record := recorded_answers(each.path, each.key)) and self._is_trusted(record):
                known[each.path] = named_again(each.path, record)
            else:
                work.append(each)
        reused = len(known)
        self._check_controls(work)
        read: list[_ReaderSaid] = []
        for each in work:
            announce(f"{each.dataset.name} · {each.name}")
            try:
                read.append(self._read(each))
            except UserError as error:
                errors.append(f"{each.name} on {each.dataset.name}: {error}")
            else:
                if not self.judge:
                    [known[each.path]] = self._written([read.pop()])
        if read:
            announce(f"judge · {self.judge}")
            known |= zip([each.work.path for each in read], self._written(read), strict=True)
        records = tuple(known[path] for path in order if path in known)
        return AnsweredSystems(records, tuple(dict.fromkeys(errors)), reused)

    def _readings(self, out: Path, retrieved: Sequence[Record], errors: list[str]) -> Iterator[_ReaderWork]:
        """Yield each reader with each retrieval record. Errors are added to `errors`."""
        datasets = {dataset.name: dataset for dataset in self.retrieval.datasets()}
        systems = {system.name: system for system in self.retrieval.systems}
        for record in retrieved:
            dataset = datasets[record.dataset.name]
            run = files_beside(record_path(out, record.system, dataset.name, record.key, record.apart)).run
            for reader in self.readers(systems[record.system]):
                if self.runtime.setup.repeat and not any(self.varies(record, reader).values()):
                    continue
                try:
                    key = record_key(self.key(dataset, record, reader), dataset.fingerprint, "answers")
                except UserError as error:
                    errors.append(f"{record.system} · {reader.card.spec} on {dataset.name}: {error}")
                else:
                    path = answer_record_path(out, record.system, dataset.name, reader.card.spec, key)
                    yield _ReaderWork(dataset, record, reader, run, path, key)

    def _is_trusted(self, record: Record) -> bool:
        """Return True if the judge of a record was tested, or if this command uses untested judges."""
        judge = record.answers.judge
        return self.untested or not judge or not judge.trust

    def _check_controls(self, work: Sequence[_ReaderWork]) -> None:
        """Raise UserError if the answers will give too few controls, before readers are paid for."""
        if not self.judge or self.untested:
            return
        sheets = []
        for each in work:
            with suppress(UserError):  # reported when it is asked
                questions = self.questions(each.reader, each.dataset, None)
                sheets.append(self._stand_ins(each.retrieval.system, each.dataset, each.reader, questions))
        AnswerJudging(JudgeOfAnswers.open(self.judge, self.runtime), sheets).check()

    def _read(self, each: _ReaderWork) -> _ReaderSaid:
        """Ask a reader."""
        dataset, reader = each.dataset, each.reader
        judged = [query.id for query in dataset.queries if query.id in each.retrieval.per_query]
        run = WrittenRun(each.run_file, judged)
        lists = {query: [document for document, _ in run.top(query, self.passages)] for query in judged}
        questions = self.questions(reader, dataset, lists)
        with self.runtime.network():
            said = reader.about(dataset.label).ask(questions)
        if SEARCHED in self.conditions:
            said = self._with_searched(said, each)
        nuggets = self._nuggets(dataset) if self.judge else None
        return _ReaderSaid(each, questions, said, AnswerSheet(dataset, reader.card, said.given, nuggets))

    def _with_searched(self, said: ReaderAnswers, each: _ReaderWork) -> ReaderAnswers:
        """Return the answers of a reader with those that it gave as an agent, which are in the record of its search."""
        dataset, traces, form = each.dataset, each.traces(), self.form_of(each.dataset)
        found = [
            searched_answer(query, next(iter(traces.get(query.id, ())), None), dataset, each.reader.card, form)
            for query in asked_queries(self._searched_data(dataset))
        ]
        # What the agent spent is a part of the cost of the search.
        return replace(said, given=[*said.given, *found], costs={**said.costs, SEARCHED: agent_cost(found)})

    def _written(self, read: Sequence[_ReaderSaid]) -> list[Record]:
        """Score answers and write their records."""
        judge = JudgeOfAnswers.open(self.judge, self.runtime) if self.judge else None
        sheets = [each.sheet for each in read]
        with self.runtime.network():
            done = scored(sheets, judge, untested=self.untested)
        return [self._record(each, scores) for each, scores in zip(read, done, strict=True)]

    def _record(self, each: _ReaderSaid, scores: ScoredAnswers) -> Record:
        dataset, retrieval, reader = each.work.dataset, each.work.retrieval, each.work.reader
        form, nuggets = self.form_of(dataset), each.sheet.nuggets
        return write_answer_record(
            each.work.path,
            self.key(dataset, retrieval, reader),
            retrieval,
            dataset,
            form,
            self.passages,
            reader.card.spec,
            each.said,
            scores,
            tuple(_notices(each.questions, dataset, form, reader)),
            nuggets.digest if nuggets else "",
            self.varies(retrieval, reader),
        )

    def form_of(self, dataset: Dataset) -> AnswerForm:
        """Return how the questions of a dataset are asked."""
        return self.form or (dataset.card.answers if dataset.card else "open")

    def _searched_data(self, dataset: Dataset) -> Dataset:
        """Return a dataset with the questions that an agent works on."""
        return agent_questions(dataset, self.form_of(dataset), self.queries)

    def _nuggets(self, dataset: Dataset) -> Nuggets | None:
        return read_nuggets(Path(self.nuggets), dataset) if self.nuggets else nuggets_of(dataset)

    def key(self, dataset: Dataset, retrieval: Record, reader: AnswerReader) -> dict[str, Any]:
        """Return every setting that answers and their scores depend on."""
        judge = JudgeOfAnswers.open(self.judge, self.runtime) if self.judge else None
        nuggets = self._nuggets(dataset) if judge else None
        form = self.form_of(dataset)
        return {
            "retrieval": retrieval.key,
            "reader": _reader_key(reader),
            "prompts": prompts_digest(form),
            "form": form,
            "passages": self.passages,
            "conditions": list(self.conditions),
            "queries": self.queries,
            "judge": judge.key() if judge else "",
            "nuggets": nuggets.digest if nuggets else "",
            **repeat_setting(self.runtime.setup.repeat),
        }

    def varies(self, retrieval: Record, reader: AnswerReader) -> dict[str, bool]:
        """Return for each stage whether another run of it can give other results."""
        judge = JudgeOfAnswers.open(self.judge, self.runtime) if self.judge else None
        asks = any(condition != SEARCHED for condition in self.conditions)  # an agent that searched has answered
        return {
            "retrieve": retrieval.varies,
            "read": asks and reader.varies,
            "judge": judge is not None and judge.varies,
        }

    def questions(self, reader: AnswerReader, dataset: Dataset, lists: Lists | None) -> list[ReaderQuestion]:
        """Return the questions to a reader. Raises UserError if there are none."""
        others = asked_queries(dataset)
        if not others:
            raise UserError(f"{dataset.name} has no query with a reference answer and judgements: nothing can be asked")
        if self.conditions == (SEARCHED,):
            return []
        if lists is None:
            following = [*others[1:], others[0]]
            lists = {query.id: list(dataset.qrels[next_.id]) for query, next_ in zip(others, following, strict=True)}
        queries = others[: self.queries or None]
        form = self.form_of(dataset)
        questions = reader.questions(dataset, queries, others, lists, form, self.conditions, self.passages)
        if not questions:
            raise UserError(f"{dataset.name} has fewer than two different answers: ask with r2med answer --form open")
        return questions


def plan_answers(
    systems: Sequence[object],
    readers: Sequence[str],
    data: Sequence[str | Path | Dataset],
    runtime: Runtime,
    *,
    judge: str = "",
    passages: int = DEPTH,
    conditions: Sequence[str] = READ_CONDITIONS,
    without: Literal["", "relevant"] = "",
    form: AnswerForm | None = None,
    nuggets: Path | str = "",
    queries: int = 0,
    untested: bool = False,
) -> AnswerPlan:
    """Return what will be asked. Raises UserError if a system, a reader, a dataset or a condition is unknown."""
    searched = SEARCHED in conditions
    if searched and readers:
        raise UserError(f"an agent that searches is its own reader: name no other one, such as {readers[0]}")
    if without and not searched:
        raise UserError(f"without {without} is about an agent that searches: add the condition {SEARCHED}")
    if not readers and not searched:
        raise UserError("a reader is an LLM: name one or several, as in r2med answer bm25 --reader smollm2")
    if not systems:
        raise UserError("no system to read from: name one, such as bm25")
    if nuggets and not judge:
        raise UserError("nuggets are matched by a judge: name one, as in r2med answer --judge smollm2")
    if passages < 1:
        raise UserError(f"a reader reads at least 1 passage, not {passages}")
    for condition in conditions:
        if condition not in CONDITIONS:
            raise unknown("condition", condition, CONDITIONS)
    chosen = tuple(condition for condition in CONDITIONS if condition in conditions)
    opened = tuple(AnswerReader.open(name, runtime) for name in dict.fromkeys(readers))
    if judge:
        JudgeOfAnswers.open(judge, runtime)  # an unknown LLM is found now
    plan = plan_run(systems, data, setup=runtime)
    if searched:
        plan = replace(plan, systems=tuple(answering_system(system, without) for system in plan.systems))
    asked = passages, chosen or READ_CONDITIONS, form, queries, judge, nuggets
    return AnswerPlan(plan, opened, runtime, *asked, untested=untested)


def _reader_key(reader: AnswerReader) -> dict[str, Any]:
    sampling = asdict(sampling_of(reader.card))
    sampling["stop"] = list(sampling["stop"])  # as it is read back from a record
    return {"llm": reader.card.spec, **reader.chat.key(), "sampling": sampling}


def _notices(
    questions: Sequence[ReaderQuestion], dataset: Dataset, form: AnswerForm, reader: AnswerReader
) -> Iterator[str]:
    """Yield what a reader of the scores should know about the questions."""
    left_out = len(dataset.qrels) - len(asked_queries(dataset))
    if left_out > 0:
        yield f"{left_out:,} of {len(dataset.qrels):,} judged queries have no reference answer and were not asked."
    if cut := sum(each.cut > 0 for each in questions):
        window = f"{reader.card.context_length:,} tokens"
        yield f"Passages of {cut:,} of {len(questions):,} prompts were cut to fit the reader's window of {window}."
    drawn = {each.query.id for each in questions if form == "choice" and not each.query.options}
    if drawn:
        yield f"The wrong options of {len(drawn):,} questions are answers of other queries."

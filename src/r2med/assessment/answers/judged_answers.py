"""Let a judge grade answers, match their nuggets and check their citations, after planted controls.

The controls are drawn over all answers of a command, and a judge that fails those of grades is stopped. One that fails
those of nuggets or of citations grades only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from r2med.assessment.answers.answer_controls import (
    answer_controls,
    citation_controls,
    nugget_controls,
    references_of,
)
from r2med.assessment.answers.answer_judge import JudgeOfAnswers
from r2med.assessment.answers.answer_sheets import (
    AnswerSheet,
    JudgedSheet,
    JudgedSheets,
    Place,
    can_be_judged,
)
from r2med.assessment.answers.nugget_matching import (
    MAX_SENTENCES,
    AnswerNuggets,
    match_nuggets,
    nugget_item,
    nuggets_of_item,
)
from r2med.assessment.panels.panel import Panel, Rated
from r2med.assessment.panels.planted_controls import FEWEST_CONTROLS, Control, ControlTest, plant
from r2med.assessment.rubrics.item import Item
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import Nuggets
from r2med.evaluation.records.answer_facts import CitedSentence, GivenAnswer
from r2med.evaluation.records.answer_words import can_be_right

MORE_QUESTIONS = "ask more questions, or use a judge that is not tested (r2med answer --untested)"
"""What helps if there are too few controls."""


@dataclass(frozen=True)
class AnswerJudging:
    """The work of a judge on all answers of a command."""

    judge: JudgeOfAnswers
    sheets: Sequence[AnswerSheet]
    untested: bool = False
    """True if the judge is used although there are too few controls."""

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """Name -> dataset."""
        return {sheet.dataset.name: sheet.dataset for sheet in self.sheets}

    @cached_property
    def nuggets(self) -> Mapping[str, Nuggets]:
        """Name of a dataset -> its nuggets."""
        return {sheet.dataset.name: sheet.nuggets for sheet in self.sheets if sheet.nuggets}

    def _planted(self, found: Mapping[str, Sequence[Control]]) -> tuple[Control, ...]:
        return plant(found, " ".join(self.datasets))

    @cached_property
    def _judged(self) -> list[tuple[Place, GivenAnswer]]:
        return [
            ((number, place), answer)
            for number, sheet in enumerate(self.sheets)
            for place, answer in enumerate(sheet.answers)
            if can_be_judged(answer)
        ]

    @cached_property
    def _graded(self) -> dict[Place, Item]:
        queries = {name: {query.id: query for query in each.queries} for name, each in self.datasets.items()}
        items = {}
        for place, answer in self._judged:
            name = self.sheets[place[0]].dataset.name
            query = queries[name][answer.query]
            texts = {"question": query.text, "reference": query.answer, "text": answer.text}
            items[place] = Item((query.id, ""), texts, "answer-grade", source=name)
        return items

    @cached_property
    def panel(self) -> Panel:
        """The judge of grades with its controls."""
        pool = list(self._graded.values())
        labels = {name: dataset.label for name, dataset in self.datasets.items()}
        references = {name: references_of(dataset.queries) for name, dataset in self.datasets.items()}
        planted = self._planted(answer_controls(pool, references))
        return Panel([self.judge.grades], planted, self.untested, labels)

    @cached_property
    def _matched(self) -> dict[Place, Item]:
        """The questions about nuggets."""
        items = {}
        for place, answer in self._judged:
            sheet = self.sheets[place[0]]
            if sheet.nuggets and (own := sheet.nuggets.by_query.get(answer.query)):
                query = next(each for each in sheet.dataset.queries if each.id == answer.query)
                items[place] = nugget_item(sheet.dataset, query, own, [each.text for each in answer.sentences])
        return items

    @cached_property
    def nugget_controls(self) -> tuple[Control, ...]:
        """The controls about nuggets."""
        known = [(self.datasets[name], nuggets) for name, nuggets in self.nuggets.items()]
        return self._planted(nugget_controls(known) if self._matched else {})

    @cached_property
    def _cited(self) -> dict[tuple[Place, int], Item]:
        """The questions about the sentences that cite passages."""
        items = {}
        for place, answer in self._judged:
            dataset = self.sheets[place[0]].dataset
            for number, sentence in enumerate(answer.sentences[:MAX_SENTENCES]):
                if sentence.documents:
                    texts = {"sentence": sentence.text, "text": _passages(dataset, sentence)}
                    items[place, number] = Item((answer.query, ""), texts, "citation", source=dataset.name)
        return items

    @cached_property
    def citation_panel(self) -> Panel:
        """The judge of citations with its controls."""
        read: dict[str, list[str]] = {name: [] for name in self.datasets}
        for (number, _), answer in self._judged:
            read[self.sheets[number].dataset.name] += answer.read
        pool = list(self._cited.values())
        found = citation_controls(self.datasets.values(), pool, read) if pool else {}
        return Panel([self.judge.citations], self._planted(found), self.untested, self.panel.labels)

    def check(self) -> None:
        """Raise UserError if the answers give too few controls for grades, and the judge is to be tested."""
        if self._graded:
            self.panel.check(MORE_QUESTIONS)

    def ask(self) -> JudgedSheets:
        """Ask the judge. Raises UserError if it fails the controls of grades, or if its server fails."""
        self.check()
        test_of_grades, grades = self._ask_grades()
        failures: list[tuple[int, str]] = []
        given = dict(self._judged)
        for number, (place, _) in enumerate(self._graded.items()):
            if number in grades.failures:
                failures.append((place[0], grades.failures[number]))
            elif rating := grades.ratings.get(number):
                given[place] = given[place].model_copy(update={"grade": rating.word, "why": rating.why})
        nuggets, found = self._ask_nuggets(failures)
        citations, supported = self._ask_citations(failures)
        for place, match in found.items():
            said = {"nuggets": dict(match.said), "statements_found": match.sentences}
            given[place] = given[place].model_copy(update={**said, "statements": len(given[place].sentences)})
        if self._does(citations):
            given = {place: _with_support(answer, place, supported) for place, answer in given.items()}
        tests = {
            "Measures of nuggets are": (nuggets, "match nuggets"),
            "citation-support is": (citations, "check citations"),
        }
        withheld = [
            f"{measures} withheld: {self.judge.name} cannot {task}: {_fault(test)}."
            for measures, (test, task) in tests.items()
            if not self._does(test)
        ]
        sheets = tuple(
            JudgedSheet(
                tuple(
                    self._without_facts(sheet, given.get((number, place), answer), self._does(nuggets))
                    for place, answer in enumerate(sheet.answers)
                ),
                Counter(kind for where, kind in failures if where == number),
            )
            for number, sheet in enumerate(self.sheets)
        )
        return JudgedSheets(sheets, test_of_grades, {"nuggets": nuggets, "citations": citations}, tuple(withheld))

    def _ask_grades(self) -> tuple[ControlTest, Rated]:
        pool = list(self._graded.values())
        judge = self.judge.grades
        test = self.panel.test(judge, "answers")
        return test, self.panel.rate(judge, pool)

    def _ask_citations(
        self, failures: list[tuple[int, str]]
    ) -> tuple[ControlTest, dict[tuple[Place, int], bool | None]]:
        """Return the test of the judge, and the verdicts on sentences; none if it fails its controls."""
        items, judge, panel = self._cited, self.judge.citations, self.citation_panel
        if not items:
            return ControlTest(), {}
        test = panel.ask_controls(judge)
        if not self._does(test):
            return test, {}
        rated = panel.rate(judge, list(items.values()))
        places = list(items)
        failures += [(places[number][0][0], kind) for number, kind in rated.failures.items()]
        said = {place: judge.says_yes(rated.ratings.get(number)) for number, place in enumerate(places)}
        return test, said

    def _ask_nuggets(self, failures: list[tuple[int, str]]) -> tuple[ControlTest, dict[Place, AnswerNuggets]]:
        """Return the test of the judge, and the nuggets of answers; none if it fails its controls."""
        items, planted = self._matched, self.nugget_controls
        if not items:
            return ControlTest(), {}
        test = self._counted(planted, self._match([control.item for control in planted])[0])
        if not self._does(test):
            return test, {}
        found, lost = self._match(list(items.values()))
        places = list(items)
        failures += [(places[number][0], kind) for number, kind in lost.items()]
        return test, {place: found[number] for number, place in enumerate(places) if number in found}

    def _counted(self, controls: Sequence[Control], found: Mapping[int, AnswerNuggets]) -> ControlTest:
        """Return how the judge answered controls, nugget by nugget. `found` are its matches by number."""
        said: list[tuple[str, bool, bool | None]] = []
        for number, control in enumerate(controls):
            words = list(found[number].said.values()) if number in found else []
            wanted = len(nuggets_of_item(control.item, self.nuggets))
            verdicts = [word == "support" if control.yes else word != "none" for word in words]
            said += [(control.kind, control.yes, verdict) for verdict in verdicts]
            said += [(control.kind, control.yes, None)] * (wanted - len(words))
        return ControlTest.counted(said)

    def _match(self, items: Sequence[Item]) -> tuple[dict[int, AnswerNuggets], dict[int, str]]:
        """Return what the judge found, and failures, by the number of the item."""
        found: dict[int, AnswerNuggets] = {}
        lost: dict[int, str] = {}
        for name, dataset in self.datasets.items():
            numbers = [number for number, item in enumerate(items) if item.source == name]
            asked = [items[number] for number in numbers]
            question = self.judge.nuggets.about(dataset.label)
            matches, failed = match_nuggets(question, asked, self.nuggets)
            found |= {numbers[place]: match for place, match in matches.items()}
            lost |= {numbers[place]: kind for place, kind in failed.items()}
        return found, lost

    def _does(self, test: ControlTest) -> bool:
        """Return True if a judge may match nuggets or check citations."""
        return not test.fault and (self.untested or test.is_enough)

    def _without_facts(self, sheet: AnswerSheet, answer: GivenAnswer, matched: bool) -> GivenAnswer:
        """Return an answer that was refused and so on with none of the nuggets, if nuggets are matched."""
        if matched and sheet.nuggets and not answer.options and can_be_right(answer.status) is False:
            none = {nugget.id: "none" for nugget in sheet.nuggets.by_query.get(answer.query, ())}
            return answer.model_copy(update={"nuggets": none})
        return answer


def _fault(test: ControlTest) -> str:
    too_few = f"there are {test.asked} planted controls, and a judge is tested with {FEWEST_CONTROLS} or more"
    return test.fault or too_few


def _with_support(answer: GivenAnswer, place: Place, said: Mapping[tuple[Place, int], bool | None]) -> GivenAnswer:
    """Return an answer with a verdict on every sentence.

    A sentence without a citation of a passage that was read is not supported. The judge is not asked about it.
    """
    if not answer.read:
        return answer
    sentences = tuple(
        sentence.model_copy(update={"supported": said.get((place, number), False)})
        for number, sentence in enumerate(answer.sentences)
    )
    return answer.model_copy(update={"sentences": sentences})


def _passages(dataset: Dataset, sentence: CitedSentence) -> str:
    rows = [row for row in dataset.corpus.rows(list(sentence.documents)).tolist() if row >= 0]
    return "\n\n".join(dataset.corpus.texts(rows))

"""A panel asks a judge its controls first, and then the pool, in an order that says nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from r2med.assessment.panels.control_table import control_table
from r2med.assessment.panels.panel import Panel
from r2med.assessment.panels.planted_controls import UNTESTED, Control, ControlTest, KindCount
from r2med.assessment.panels.ratings import Rating
from r2med.assessment.rubrics.item import Item
from support.facts import error_states


def item(name: str, source: str = "one") -> Item:
    return Item((name,), {"text": name}, source=source)


def controls(count: int, name: str) -> tuple[Control, ...]:
    return tuple(Control(item(f"{name} {number}"), "known", bool(number % 2)) for number in range(count))


@dataclass
class Judge:
    """A judge that says yes to some texts, and has no answer for others."""

    yes: Callable[[str], bool | None]
    name: str = "judge"
    asked: list[tuple[str, list[str]]] = field(default_factory=list)
    """The label in the store, and the texts."""
    label: str = ""

    def about(self, label: str) -> Judge:
        return Judge(self.yes, self.name, self.asked, label)

    def rate(self, items: Sequence[Item]) -> tuple[list[Rating | None], dict[int, str]]:
        self.asked.append((self.label, [each.texts["text"] for each in items]))
        said = [self.yes(each.texts["text"]) for each in items]
        rated = [
            None if yes is None else Rating(each.token, self.name, {"good": "yes" if yes else "no"})
            for each, yes in zip(items, said, strict=True)
        ]
        return rated, {place: "empty" for place, yes in enumerate(said) if yes is None}

    def says_yes(self, rating: Rating | None) -> bool | None:
        return None if rating is None else rating.word == "yes"


def right(text: str) -> bool:
    """Return what is right: controls with an odd number are to be answered yes, and so is the pool."""
    return text.startswith("pool") or text[-1] in "13579"


PLANTED = controls(40, "control")
POOL = [item(f"pool {number}", source) for number, source in enumerate(("one", "two", "one"))]


def panel(planted: Sequence[Control] = PLANTED, **more: Any) -> Panel:
    return Panel((), planted, **more)


def test_ratings_and_failures_are_those_of_the_items_of_each_source() -> None:
    judge = Judge(lambda text: None if text == "pool 1" else right(text))
    rated = panel(labels={"two": "its label"}).rate(judge, POOL)  # type: ignore[arg-type]
    assert {number: rating.item for number, rating in rated.ratings.items()} == {0: POOL[0].token, 2: POOL[2].token}
    assert rated.failures == {1: "empty"}
    assert [(label, len(texts)) for label, texts in judge.asked] == [("", 2), ("its label", 1)]


def test_a_judge_cannot_tell_controls_by_their_place_and_the_order_is_always_the_same() -> None:
    orders = []
    for _ in range(2):
        judge = Judge(right)
        panel().test(judge, "labels")  # type: ignore[arg-type]
        orders.append(judge.asked)
    assert orders[0] == orders[1]
    assert orders[0][0][1] != [each.item.texts["text"] for each in PLANTED]


def test_everything_that_is_asked_is_listed_controls_first() -> None:
    texts = [each.texts["text"] for each in panel().items(POOL)]
    assert len(texts) == 43 and texts[0] == "control 0" and texts[-3:] == ["pool 0", "pool 1", "pool 2"]


def test_a_judge_that_fails_its_controls_is_not_used() -> None:
    with error_states("judge", "labels", "20 of 20"):
        panel().test(Judge(lambda text: True), "labels")  # type: ignore[arg-type]
    assert panel().test(Judge(right), "labels").right == 40  # type: ignore[arg-type]


def test_no_usable_answer_to_the_controls_fails_too() -> None:
    with error_states("judge"):
        panel().test(Judge(lambda text: None), "labels")  # type: ignore[arg-type]


def test_too_few_controls_are_refused_unless_the_user_goes_on_without_a_test() -> None:
    few = controls(12, "control")
    with error_states(12, 20, "label more"):
        panel(few).check("label more")
    panel(few, untested=True).check("label more")
    assert panel(few).test(Judge(lambda text: True), "labels").trust == UNTESTED  # type: ignore[arg-type]


def test_the_table_has_a_row_for_each_judge_and_kind() -> None:
    test = ControlTest((KindCount("a", True, 20, 19), KindCount("near", False, 20, 20)))
    table = control_table({"one": test, "two": ControlTest((KindCount("a", True, 40, 30),))})
    assert [row[:4] for row in table.rows] == [
        ["one", "a", "yes", 20],
        ["one", "near", "no", 20],
        ["two", "a", "yes", 40],
    ]
    assert [row[4].value for row in table.rows] == [0.95, 1.0, 0.75]

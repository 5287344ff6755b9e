"""Whether a generation's answer is right, and what right and wrong ones gain."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.analysis.analysis import analyse, rehearse
from r2med.analysis.answer_accuracy import Judged, llm_rows
from r2med.analysis.scaling import Expanded
from r2med.answers.answer_rule import by_rule
from r2med.store import Store
from support.scripted_llm import scripted

DIAG = "demo/MedQA-Diag"


@pytest.mark.parametrize(
    ("text", "gold", "verdict"),
    [
        ("This is acute intermittent porphyria.", "Acute intermittent porphyria", True),
        ("Oncogenic: a tumor-induced osteomalacia.", "Tumor-induced (oncogenic) osteomalacia", True),
        ("Porphyria was ruled out. Final answer: lead poisoning", "Acute intermittent porphyria", None),
        ("It may be acute intermittent porphyria.\nAnswer: gout", "Acute intermittent porphyria", None),
        ("Gout.", "Acute intermittent porphyria", False),
        ("Gout.", "a long explanation of many words that no rule could ever look for in any text", None),
        ("Gout.", "", None),
        ("This is not Graves disease; it is thyroiditis.", "Graves disease", None),
        ("This is not Graves disease; it is thyroiditis.", "Thyroiditis", True),
        ("Graves disease was ruled out by a low uptake.", "Graves disease", None),
        ("Graves disease is unlikely here. It is thyroiditis.", "Graves disease", None),
        ("It isn't Graves disease.", "Graves disease", None),
        ("Graves disease? Uptake is low.", "Graves disease", None),
        ("This is Graves disease. Graves disease was then excluded.", "Graves disease", None),
        ("The final answer is not Graves disease", "Graves disease", None),
        ("Final answer: Graves disease or thyroiditis", "Graves disease", None),
        ("Answer: Graves disease, thyroiditis", "Graves disease", None),
        ("The differential includes toxic adenoma, Graves disease and thyroiditis.", "Graves disease", None),
        ("Think of\n1. Graves disease\n2. Thyroiditis\n3. Adenoma", "Graves disease", None),
        ("- Graves disease\n- Thyroiditis", "Thyroiditis", None),
        ("This is Graves disease, an autoimmune disease of the thyroid.", "Graves disease", True),
        ("Antibodies show that she has Graves disease and needs treatment.", "Graves disease", True),
        ("Final answer: Graves disease", "Graves disease", True),
    ],
)
def test_a_rule_decides_where_it_can(text: str, gold: str, verdict: bool | None) -> None:
    assert by_rule(text, gold) is verdict


@pytest.mark.parametrize(
    ("rule", "llm", "right"),
    [(True, False, 1), (None, True, 1), (None, False, 0), (False, True, 1), (False, None, 0), (False, False, 0)],
)
def test_the_judge_decides_all_that_does_not_state_the_answer(rule: bool | None, llm: bool | None, right: int) -> None:
    assert Judged("d", "q", "Myocardial infarction", "A heart attack.", rule, llm).right == right


def test_wrong_answers_and_right_ones_are_told_apart_by_the_judge(tmp_path: Path, store: Store, results: Path) -> None:
    setup = scripted(
        tmp_path,
        store,
        (["Expected answer", "oncogenic"], {"final_answer": "gout", "verdict": "wrong"}),
        (["Expected answer", "Lambert"], "I would rather not say."),
        (["Expected answer"], {"final_answer": "that", "verdict": "right"}),
    )
    done = analyse("answers", setup=setup, results=results, data=[DIAG], out=tmp_path / "out")
    (section,) = done.sections
    tables = {table.name: table for table in section.tables}
    (row,) = tables["answers"].rows
    assert row[:3] == ["hyde(author) → bm25", "author", 8]
    (agreement,) = tables["answers-agreement"].rows
    assert agreement[0] == 8
    assert agreement[2] == 7  # one could not be read, however often it was asked
    assert any("1 had no usable answer (1 unreadable)" in note for note in section.notes)
    assert any("written by hand" in note for note in section.notes)
    assert {row[1] for row in tables["answers-slices"].rows} >= {"task", "length"}
    said = {row[2]: row[6] for row in tables["answers-queries"].rows}
    assert (said["0"], said["1"], said["2"]) == ("wrong", "undecided", "right")


def test_a_rehearsal_asks_nothing_and_says_what_would_be_asked(tmp_path: Path, store: Store, results: Path) -> None:
    setup = scripted(tmp_path, store, ([], {"verdict": "right"}))
    previews = rehearse("answers", "contamination", setup=setup, results=results, data=[DIAG], queries=2)
    calls = {name: len(preview.unanswered) for name, preview in previews.items()}
    assert calls == {"judge-answer": 2, "continue": 2}


def test_what_was_answered_is_not_asked_again_and_gives_the_same_bytes(
    tmp_path: Path, store: Store, results: Path
) -> None:
    said = {"continuation": "and so on", "verdict": "right"}
    setup = scripted(tmp_path, store, ([], said))
    asked = ("answers", "contamination")
    first, second = (
        analyse(*asked, setup=setup, results=results, data=[DIAG], queries=3, out=tmp_path / name)
        for name in ("a", "b")
    )
    assert [file.read_bytes() for file in first.files] == [file.read_bytes() for file in second.files]
    assert not any(
        preview.unanswered
        for preview in rehearse(*asked, setup=setup, results=results, data=[DIAG], queries=3).values()
    )


def test_accuracy_and_gain_go_together_across_llms_of_one_expansion() -> None:
    queries = [("d", str(number)) for number in range(20)]

    def outcome(llm: str, right: int, points: float) -> Any:
        """Return an LLM that is right on so many queries, and gains so much on each of these."""
        by_query = {key: (float(n < right), points * (n < right)) for n, key in enumerate(queries)}
        return Expanded(f"hyde({llm}) → bm25", llm, "bm25", "hyde"), by_query

    alike = [outcome("small", 3, 1.0), outcome("middle", 9, 1.0), outcome("large", 16, 1.0)]
    lone = Expanded("lamer(large) → bm25", "large", "bm25", "lamer"), {queries[0]: (1.0, 2.0)}
    alike[0][1]["d", "0"] = (np.nan, 1.0)  # not decided for one of them: left out for all
    (name, llms, decided, together), alone = llm_rows([*alike, lone])
    assert (name, llms, decided) == ("hyde → bm25", 3, 19)
    assert (together.value, together.low, together.high) == (1.0, None, None)  # drawing queries anew misses the truth
    assert alone == ["lamer → bm25", 1, 1, None]
    against = [outcome("small", 3, 9.0), outcome("middle", 9, 2.0), outcome("large", 16, 0.5)]
    assert llm_rows(against)[0][3].value == -1.0

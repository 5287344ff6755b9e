"""What is not a table of plain texts is refused in one line, or left out and named: markup, nested objects, totals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from r2med.data.tables.import_choices import ImportChoices
from r2med.data.tables.importing import Import, plan_import
from support.facts import error_states, some_states

NOTES = "note_id,note\nn1,A cough since May.\nn2,An itch since June.\nn3,A rash on both arms.\n"


def planned(tmp_path: Path, name: str, content: str, **how: Any) -> Import:
    (tmp_path / name).write_text(content, encoding="utf-8")
    return plan_import([tmp_path / name], **how)


def corpus(plan: Import) -> list[dict[str, str]]:
    return list(plan._catalogue.documents())


def qrels(plan: Import) -> list[tuple[str, str, int]]:
    return [(row["q_id"], row["p_id"], row["score"]) for row in plan._qrels()]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("<p>A <b>cough</b> since May.</p>", "HTML"),
        ("A cough.<br>No fever.<br>", "HTML"),
        ("<note><text>A cough.</text></note>", "HTML"),
        ("{\\rtf1\\ansi A cough since May.}", "RTF"),
    ],
)
def test_cells_of_markup_stop_the_import_unless_they_are_wanted(tmp_path: Path, cell: str, kind: str) -> None:
    content = NOTES + f"n4,{cell}\n"
    with error_states("notes.csv", "'note'", kind, "keep_markup (--keep-markup)"):
        planned(tmp_path, "notes.csv", content)
    assert corpus(planned(tmp_path, "notes.csv", content, typed=ImportChoices(keep_markup=True)))[3] == {
        "id": "n4",
        "text": cell,
    }
    few = NOTES + "".join(f"m{n},A plain note about a cough.\n" for n in range(9)) + f"n4,{cell}\n"
    some_states(planned(tmp_path, "notes.csv", few).notices, 1, "markup")


@pytest.mark.parametrize(
    "cell", ["p < 0.05 and n > 3", "<NAME> was seen on <DATE>", "x <y> z", "CRP <5, then >10", "if a<b or c>d"]
)
def test_signs_of_comparison_and_placeholders_are_text(tmp_path: Path, cell: str) -> None:
    plan = planned(tmp_path, "notes.csv", f'note_id,note\nn1,"{cell}"\nn2,"{cell} again"\n')
    assert corpus(plan)[0] == {"id": "n1", "text": cell}
    assert not any("markup" in notice for notice in plan.notices)


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        ("a.json", [{"id": "n", "body": {"text": "A cough."}}], ["'body'", "nested"]),
        ("a.json", [{"id": "n", "body": [{"text": "A cough."}]}], ["'body'", "nested"]),
        ("a.json", {"notes": [{"id": "n"}], "asked": [{"id": "q"}]}, ["several lists", "'notes'", "'asked'"]),
        ("a.json", {"hits": {"hits": [{"id": "n", "text": "A cough."}]}}, ["list of objects"]),
    ],
)
def test_nested_json_is_refused_in_one_line(tmp_path: Path, name: str, content: Any, facts: list[str]) -> None:
    with error_states(name, *facts):
        planned(tmp_path, name, json.dumps(content))


def test_an_object_that_holds_one_list_of_rows_is_read(tmp_path: Path) -> None:
    content = {"version": 1, "tags": ["a", "b"], "notes": [{"id": "n", "text": "A cough.", "by": {"name": "Doe"}}]}
    assert corpus(planned(tmp_path, "a.json", json.dumps(content))) == [{"id": "n", "text": "A cough."}]


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ("note_id,note,ward", ["columns", "'note_id'"]),
        ("Total,3 notes,", ["total", "'Total'"]),
        ("Summe: 3,,", ["total", "'Summe: 3'"]),
        ("合计,3,", ["total", "'合计'"]),
    ],
)
def test_rows_that_are_not_data_are_left_out_and_named(tmp_path: Path, row: str, facts: list[str]) -> None:
    lines = ["note_id,note,ward", "n1,A cough since May.,A", "n2,An itch since June.,B", row, "n3,A rash.,A"]
    plan = planned(tmp_path, "notes.csv", "\n".join(lines) + "\n")
    assert [document["id"] for document in corpus(plan)] == ["n1", "n2", "n3"]
    some_states(plan.notices, "left out", "notes.csv:4", *facts)


def test_a_row_of_units_is_left_out_and_a_total_hip_is_not(tmp_path: Path) -> None:
    plan = planned(tmp_path, "a.csv", "note_id,note,Hb\n[no.],[text],g/dl\nn1,Total hip replacement.,9\n,Mean look.,\n")
    assert [document["text"] for document in corpus(plan)] == ["Total hip replacement.", "Mean look."]
    some_states(plan.notices, "left out", "a.csv:2", "units", "'[no.]'")


@pytest.mark.parametrize("named", [{}, {"text": "passage", "query": "question"}])
def test_questions_beside_passages_without_a_table_of_documents_stop_the_import(
    tmp_path: Path, named: dict[str, str]
) -> None:
    content = "question,passage,label\nWho coughs?,The patient coughs at night.,1\nWho itches?,An itch since June.,1\n"
    with error_states("pairs.csv", "no documents", "(id, text)", "text (--text)"):
        planned(tmp_path, "pairs.csv", content, **named)
    plan = planned(tmp_path, "pairs.csv", content, text="passage")
    assert corpus(plan)[1] == {"id": "2", "text": "An itch since June."}


def test_questions_without_a_name_beside_texts_stop_the_import(tmp_path: Path) -> None:
    content = "A,B\nWho coughs at night?,The patient of room 3 coughs at night.\nWho has an itch?,An itch since June.\n"
    with error_states("pairs.csv", "'A'", "questions", "table of their own", "text (--text B)"):
        planned(tmp_path, "pairs.csv", content)


@pytest.mark.parametrize(
    ("cell", "word", "meant", "difference"),
    [
        ("N1", "'N1'", "'n1'", "case"),
        ("n2; \ufeffn1", r"'\ufeffn1'", "'n1'", "invisible signs"),
        ("N1、n2", "'N1'", "'n1'", "case"),
        ("7", "'7'", "'007'", "leading zeros"),
        ("007.0", "'007.0'", "'007'", "decimal zero"),
    ],
)
def test_an_id_in_another_spelling_stops_the_import_and_the_difference_is_named(
    tmp_path: Path, cell: str, word: str, meant: str, difference: str
) -> None:
    (tmp_path / "notes.csv").write_text(NOTES + "007,A fever since July.\n")
    (tmp_path / "asked.csv").write_text(f'question,relevant\nWho coughs?,"{cell}"\n', encoding="utf-8")
    with error_states("asked.csv:2", word, meant, difference, "alike"):
        _ = plan_import([tmp_path / "notes.csv", tmp_path / "asked.csv"]).notices


def test_the_id_of_a_question_in_another_spelling_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text(NOTES)
    (tmp_path / "questions.csv").write_text("id,question\n01,Who coughs?\n02,Who itches?\n")
    (tmp_path / "qrels.csv").write_text("query_id,note_id,relevance\n1,n1,1\n2,n2,0\n")
    with error_states("qrels.csv:2", "no question", "'1'", "'01'", "leading zeros"):
        _ = plan_import([tmp_path / name for name in ("notes.csv", "questions.csv", "qrels.csv")]).notices


@pytest.mark.parametrize("cell", ["n1 & n3", "n1、n3", "n1 and n3"])
def test_several_ids_in_a_cell_are_found_between_signs_and_words(tmp_path: Path, cell: str) -> None:
    (tmp_path / "notes.csv").write_text(NOTES)
    (tmp_path / "asked.csv").write_text(f'question,relevant\nWho coughs?,"{cell}"\n', encoding="utf-8")
    plan = plan_import([tmp_path / "notes.csv", tmp_path / "asked.csv"])
    assert [document for _, document, _ in qrels(plan)] == ["n1", "n3"]


def test_ids_that_differ_only_in_case_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("id,note\na1,A cough since May.\nA1,An itch since June.\n")
    (tmp_path / "asked.csv").write_text("question,relevant\nWho coughs?,a1\nWho itches?,A1\n")
    plan = plan_import([tmp_path / "notes.csv", tmp_path / "asked.csv"])
    assert qrels(plan) == [("q1", "a1", 1), ("q2", "A1", 1)]

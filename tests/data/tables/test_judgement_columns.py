"""Labels are never turned round: a verdict is used or asked for, and a name that says "not relevant" is believed."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from r2med.data.tables.column_names import says_not_relevant, says_relevant, says_verdict
from r2med.data.tables.import_choices import ImportChoices
from r2med.data.tables.importing import Import, plan_import
from support.facts import error_states, some_states

NOTES = "note_id,note\n" + "".join(f"n{n},The patient of note {n} has a fever and a cough.\n" for n in range(1, 8))


def planned(tmp_path: Path, table: str, notes: str = NOTES, **how: Any) -> Import:
    (tmp_path / "notes.csv").write_text(notes, encoding="utf-8")
    (tmp_path / "asked.csv").write_text(table, encoding="utf-8")
    return plan_import([tmp_path / "notes.csv", tmp_path / "asked.csv"], **how)


def judged(plan: Import) -> dict[tuple[str, str], int]:
    return {(row["q_id"], row["p_id"]): row["score"] for row in plan._qrels()}


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("match", "1", "0"),
        ("is_correct", "TRUE", "FALSE"),
        ("passt", "ja", "nein"),
        ("verdict", "correct", "incorrect"),
        ("correspond", "oui", "non"),
        ("corresponde", "sim", "não"),
        ("是否相关", "是", "否"),
        ("該当", "はい", "いいえ"),
        ("関連度", "○", "×"),
        ("관련성", "예", "아니오"),
        ("ความเกี่ยวข้อง", "ใช่", "ไม่ใช่"),
        ("relevant", "yes", "not relevant"),
    ],
)
def test_a_verdict_is_read_under_its_name_in_any_language(tmp_path: Path, name: str, yes: str, no: str) -> None:
    rows = f"question,note_id,{name}\nWho coughs?,n1,{yes}\nWho coughs?,n2,{no}\nWho sleeps?,n3,{yes}\n"
    assert judged(planned(tmp_path, rows)) == {("q1", "n1"): 1, ("q1", "n2"): 0, ("q2", "n3"): 1}


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("annotator A", "yes", "no"),
        ("Haken", "x", ""),
        ("k7", "3", "0"),
        ("status", "accepted", "rejected"),
        ("подходит", "да", "нет"),
        ("corrisponde", "sì", "no"),
    ],
)
def test_verdicts_under_a_name_that_says_nothing_are_asked_for(tmp_path: Path, name: str, yes: str, no: str) -> None:
    rows = f"question,note_id,{name}\nWho coughs?,n1,{yes}\nWho coughs?,n2,{no}\nWho sleeps?,n3,{no}\n"
    with error_states(repr(name), f"'{yes}'", f"grade (--grade {quote(name)})", "1 of 3", "no_grade (--no-grade)"):
        planned(tmp_path, rows)
    assert judged(planned(tmp_path, rows, grade=name))["q1", "n1"] == (3 if yes == "3" else 1)
    assert set(judged(planned(tmp_path, rows, typed=ImportChoices(no_grade=True))).values()) == {1}


def test_two_annotators_who_differ_are_two_readings(tmp_path: Path) -> None:
    rows = "question,note_id,relevant A,relevant B\nWho coughs?,n1,1,1\nWho coughs?,n2,0,1\n"
    with error_states("'relevant A' ('1', '0')", "'relevant B' ('1')", "grade (--grade 'relevant A')"):
        planned(tmp_path, rows)
    assert judged(planned(tmp_path, rows, grade="relevant B")) == {("q1", "n1"): 1, ("q1", "n2"): 1}
    agreed = rows.replace("0,1", "0,0")
    assert judged(planned(tmp_path, agreed)) == {("q1", "n1"): 1, ("q1", "n2"): 0}


@pytest.mark.parametrize(
    "name",
    [
        "irrelevant",
        "hard_negatives",
        "distractors",
        "excluded_ids",
        "wrong notes",
        "not relevant notes",
        "nonRelevant",
        "falsche Befunde",
        "nicht relevante Befunde",
        "documents non pertinents",
        "notas no relevantes",
        "documenti irrilevanti",
        "notas não relevantes",
        "нерелевантные документы",
        "不相关文档",
        "関連なし",
        "관련 없는 문서",
        "เอกสารที่ไม่เกี่ยวข้อง",
    ],
)
def test_a_name_that_says_not_relevant_is_never_read_as_relevant(tmp_path: Path, name: str) -> None:
    assert says_not_relevant(name) and not says_relevant(name) and not says_verdict(name)
    with error_states(repr(name), "not relevant"):
        planned(tmp_path, f"question,{name}\nWho coughs?,n1;n2\nWho sleeps?,n3\n")
    plan = planned(tmp_path, f"question,{name},notes\nWho coughs?,n1;n2,n3\nWho sleeps?,n3,n4\n")
    assert judged(plan) == {("q1", "n3"): 1, ("q2", "n4"): 1}
    some_states(plan.notices, repr(name), "not relevant")
    with error_states(repr(name), "not relevant", "'relevant'"):
        planned(tmp_path, f"question,note_id,{name}\nWho coughs?,n1,yes\nWho coughs?,n2,no\n")


@pytest.mark.parametrize("name", ["Note No.", "question no", "N.º de informe", "Nombre", "number", "relevant notes"])
def test_a_number_is_no_negation(name: str) -> None:
    assert not says_not_relevant(name)


def test_a_question_in_several_rows_has_one_id(tmp_path: Path) -> None:
    rows = "question,note_id,visit\nWho coughs?,n1,v1\nWho coughs?,n2,v2\nWho sleeps?,n3,v3\n"
    assert judged(planned(tmp_path, rows)) == {("q1", "n1"): 1, ("q1", "n2"): 1, ("q2", "n3"): 1}


def test_verdicts_with_a_doubt_among_them_are_asked_for(tmp_path: Path) -> None:
    rows = "question,note_id,A\nWho coughs?,n1,yes\nWho coughs?,n2,no\nWho sleeps?,n3,unclear\n"
    with error_states("'A'", "'yes'", "'no'", "'unclear'", "no_grade (--no-grade)"):
        planned(tmp_path, rows)


def test_two_columns_of_ids_are_two_readings(tmp_path: Path) -> None:
    rows = "question,first,second\nWho coughs?,n1,n2\nWho sleeps?,n3,n4\n"
    with error_states("'first' ('n1', 'n3')", "'second' ('n2', 'n4')", "relevant (--relevant first)"):
        planned(tmp_path, rows)
    assert judged(planned(tmp_path, rows, relevant="second")) == {("q1", "n2"): 1, ("q2", "n4"): 1}


def test_a_number_of_a_question_is_not_taken_for_a_document(tmp_path: Path) -> None:
    notes = NOTES.replace("\nn", "\n")
    with error_states("'difficulty'", "'1'", "'3'", "ids"):
        planned(tmp_path, "question,difficulty\nWho coughs?,1\nWho sleeps?,3\nWho eats?,3\n", notes)


def test_scores_that_are_no_grades_do_not_make_every_pair_relevant(tmp_path: Path) -> None:
    rows = "question,note_id,score\nWho coughs?,n1,0.91\nWho coughs?,n2,0.13\n"
    with error_states("'score'", "'0.91'", "'0.13'", "0, 1, 2"):
        planned(tmp_path, rows)
    assert len(judged(planned(tmp_path, rows, typed=ImportChoices(no_grade=True)))) == 2


@pytest.mark.parametrize(
    ("heads", "rows"),
    [
        ("question,n1,n2,n3", "Who coughs?,1,0,\nWho sleeps?,0,2,1\n"),
        ("question,n1,n2", "Who coughs?,x,\nWho sleeps?,,x\n"),
    ],
)
def test_a_column_of_grades_for_each_document_stops_the_import(tmp_path: Path, heads: str, rows: str) -> None:
    with error_states("asked.csv", "hold grades", "row for each question and document", "no_grade (--no-grade)"):
        planned(tmp_path, f"{heads}\n{rows}")
    assert judged(planned(tmp_path, f"{heads}\n{rows}", typed=ImportChoices(no_grade=True))) == {}


def test_a_column_of_grades_for_each_number_of_a_document_stops_the_import(tmp_path: Path) -> None:
    with error_states("asked.csv", "'column 2'", "ids of documents", "relevant (--relevant 'column 2')"):
        planned(tmp_path, "question,1,2,3\nWho coughs?,1,0,\nWho sleeps?,0,2,1\n", NOTES.replace("\nn", "\n"))


def test_a_table_of_grades_without_texts_or_documents_stops_the_import(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("id,question\nF1,Who coughs?\nF2,Who itches?\n")
    (tmp_path / "notes.csv").write_text(NOTES)
    (tmp_path / "grades.csv").write_text("case,n1,n2\nF1,1,0\nF2,0,1\n")
    with error_states("grades.csv", "no column holds texts"):
        plan_import([tmp_path / name for name in ("notes.csv", "q.csv", "grades.csv")])


@pytest.mark.parametrize(
    ("heads", "row", "facts"),
    [
        ("question,relevant", "Who coughs?,Visit of May", ["asked.csv", "'Visit of May'"]),
        ("question,relevant notes,seen", "Who coughs?,Visit of May,n1", ["asked.csv", "'Visit of May'"]),
        ("question,A,B", "Who coughs?,1,0", ["'A'", "'B'", "grades", "documents"]),
    ],
)
def test_references_that_are_no_ids_are_an_error(tmp_path: Path, heads: str, row: str, facts: list[str]) -> None:
    notes = "note_id,visit,note\nn1,Visit 1,A cough since May and no fever.\nn2,Visit 2,An itch since June.\n"
    with error_states(*facts):
        _ = planned(tmp_path, f"{heads}\n{row}\n", notes).notices


@pytest.mark.parametrize(
    ("heads", "texts"),
    [
        ("id,内容", ("患者咳嗽发热三天无皮疹", "去年髋关节置换术后恢复良好", "服用抗生素后双臂出现皮疹")),
        (
            "id,内容の説明文",
            ("患者は三日前から咳と発熱がある。", "昨年股関節を置換し経過は良好。", "両腕に発疹がある。"),
        ),
        (
            "문서번호,본문",
            ("환자는 사흘 전부터 기침과 열이 있다.", "작년에 고관절 수술을 받았다.", "두 팔에 발진이 있다."),
        ),
        ("id,x", ("ผู้ป่วยมีไข้และไอมาสามวัน", "เปลี่ยนข้อสะโพกเมื่อปีที่แล้ว", "ผื่นขึ้นที่แขนทั้งสองข้าง")),
        ("病历号,病程记录", ("咳嗽。", "发热三天。", "双臂皮疹。")),
    ],
)
def test_texts_without_spaces_are_texts_and_ids_are_ids(tmp_path: Path, heads: str, texts: tuple[str, ...]) -> None:
    rows = "".join(f"n{number},{text}\n" for number, text in enumerate(texts, 1))
    (tmp_path / "notes.csv").write_text(f"{heads}\n{rows}", encoding="utf-8")
    plan = plan_import([tmp_path / "notes.csv"])
    assert list(plan._catalogue.documents()) == [
        {"id": f"n{number}", "text": text} for number, text in enumerate(texts, 1)
    ]

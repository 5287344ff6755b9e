import csv
from pathlib import Path

import pytest

from r2med.construction.translation.languages import language
from r2med.construction.translation.translation_checks import TranslationChecks

HERE = Path(__file__).parent
CHINESE, ENGLISH, GERMAN = map(language, ("Chinese", "English", "German"))
KINDS = {
    "number": {"number lost", "number added"},
    "unit": {"unit changed", "unit added", "number lost", "number added"},
    "drug": {"drug lost", "drug added", "name lost"},
    "negation": {"negation lost", "negation added", "negation moved"},
}
MISSED = ("巨核细胞减少", "窦性心动过速", "低血糖昏迷")
"""Sentences whose translation says the opposite in another word, which no check finds."""


def rows(name):
    with (HERE / f"{name}_pairs.tsv").open(encoding="utf-8") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def checks(source=CHINESE, to=ENGLISH):
    with (HERE / "drugs.csv").open(encoding="utf-8") as lines:
        drugs = {row["source"]: tuple(row["translation"].split("|")) for row in csv.DictReader(lines)}
    return TranslationChecks(source, to, drugs, 30)


@pytest.mark.parametrize(
    ("name", "alarms"),
    [("tuned", []), ("heldout", []), ("record", []), ("fresh", ["颈无抵抗，克氏征、布氏征均阴性。"])],
)
def test_good_translations_raise_no_alarm_except_where_a_negation_became_another_word(name, alarms):
    good = rows(f"{name}_good")
    assert len(good) > 20
    assert [row[0] for row in good if checks().faults(*row)] == alarms  # 无抵抗 (no resistance) became "supple"


@pytest.mark.parametrize("name", ["tuned", "heldout"])
def test_planted_faults_are_found_by_the_check_that_is_for_them(name):
    for kind, *pair in rows(f"{name}_faulty"):
        found = {fault.partition(":")[0] for fault in checks().faults(*pair)}
        if any(words in pair[0] for words in MISSED):
            assert not found
        else:
            assert found & KINDS.get(kind, found), pair


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        ("患者发热。", "患者 has a fever.", "not translated: 患者"),
        ("患者发热。", "😀 38", "not translated: 😀 38"),
        ("3天左右。", "About 3 days.", ""),
        ("左氧氟沙星0.5g。", "Levofloxacin 0.5 g.", ""),
        ("血压120/80。", "Blood pressure 120/80.", ""),
        ("血压120/80 mmHg。", "Blood pressure 80/120 mmHg.", "numbers swapped: 120/80 became 80/120"),
        ("视力1.0/0.5。", "Visual acuity 1.0/0.5.", ""),
        ("2021年3月5日入院。", "Admitted on May 3, 2021.", "numbers swapped: month 3, day 5 became month 5, day 3"),
        ("2021年3月5日入院，5月3日出院。", "Admitted on 5 March 2021 and discharged on May 3.", ""),
        ("2021/3/5入院。", "Admitted on 5/3/2021.", ""),
        ("", "", ""),
        ("[NAME-1]发热。", "[NAME-1] has a fever.", ""),
        ("[NAME-1]发热。", "The patient has a fever.", "name lost: [NAME-1]"),
        ("2D超声。", "2D ultrasound.", ""),
        ("体重60千克。", "Weight 60 kg.", ""),
        ("PaO₂60mmHg。", "PaO2 60 mmHg.", ""),
    ],
)
def test_single_cases(source, target, fault):
    assert checks().faults(source, target) == ((fault,) if fault else ())


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        ("Kein Fieber, Temperatur 36,8 °C, 1.200 Leukozyten.", "No fever, temperature 36.8 °C, 1,200 leukocytes.", ""),
        ("Temperatur 36,8 °C.", "Temperature 368 °C.", "number lost: 36.8"),
        ("Der Patient hat kein Fieber.", "The patient has a fever.", "negation lost: kein"),
        (
            "Der Patient hat kein Fieber.",
            "Der Patient hat kein Fieber.",
            "not translated: Der Patient hat kein Fieber.",
        ),
        ("Schmerzen im linken Bein.", "Pain in the right leg.", "side lost: left"),
        ("Drei Tage lang Husten.", "Cough for three days.", "number added: 3"),
    ],
)
def test_german_into_english(source, target, fault):
    assert checks(GERMAN).faults(source, target)[:1] == ((fault,) if fault else ())


def test_a_drug_whose_name_is_part_of_a_longer_name_is_another_drug():
    drugs = {"氯喹": ("chloroquine",), "羟氯喹": ("hydroxychloroquine",)}
    check = TranslationChecks(CHINESE, ENGLISH, drugs)
    assert check.faults("加用羟氯喹。", "Hydroxychloroquine was added.") == ()
    assert check.faults("氯喹改为羟氯喹。", "Chloroquine was changed to hydroxychloroquine.") == ()
    assert check.faults("加用羟氯喹。", "Chloroquine was added.") == (
        "drug lost: 羟氯喹 (hydroxychloroquine)",
        "drug added: chloroquine",
    )


def test_no_text_makes_a_check_fail():
    parts = [
        "三",
        "万",
        "千",
        "1",
        ",",
        ".",
        " ",
        "mg",
        "/",
        "×10",
        "⁹",
        "第",
        "半",
        "年",
        "月",
        "two",
        " and a half",
        "-",
        "无",
        "\ud800",
        "😀",
        "𠀀",
        "%",
        "(",
    ]
    for number in range(400):
        text = "".join(parts[(number * step * step + number // step) % len(parts)] for step in range(1, 9))
        for check in (checks(), checks(ENGLISH, CHINESE)):
            assert isinstance(check.faults(text, text[::-1], text), tuple)
    long = "三万1,0" * 5_000
    assert checks().faults(long, long)


@pytest.mark.parametrize("comma", ["，", ","])
def test_a_negation_that_changed_its_clause_is_found_after_commas_of_either_width(comma):
    source, back = f"否认高血压病史{comma}有糖尿病史。", f"有高血压病史{comma}否认糖尿病史。"
    faults = checks().faults(source, "He has a history of hypertension and denies diabetes.", back)
    assert {fault.partition(":")[0] for fault in faults} == {"negation moved"}

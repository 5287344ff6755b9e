import csv
import re
from pathlib import Path

import pytest

from r2med.construction.translation.critical_words import critical_faults
from r2med.construction.translation.languages import language
from r2med.construction.translation.translation_checks import TranslationChecks, negation_faults

HERE = Path(__file__).parent
CHINESE, ENGLISH, GERMAN = map(language, ("Chinese", "English", "German"))
NAMES = {"zh": "Chinese", "en": "English", "de": "German", "fr": "French", "es": "Spanish"}
KINDS = {
    "number": {"number lost", "number added", "number moved"},
    "unit": {"unit changed", "number lost", "number added", "frequency added"},
    "drug": {"drug lost", "drug added", "name lost"},
    "negation": {"negation lost", "negation added", "negation moved"},
}


def rows(name):
    with (HERE / f"{name}_pairs.tsv").open(encoding="utf-8") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def checks(source=CHINESE, to=ENGLISH):
    with (HERE / "drugs.csv").open(encoding="utf-8") as lines:
        drugs = {row["source"]: tuple(row["translation"].split("|")) for row in csv.DictReader(lines)}
    return TranslationChecks(source, to, drugs, 30)


@pytest.mark.parametrize("name", ["tuned", "heldout", "record", "fresh"])
def test_good_translations_raise_no_alarm(name):
    good = rows(f"{name}_good")
    assert len(good) > 20
    assert [row[0] for row in good if checks().faults(*row)] == []


@pytest.mark.parametrize("name", ["tuned", "heldout"])
def test_planted_faults_are_found_by_the_check_that_is_for_them(name):
    for kind, *pair in rows(f"{name}_faulty"):
        found = {fault.partition(":")[0] for fault in checks().faults(*pair)}
        assert found & KINDS.get(kind, found), pair


@pytest.mark.parametrize(
    ("name", "count", "faulty"),
    [("dangerous", 40, 40), ("harmless", 40, 0), ("second_dangerous", 30, 28), ("second_harmless", 30, 4)],
)
def test_dangerous_pairs_have_faults_and_harmless_pairs_have_few(name, count, faulty):
    found = []
    for code, _, source, back in rows(name):
        tongue = language(NAMES[code])
        found.append([*critical_faults(source, back, tongue), *negation_faults(source, back, tongue)])
    assert (len(found), sum(map(bool, found))) == (count, faulty)


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        ("患者发热。", "患者 has a fever.", "not translated: 患者"),
        ("患者发热。", "😀 38", "not translated: 😀 38"),
        ("", "", ""),
        ("[NAME-1]发热。", "[NAME-1] has a fever.", ""),
        ("[NAME-1]发热。", "The patient has a fever.", "name lost: [NAME-1]"),
        ("停用华法林。", "Heparin was stopped.", "drug lost: 华法林 (warfarin)"),
        ("2D超声。", "2D ultrasound.", ""),
    ],
)
def test_names_and_scripts_are_compared_without_a_translation_back(source, target, fault):
    assert checks().faults(source, target)[:1] == ((fault,) if fault else ())


@pytest.mark.parametrize(
    ("source", "target", "back", "fault"),
    [
        ("Kein Fieber, 36,8 °C.", "No fever, 36.8 °C.", "Kein Fieber, 36,8 °C.", ""),
        ("Der Patient hat kein Fieber.", "The patient has a fever.", "Der Patient hat Fieber.", "negation lost: kein"),
        ("Schmerzen im linken Bein.", "Pain in the right leg.", "Schmerzen im rechten Bein.", "side lost: left"),
        (
            "Der Patient hat kein Fieber.",
            "Der Patient hat kein Fieber.",
            "",
            "not translated: Der Patient hat kein Fieber.",
        ),
    ],
)
def test_german_into_english(source, target, back, fault):
    assert checks(GERMAN).faults(source, target, back)[:1] == ((fault,) if fault else ())


EXCHANGED = {
    "number": (r"(?<![A-Za-z\d.-])\d+", lambda digits: digits[:-1] + str((int(digits[-1]) + 3) % 10)),
    "unit": (
        r"(?<=\d)(?:mg|g|mmol|cm|天|小时|周)(?![a-zA-Z])",
        {"mg": "g", "g": "mg", "mmol": "μmol", "cm": "mm", "天": "周", "小时": "天", "周": "月"}.get,
    ),
    "negation": (r"[无未](?!力|意)|否认", {"无": "有", "未": "", "否认": "有"}.get),
    "side": ("左|右", {"左": "右", "右": "左"}.get),
    "time": ("(?<=[天年月周术餐饭])[前后]", {"前": "后", "后": "前"}.get),
}


@pytest.mark.parametrize(
    ("kind", "made", "found"),
    [("number", 170, 170), ("unit", 56, 56), ("negation", 38, 35), ("side", 2, 2), ("time", 8, 8)],
)
def test_changes_of_single_words_in_the_translation_back_are_found(kind, made, found):
    pattern, change = EXCHANGED[kind]
    good = [row for name in ("tuned", "heldout", "record", "fresh") for row in rows(f"{name}_good")]
    changed = [
        (source, target, back[: match.start()] + change(match[0]) + back[match.end() :])
        for source, target, back in good
        for match in re.finditer(pattern, back)
    ]
    assert (len(changed), sum(bool(checks().faults(*pair)) for pair in changed)) == (made, found)

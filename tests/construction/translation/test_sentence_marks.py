import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from r2med.construction.translation.languages import language
from r2med.construction.translation.sentence_marks import NO_BACK, han_value, numbers, sentence_marks

CHINESE, ENGLISH = language("Chinese"), language("English")
NAMES = {"zh": "Chinese", "en": "English", "de": "German", "fr": "French", "es": "Spanish"}


def rows(name):
    with Path(__file__).with_name(f"{name}.tsv").open(encoding="utf-8") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def marks(source, target, back, of=CHINESE, to=ENGLISH):
    return [*sentence_marks(source, target, back, of, to)]


@pytest.mark.parametrize(
    ("sign", "value"), [("四十二", 42), ("二〇一九", 2019), ("十", 10), ("三百零五", 305), ("一万二千", 12000)]
)
def test_chinese_numbers_have_their_value(sign, value):
    assert han_value(sign) == value


@pytest.mark.parametrize(
    ("code", "text", "values"),
    [
        ("zh", "血压120/80mmHg", ["120", "80"]),
        ("zh", "白细胞12.3*10^9/L，IL-6升高", ["12300000000"]),
        ("zh", "白细胞12.3×10⁹/L，PaO₂60mmHg", ["12300000000"]),
        ("zh", "1.2万，十二指肠，百日咳，三天半", ["12000", "3.5"]),
        ("zh", "５０mg　bid", ["50", "2"]),
        ("de", "1.200,5 mg und drei Tage", ["1200.5", "3"]),
        ("en", "10-15 mg/kg twice a week for 1 week, twenty-five times", ["10", "15", "2", "25"]),
    ],
)
def test_numbers_are_read_in_digits_and_in_words(code, text, values):
    assert Counter(f"{value:f}" for value in numbers(text, language(NAMES[code])).elements()) == Counter(values)


@pytest.mark.parametrize(
    ("source", "target", "back", "expected"),
    [
        ("无咳嗽。", "No cough.", "无咳嗽。", []),
        ("体温38.5℃。", "Temperature 35.8 °C.", "体温35.8℃。", ["number lost: 38.5", "number added: 35.8"]),
        ("无咳嗽。", "Cough.", "咳嗽。", ["negation lost: 无"]),
        ("咳嗽。", "No cough.", "无咳嗽。", ["negation added: 无"]),
        (
            "无发热，有咳嗽。",
            "Fever, no cough.",
            "有发热，无咳嗽。",
            ["negation moved: 发热", "negation moved: 有咳嗽"],
        ),
        ("患者发热。", "患者 has a fever.", "患者发热。", ["not translated: 患者"]),
        ("患者发热。", "The patient has a fever.", "", [NO_BACK]),
        ("", "", "", [NO_BACK]),
    ],
)
def test_changed_numbers_and_negations_are_marked(source, target, back, expected):
    assert marks(source, target, back) == expected


def test_languages_of_one_script_are_not_searched_for_letters_of_the_source():
    german = language("German")
    assert marks("Kein Fieber, 36,8 °C.", "No fever, 36.8 °C.", "Kein Fieber, 36,8 °C.", german) == []


def test_good_translations_have_almost_no_marks():
    good = rows("good_pairs")
    assert (len(good), [row[0][:10] for row in good if marks(*row)]) == (111, ["T36.8℃，P78"])


def test_planted_numbers_and_negations_are_marked():
    faulty = rows("faulty_pairs")
    missed = [source for _, source, target, back in faulty if not marks(source, target, back)]
    assert (len(faulty), missed) == (32, [])


def test_few_harmless_pairs_of_five_languages_have_marks():
    harmless = rows("harmless_pairs")
    assert (len(harmless), sum(bool(marks(source, "", back, language(NAMES[code])))
                               for code, source, back in harmless)) == (110, 3)  # fmt: skip


def test_changed_numbers_and_negations_of_five_languages_are_marked_except_numbers_that_only_moved():
    marked = Counter()
    for code, kind, source, back in rows("changed_pairs"):
        marked[kind, bool(marks(source, "", back, language(NAMES[code])))] += 1
    assert marked == {("number", True): 5, ("number", False): 3, ("polarity", True): 12, ("polarity", False): 1}


CHANGES = {
    "number": (r"(?<![A-Za-z\d.-])\d+", lambda digits: digits[:-1] + str((int(digits[-1]) + 3) % 10)),
    "negation": (r"[无未](?!力|意)|否认", {"无": "有", "未": "", "否认": "有"}.get),
}


@pytest.mark.parametrize(("kind", "made", "marked"), [("number", 170, 170), ("negation", 38, 35)])
def test_changes_of_single_words_in_the_translation_back_are_marked(kind, made, marked):
    pattern, change = CHANGES[kind]
    changed = [
        (source, target, back[: match.start()] + change(match[0]) + back[match.end() :])
        for source, target, back in rows("good_pairs")
        for match in re.finditer(pattern, back)
    ]
    assert (len(changed), sum(bool(marks(*pair)) for pair in changed)) == (made, marked)

from collections import Counter
from pathlib import Path

import pytest

from r2med.construction.translation.critical_words import critical_faults, han_value, quantities
from r2med.construction.translation.languages import language
from r2med.construction.translation.translation_checks import negation_faults

NAMES = {"zh": "Chinese", "en": "English", "de": "German", "fr": "French", "es": "Spanish"}


def faults(code, source, back):
    return list(critical_faults(source, back, language(NAMES[code])))


@pytest.mark.parametrize(
    ("sign", "value"), [("四十二", 42), ("二〇一九", 2019), ("十", 10), ("三百零五", 305), ("一万二千", 12000)]
)
def test_chinese_numbers_have_their_value(sign, value):
    assert han_value(sign) == value


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        ("zh", "血压120/80mmHg", ["120 mmHg", "80 mmHg"]),
        ("zh", "白细胞12.3*10^9/L，IL-6升高", ["12300000000 /L"]),
        ("zh", "1.2万", ["12000 "]),
        ("de", "1.200,5 mg und 3 Tage", ["1200.5 mg", "3 day"]),
        ("en", "10-15 mg/kg for 1 week", ["10 mg/kg", "15 mg/kg"]),
        ("en", "40 mg/day, 80 beats per minute", ["40 mg", "80 /minute"]),
    ],
)
def test_numbers_have_their_units_and_ranges_share_one(code, text, found):
    assert [f"{value:f} {unit}" for value, unit in quantities(text, language(NAMES[code]))] == found


@pytest.mark.parametrize(
    ("code", "source", "back", "found"),
    [
        ("zh", "血压120/80 mmHg。", "血压80/120 mmHg。", ["number moved: 120, 80 became 80, 120"]),
        ("zh", "2021年3月5日入院。", "2021年5月3日入院。", [
            "unit changed: 3 month became 3 day", "unit changed: 5 day became 5 month"
        ]),
        ("zh", "左氧氟沙星0.5g，3天左右。", "左氧氟沙星0.5克，约三天。", []),
        ("zh", "体重60千克，PaO₂60mmHg。", "体重60公斤，PaO2 60毫米汞柱。", []),
        ("zh", "十二指肠溃疡，百日咳。", "十二指肠溃疡、百日咳。", []),
        ("zh", "５０mg　bid", "50毫克，每日两次", []),
        ("en", "Weakness of the right arm, then the left leg.", "Weakness of the left arm, then the right leg.", [
            "side moved: right, left became left, right"
        ]),
        ("en", "His mother had it.", "His father had it.", ["relative lost: mother", "relative added: father"]),
        ("en", "5 mg weekly", "5 mg daily", ["frequency lost: week", "frequency added: day"]),
        ("en", "5 mg on day 5", "5 g on the fifth day", ["unit changed: 5 mg became 5 g"]),
        ("en", "Losartan, then lisinopril.", "Lisinopril, then losartan.", [
            "drug moved: losartan, lisinopril became lisinopril, losartan"
        ]),
        ("de", "Temperatur 36,8 °C.", "Temperatur 368 °C.", ["number lost: 36.8", "number added: 368"]),
        ("fr", "avant le repas", "après le repas", ["time order lost: before", "time order added: after"]),
        ("es", "Tensión elevada.", "Tensión baja.", ["direction lost: up", "direction added: down"]),
        ("en", "", "", []),
    ],
)  # fmt: skip
def test_single_cases(code, source, back, found):
    assert faults(code, source, back) == found


def test_most_dangerous_pairs_of_a_writer_who_does_not_know_the_checks_are_found():
    found = Counter()
    for line in Path(__file__).with_name("blind_pairs.tsv").read_text("utf-8").splitlines():
        code, kind, source, back = line.split("\t")
        found[kind] += bool(faults(code, source, back) or [*negation_faults(source, back, language(NAMES[code]))])
    assert found["dangerous"] >= 38 and found["harmless"] <= 3, "of 40 each"

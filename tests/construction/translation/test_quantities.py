from decimal import Decimal

import pytest

from r2med.construction.translation.languages import language
from r2med.construction.translation.quantities import han_value, quantities


@pytest.mark.parametrize(
    ("sign", "value"),
    [
        ("十", 10),
        ("十二", 12),
        ("四十二", 42),
        ("二百五十", 250),
        ("一千零五", 1005),
        ("三万", 30_000),
        ("二〇一九", 2019),
        ("两", 2),
    ],
)
def test_chinese_numbers(sign, value):
    assert han_value(sign) == value


def exact(text, name="Chinese"):
    return [(f"{each.value:f}", each.unit) for each in quantities(text, language(name)).exact]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("１２．５ｍｇ", [("12.5", "mg")]),
        ("5-10毫克", [("5", "mg"), ("10", "mg")]),
        ("120/80mmHg", [("120", "mmHg"), ("80", "mmHg")]),
        ("80次/分", [("80", "/minute")]),
        ("5mg/kg/日", [("5", "mg/kg")]),
        ("15分", [("15", "point")]),
        ("2019年3月5日", [("2019", ""), ("3", "month"), ("5", "")]),
        ("3年", [("3", "year")]),
        ("480万单位", [("4800000", "U")]),
        ("38，120，5", [("38", ""), ("120", ""), ("5", "")]),
        ("2年半", [("2.5", "year")]),
        ("HbA1c、IL-6、CA125", []),
    ],
)
def test_numbers_and_units_of_chinese_records(text, found):
    assert exact(text) == found


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("1,200 mg", "English", [("1200", "mg")]),
        ("1.200,5 mg", "German", [("1200.5", "mg")]),
        ("a 45-year-old", "English", [("45", "age")]),
        ("80 bpm, 18/min", "English", [("80", "/minute"), ("18", "/minute")]),
        ("on day 3", "English", [("3", "day")]),
        ("two and a half years", "English", [("2.5", "year")]),
        ("4.8 million units", "English", [("4800000", "U")]),
        ("40 mg daily", "English", [("40", "mg")]),
        ("40 mg/h", "English", [("40", "mg/hour")]),
    ],
)
def test_numbers_and_units_of_other_languages(text, name, found):
    assert exact(text, name) == found


def test_chinese_number_signs_that_count_nothing_are_not_numbers():
    text = "十二指肠、百日咳、四肢、三尖瓣、万古霉素、进一步"
    assert not quantities(text, language("Chinese")).words
    assert quantities("三天，第二次", language("Chinese")).words == {Decimal(3): 1, Decimal(2): 1}

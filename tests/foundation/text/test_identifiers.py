import pytest

from r2med.foundation.text.identifiers import identifier_warning, identifiers


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("seen by Dr. Anna Weber today", "name"),
        ("Patient: John Smith, 45", "name"),
        ("admitted on 2023-05-14", "date"),
        ("born 3/7/1961", "date"),
        ("on 14 May 2019 she", "date"),
        ("on March 3rd, 2020", "date"),
        ("MRN: 00482913", "record number"),
        ("hospital no. 83-2291", "record number"),
        ("SSN 123-45-6789", "record number"),
        ("call (617) 555-0132", "telephone"),
        ("+49 30 901820-12", "telephone"),
        ("Tel.: 030 1234567", "telephone"),
        ("write to a.b@clinic.example.org", "e-mail"),
        ("住院号：20210387", "record number"),
        ("2021年3月14日入院", "date"),
        ("Fallnummer 20394871", "record number"),
        ("reçu le 17 août 2021", "date"),
        ("DNI 12876543Q", "record number"),
    ],
)
def test_personal_data_is_seen(text, kind):
    assert kind in {identifier.kind for identifier in identifiers(text)}


@pytest.mark.parametrize(
    "text",
    [
        "A 45-year-old man with a blood pressure of 120/80 mmHg and 3.5/4.0/2020 of nothing",
        "Graves disease since 2010, in May 2015 relapse; Hb 12.5 g/dl, platelets 150-400",
        "Marfan syndrome, Crohn disease, Dr visits; doses of 10-20-30 mg, ratio 1:2000",
        "patient 3 of 12 had HLA-B27",
    ],
)
def test_clinical_figures_and_eponyms_are_not(text):
    assert not [each for each in identifiers(text) if each.kind != "date"]


def test_the_warning_counts_and_does_not_repeat_what_it_saw():
    line = identifier_warning("judge sends to gpt4", ["Mr. Jones, born 3/7/1961", "a cough", "x@y.org"])
    assert line.startswith("judge sends to gpt4 on another machine: 2 of 3 texts seem to contain personal data")
    assert "1 × e-mail, 1 × date, 1 × name" in line
    assert "Jones" not in line
    assert identifier_warning("x", ["a cough"]) == ""

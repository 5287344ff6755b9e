import re
from collections import Counter
from pathlib import Path

import pytest

from r2med.foundation.text.personal_data import RULE_KINDS, personal_spans
from r2med.foundation.text.placeholders import Placeholders

SETS = Path(__file__).parent / "personal_data"
MARK = re.compile(r"\{([A-Z]+):(.*?)\}", re.DOTALL)


def found(text):
    return [(text[span.start : span.end], span.kind) for span in personal_spans(text)]


def cleaned(*texts):
    placeholders = Placeholders(texts)
    return [placeholders.replace(text, personal_spans(text)) for text in texts]


def marked(line):
    """Return a text without its marks, and the kind, start and end of each mark."""
    text, marks, done = "", [], 0
    for match in MARK.finditer(line):
        text += line[done : match.start()]
        marks.append((match[1], len(text), len(text) + len(match[2])))
        text, done = text + match[2], match.end()
    return text + line[done:], marks


def counts(name):
    """Return how many marks of each kind a set has, how many are found whole, and what else is replaced."""
    planted, hit, wrong = Counter(), Counter(), []
    for line in (SETS / name).read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        text, marks = marked(line.replace("\\n", "\n").replace("\\u200b", "\u200b"))
        spans = personal_spans(text)
        covered = {place for span in spans for place in range(span.start, span.end)}
        personal = {place for _, start, end in marks for place in range(start, end)}
        for kind, start, end in marks:
            if kind in RULE_KINDS:
                planted[kind] += 1
                hit[kind] += all(place in covered or not text[place].isalnum() for place in range(start, end))
        wrong += [text[place] for place in sorted(covered - personal) if text[place].isalnum()]
    return planted, hit, "".join(wrong)


@pytest.mark.parametrize("language", ["de", "es", "fr", "zh"])
def test_nothing_is_replaced_in_a_hundred_clean_clinical_sentences(language):
    sentences = (SETS / f"clean_{language}.txt").read_text("utf-8").splitlines()
    assert len(sentences) == 100
    assert [(text, replaced) for text in sentences if (replaced := found(text))] == []


@pytest.mark.parametrize(
    ("language", "planted", "missed"),
    [("en", 43, 2), ("de", 44, 1), ("es", 42, 2), ("fr", 42, 1), ("zh", 42, 0)],
)
def test_personal_data_in_twelve_notes_is_found_and_nothing_else_is_replaced(language, planted, missed):
    there, hit, wrong = counts(f"notes_{language}.txt")
    assert (there.total(), there.total() - hit.total(), wrong) == (planted, missed, "")


@pytest.mark.parametrize("language", ["de", "es", "fr", "zh"])
def test_nothing_is_replaced_in_a_hundred_sentences_of_a_writer_who_does_not_know_the_rules(language):
    sentences = (SETS / f"blind_clean_{language}.txt").read_text("utf-8").splitlines()
    assert len(sentences) == 100
    assert [(text, replaced) for text in sentences if (replaced := found(text))] == []


@pytest.mark.parametrize(
    ("language", "planted", "least"), [("en", 22, 22), ("de", 22, 21), ("es", 20, 18), ("fr", 22, 20), ("zh", 24, 22)]
)
def test_most_personal_data_in_notes_of_a_writer_who_does_not_know_the_rules_is_found(language, planted, least):
    there, hit, wrong = counts(f"blind_notes_{language}.txt")
    assert there.total() == planted and hit.total() >= least and wrong == ""


def test_of_english_sentences_with_usual_and_hostile_forms_most_are_found():
    there, hit, wrong = counts("planted_en.txt")
    assert (there.total(), hit.total(), wrong) == (74, 64, "")


@pytest.mark.parametrize(
    "text",
    [
        "Wilson disease, Ann Arbor stage II, HTLV-1, C57BL/6 mice, also known as Paragonimus; Dr. Weber lives in Ulm",
        "HbA1c 9.5 %, 120/80 mmHg, 5 mg/kg, aligned with STAR 2.7.10, a QTc of 510 ms. Apgar 8/9/10",
        "NCT01234567, registration number ISRCTN12345678, PMID: 29562145, Gene ID: 672 and CAS no. 50-78-2",
        "a 89-year-old man and 95 % of 120 patients aged 65 to 95 years",
        "Temp 99 F with chills. T 98F, 100 M NaCl, 92 kg, 95 mm, vor 100 Jahren; symptoms since 1995; built in 1927",
        "dilution 1/2000, le 1/3 moyen, L4/5, 1-0-1, 3/17 nodes, 576 900 (330 000-701 200) years of life",
        "level 5 may be high; the march of 12 patients; a 12-year-old with 10 years of age-related decline",
        "",
    ],
)
def test_medical_terms_names_and_numbers_stay(text):
    assert found(text) == []


def test_one_value_has_one_placeholder_in_all_texts_of_an_item():
    assert cleaned("MRN 482913 and MRN 482914", "again MRN 482913") == [
        "MRN [ID-1] and MRN [ID-2]",
        "again MRN [ID-1]",
    ]
    names = Placeholders()
    assert [names.of("NAME", name) for name in ("John Smith", "Ann Lee", "Smith", "john  smith", "Lee", "王小明")] == [
        *("[NAME-1]", "[NAME-2]", "[NAME-1]", "[NAME-1]", "[NAME-2]", "[NAME-3]"),
    ]


def test_placeholders_that_a_text_already_has_are_kept_and_not_used_again():
    assert cleaned("[DATE-1] and 3 May 2021 and [DATE-7].") == ["[DATE-1] and [DATE-8] and [DATE-7]."]
    assert cleaned("[DATE-99999999999] or [NAME-x]") == ["[DATE-99999999999] or [NAME-x]"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SEEN ON 3 MAY 2021 AND 12 FEB 2014", "SEEN ON [DATE-1] AND [DATE-2]"),
        (
            "from 2016.03.12-2017.03.15, vom 19.3. bis zum 7.5.2029",
            "from [DATE-1]-[DATE-2], vom [DATE-3] bis zum [DATE-4]",
        ),
        ("\uff2d\uff32\uff2e 482913", "\uff2d\uff32\uff2e [ID-1]"),
        ("3 M\u200bay&nbsp;2021 &amp; later", "[DATE-1] &amp; later"),
        ("k.osei@uni&#8203;klinik.example", "[MAIL-1]"),
        ("aged 94, then 89 years old", "aged over 89, then 89 years old"),
        ("患者九十三岁，住院号：20210387", "患者over 89岁，住院号：[ID-1]"),
    ],
)
def test_hidden_and_foreign_forms(text, kept):
    assert cleaned(text) == [kept]


def test_text_outside_the_spans_is_unchanged():
    text = "\u200b&lt;b&gt; seen 3\u00a0May 2021\u2019s note \u2013 5&nbsp;mg\r\n\tdaily &unknown; &#xFFFFFFF;"
    [span] = personal_spans(text)
    assert cleaned(text) == [f"{text[: span.start]}[DATE-1]{text[span.end :]}"]
    assert text[span.start : span.end] == "3\u00a0May 2021"

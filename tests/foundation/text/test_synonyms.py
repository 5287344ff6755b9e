from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.text.synonyms import MAX_WORDS, Synonyms, normal_term

TABLE = Path(__file__).parent / "synonyms.csv"


@pytest.fixture(scope="module")
def table():
    return Synonyms.read(TABLE)


def written(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Heart attack", "HEART-ATTACKS"),
        ("Graves’ disease", "Graves disease"),
        ("Alzheimer's disease", "Alzheimers disease"),
        ("Sjögren syndrome", "Sjogren's Syndrome"),
        ("TNFα", "TNF-alpha"),
        ("oesophageal tumours", "esophageal tumor"),
        ("M.I.", "MIs"),
        ("allergies", "Allergy"),
        ("ﬁbrosis", "fibrosis."),
        ("non\u2011small\u00a0cell", "non-small cell"),
    ],
)
def test_spellings_of_one_term_have_one_form(one, other):
    assert normal_term(one) == normal_term(other)


@pytest.mark.parametrize(("one", "other"), [("AIDS", "AID"), ("Hepatitis B", "Hepatitis C"), ("type 1", "type 2")])
def test_different_terms_have_different_forms(one, other):
    assert normal_term(one) != normal_term(other)


def test_a_table_names_the_concept_of_every_term(table):
    for term in ("heart attacks", "Infarction, Myocardial", "myocardial infarction", "myocardial infarct"):
        assert table.concept(term) == "Myocardial Infarction"
    assert table.concept("Type 2 diabetes mellitus") == "Diabetes Mellitus, Type 2"
    assert table.concept("acute lymphoblastic leukaemia") == "Precursor Cell Lymphoblastic Leukemia-Lymphoma"
    assert table.concept("") is None


def test_concepts_of_a_text_are_found_as_it_writes_them(table):
    text = "All had diabetes mellitus type 2. After the heart\nattack: a myocardial infarction; ALL was ruled out."
    assert table.concepts(text) == {
        "Diabetes Mellitus, Type 2": {"diabetes mellitus type 2"},
        "Myocardial Infarction": {"heart\nattack", "myocardial infarction"},
        "Precursor Cell Lymphoblastic Leukemia-Lymphoma": {"ALL"},
    }


def test_a_term_does_not_cross_punctuation(table):
    assert table.concepts("pain in the heart. Attack of fever, heart (attack)") == {}


def test_the_longest_term_counts():
    table = Synonyms([("Diabetes", "diabetes"), ("Diabetes insipidus", "diabetes insipidus")])
    assert table.concepts("central diabetes insipidus") == {"Diabetes insipidus": {"diabetes insipidus"}}


def test_chinese_terms_are_found_without_spaces():
    assert Synonyms([("心肌梗死", "心梗")]).concepts("患者突发心梗入院") == {"心肌梗死": {"心梗"}}


@pytest.mark.parametrize(
    "text",
    [
        "concept,term\nMyocardial infarction,heart attack\n",
        "\ufeffTerm\tnote\tConcept\nheart attack\tx\tMyocardial infarction\n\n",
        'concept;term\r\n"Myocardial infarction";"heart attack"\r\n',
        "Myocardial infarction,heart attack\n",
        'concept,term\n"Myocardial infarction","heart attack"\nMyocardial infarction,heart attack\n',
    ],
)
def test_tables_are_read(tmp_path, text):
    table = Synonyms.read(written(tmp_path, text))
    assert table.concept("heart attacks") == "Myocardial infarction"
    assert table.concept("myocardial infarction") == "Myocardial infarction"
    assert table.notes == ()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no terms"),
        ("concept,term\n", "no terms"),
        ("concept,name\na,b\n", "no columns concept and term"),
        ("a,b,c\n", "no columns concept and term"),
        ("concept,term\na,\n", ":2: a row needs a concept and a term"),
        ('concept,term\na,"b\nc,d\n', "not a valid row"),
        ("<html></html>", "no columns concept and term"),
    ],
)
def test_a_bad_table_is_one_line(tmp_path, text, error):
    path = written(tmp_path, text)
    with pytest.raises(UserError, match=error) as caught:
        Synonyms.read(path)
    assert str(path) in str(caught.value)


def test_a_table_in_another_encoding_or_without_a_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r":2: not UTF-8"):
        Synonyms.read(written(tmp_path, "concept,term\nSjögren,sicca\n", encoding="latin-1"))
    with pytest.raises(UserError, match="cannot read the table of synonyms"):
        Synonyms.read(tmp_path / "missing.csv")


def test_a_term_in_two_concepts_belongs_to_the_first_and_a_note_says_so():
    table = Synonyms([("Common cold", "cold"), ("COPD", "COLD")], source="table.csv")
    assert table.concept("cold") == "Common cold"
    assert table.notes == (
        "table.csv: 1 term in two concepts; the first concept counts: 'COLD' (Common cold, not COPD)",
    )


def test_concepts_that_name_each_other_are_one_and_a_note_says_so():
    table = Synonyms([("MI", "heart attack"), ("heart attack", "coronary thrombosis"), ("heart attack", "MI")])
    assert {table.concept(term) for term in ("MI", "heart attack", "coronary thrombosis")} == {"MI"}
    assert table.names == ("MI",)
    assert len(table.notes) == 1
    assert "both count as one: 'MI' = 'heart attack'" in table.notes[0]


def test_a_large_table_and_a_hostile_text_take_linear_work():
    long = " ".join(["a"] * 5000)
    table = Synonyms([*((f"concept {n // 5}", f"term {n} of five words") for n in range(20_000)), ("long", long)])
    assert table.concept("term 19999 of five words") == "concept 3999"
    assert table.concept(long) == "long"
    assert max(table._lengths.values()) <= MAX_WORDS
    assert table.concepts("a " * 50_000) == {}

import pytest

from r2med.construction.steps.mining import linked_chunks
from r2med.foundation.core.errors import UserError
from support.builds import built, lines

CASES = lines(
    {
        "patient_uid": "9-1",
        "PMID": "9",
        "title": "Two sisters",
        "patient": "A girl.",
        "diagnosis": "Measles",
    },
    {"patient_uid": "9-2", "PMID": "9", "title": "Two sisters", "patient": "Her sister.", "diagnosis": "measles "},
    {"patient_uid": "7-1", "PMID": "7", "title": "Cough", "patient": "A man with cough.", "diagnosis": "Tuberculosis"},
)
JATS = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96)//EN" "JATS-archivearticle1.dtd">
<article><front><article-meta><article-id pub-id-type="pmc">PMC1</article-id>
<title-group><article-title>A case of <italic>rash</italic></article-title></title-group></article-meta></front>
<body><sec><title>Introduction</title><p>Rashes are common.</p></sec>
<sec><title>Case presentation</title><p>A boy had&nbsp;a rash.</p><p>It itched.</p></sec></body></article>"""


def test_of_the_cases_of_one_diagnosis_the_first_is_the_query_and_the_others_are_pages(tmp_path):
    build = built(tmp_path, ["read-cases(c.jsonl)", "read-case-pages(c.jsonl)"], {"c.jsonl": CASES})
    [question] = build.items(1)
    assert (question.id, question.answer, question.positives) == ("q-9-1", "Measles", ("9-2",))
    assert [page.id for page in build.items(2)] == ["9-2", "7-1"]


def test_cases_may_be_grouped_by_article(tmp_path):
    [question] = built(tmp_path, ["read-cases(c.jsonl, group=article)"], {"c.jsonl": CASES}).items(1)
    assert question.positives == ("9-2",)


def test_the_case_of_an_article_is_what_its_sections_present(tmp_path):
    [question] = built(tmp_path, ["read-cases(a.nxml, group=none)"], {"a.nxml": JATS}).items(1)
    assert (question.id, question.text) == ("q-PMC1", "A boy had a rash.\n\nIt itched.")


def test_a_case_may_have_the_article_that_it_comes_from_as_its_positive(tmp_path):
    rows = {"patient_uid": "1-1", "PMID": "77", "file_path": "comm/PMC1.xml", "patient": "A boy had a rash."}
    for source, written in (("c.jsonl", lines(rows)), ("a.nxml", JATS)):
        steps = [f"read-cases({source}, group=source)", "read-jats(PMC1.nxml)", "chunk"]
        build = built(tmp_path / source[0], steps, {source: written, "PMC1.nxml": JATS})
        [question], [chunk] = build.items(1), build.items(3)
        assert [*linked_chunks([question], [chunk])] == [(question.id, "PMC1-1", "positive")]


def test_cases_without_a_diagnosis_cannot_be_grouped_by_it(tmp_path):
    with pytest.raises(UserError, match=r"no case has a diagnosis: set group=article"):
        built(tmp_path, ["read-cases(a.nxml)"], {"a.nxml": JATS})

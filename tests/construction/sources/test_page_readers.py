"""Pages are read from JSON lines, articles and text files, with where they come from."""

import gzip

import pytest

from r2med.construction.items import Rejected, SourcePage
from r2med.construction.sources.page_readers import ReadJats, ReadPubMed, ReadRows, ReadText
from r2med.construction.step import StepWork, Streams
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from support.builds import built

ARTICLE = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS v1.2//EN" "JATS-archivearticle1.dtd">
<article xmlns:xlink="http://www.w3.org/1999/xlink"><front><article-meta>
<article-id pub-id-type="pmid">1</article-id><article-id pub-id-type="pmc">77</article-id>
<title-group><article-title>A case of <italic>Listeria</italic></article-title></title-group>
<permissions><license xlink:href="https://creativecommons.org/licenses/by/4.0/"><license-p>Open</license-p></license>
</permissions><abstract><p>Short.</p></abstract></article-meta></front>
<body><sec><title>Case</title><p>A woman, 40&#160;years old [<xref ref-type="bibr" rid="r1">1</xref>,
<xref ref-type="bibr" rid="r2">2</xref>], came.</p><table-wrap><p>cell</p></table-wrap>
<sec><title>Course</title><p>She <bold>recovered</bold> (<xref ref-type="fig">Fig. 1</xref>).</p></sec></sec></body>
<back><ref-list><ref><p>Other work</p></ref></ref-list></back></article>"""


def read(step, folder, store):
    items = list(step.run(Streams({}, folder), StepWork(Runtime(store=store))))
    return [each for each in items if isinstance(each, SourcePage)], [
        each for each in items if isinstance(each, Rejected)
    ]


def test_wikipedia_has_its_addresses_and_licence(tmp_path, store):
    rows = [
        '{"id": "12", "title": "Septic shock", "text": "It is."}',
        '{"id": 13, "title": "x", "text": "y", "url": "https://u/"}',
        "{broken",
        '{"id": "14"}',
    ]
    (tmp_path / "wiki.jsonl").write_text("\n".join([*rows, ""]))
    pages, faults = read(ReadRows(path="wiki.jsonl"), tmp_path, store)
    assert [(page.id, page.url) for page in pages] == [
        ("12", "https://en.wikipedia.org/wiki/Septic_shock"),
        ("13", "https://u/"),
    ]
    assert pages[0].licence == "CC BY-SA 4.0"
    assert pages[1].source.endswith("wiki.jsonl:2")
    assert [fault.note.partition("wiki.jsonl")[2] for fault in faults] == [
        ":3: not valid JSON at column 2",
        ":4: none of the fields text, content, contents has a text",
    ]


def test_textbooks_have_content_and_no_address(tmp_path, store):
    (tmp_path / "book.jsonl").write_text('{"title": "Anatomy", "content": "The heart."}\n')
    [page], _ = read(ReadRows(name="read-textbook", path="book.jsonl", licence="own"), tmp_path, store)
    assert (page.id, page.text, page.url, page.licence) == ("book-1", "The heart.", "", "own")


def test_articles_are_read_without_references_and_tables(tmp_path, store):
    (tmp_path / "a.nxml").write_text(ARTICLE)
    (tmp_path / "b.xml").write_text("<article><front/><body><p>cut")
    [page], [fault] = read(ReadJats(path="."), tmp_path, store)
    assert page.id == "PMC77"
    assert page.title == "A case of Listeria"
    assert page.text == "Short.\n\nCase\n\nA woman, 40 years old, came.\n\nCourse\n\nShe recovered (Fig. 1)."
    assert page.url == "https://pmc.ncbi.nlm.nih.gov/articles/PMC77/"
    assert page.licence == "https://creativecommons.org/licenses/by/4.0/"
    assert "b.xml: line 1" in fault.note


def test_text_in_another_encoding_names_the_byte_and_the_setting(tmp_path, store):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfgood")
    (tmp_path / "b.txt").write_bytes("schön".encode("latin-1"))
    (tmp_path / "c.txt").write_text("  ")
    [page], faults = read(ReadText(path="."), tmp_path, store)
    assert (page.id, page.text) == ("a", "good")
    assert "byte 4 is not utf-8: set encoding in read-text" in faults[0].note
    assert faults[1].reason == "no text"
    assert [page.text for page in read(ReadText(path="b.txt", encoding="latin-1"), tmp_path, store)[0]] == ["schön"]
    with pytest.raises(UserError, match="nonsense is not an encoding"):
        ReadText(path="b.txt", encoding="nonsense")


PUBMED = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" "https://dtd.nlm.nih.gov/x.dtd">
<PubmedArticleSet>
<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">101</PMID><Article><ArticleTitle>Treating
<i>Listeria</i> &amp; co.</ArticleTitle><Abstract><AbstractText Label="METHODS" NlmCategory="METHODS">Ten CO<sub>2</sub>
tests.</AbstractText><AbstractText Label="RESULTS">All well.</AbstractText><CopyrightInformation>©
Press</CopyrightInformation></Abstract></Article><CommentsCorrectionsList><CommentsCorrections><PMID>999</PMID>
</CommentsCorrections></CommentsCorrectionsList></MedlineCitation>
<PubmedData><ArticleIdList><ArticleId IdType="pubmed">101</ArticleId></ArticleIdList></PubmedData></PubmedArticle>
<PubmedArticle><MedlineCitation><PMID>102</PMID><Article><ArticleTitle>Letter</ArticleTitle></Article></MedlineCitation>
</PubmedArticle>
<PubmedArticle><MedlineCitation><PMID>103</PMID><Article><ArticleTitle>Plain</ArticleTitle><Abstract><AbstractText>One
paragraph.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>
<DeleteCitation><PMID>7</PMID></DeleteCitation></PubmedArticleSet>"""


def test_pubmed_articles_have_title_and_abstract(tmp_path, store):
    (tmp_path / "pubmed25n0001.xml.gz").write_bytes(gzip.compress(PUBMED.encode()))
    pages, left_out = read(ReadPubMed(path="pubmed25n0001.xml.gz"), tmp_path, store)
    assert [(page.id, page.title) for page in pages] == [("101", "Treating Listeria & co."), ("103", "Plain")]
    assert pages[0].text == "METHODS: Ten CO2 tests.\n\nRESULTS: All well."
    assert pages[0].url == "https://pubmed.ncbi.nlm.nih.gov/101/"
    assert [(each.key, each.reason) for each in left_out] == [("102", "no abstract")]


def test_a_source_of_which_nothing_is_read_is_an_error_that_names_the_right_reader(tmp_path):
    with pytest.raises(UserError) as error:
        built(tmp_path, ["read-jats(p.xml)"], {"p.xml": PUBMED})
    assert str(error.value) == (
        "read-jats(p.xml): no pages were read: the source has nothing that it reads; it reads articles in JATS XML, "
        "each an element article (.xml, .nxml); read-pubmed reads PubMed's own XML"
    )

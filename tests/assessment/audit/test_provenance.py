"""Licence and source are looked for beside the data, and faults of encoding in all texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med import Dataset, Query, load
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.corpus_scan import scan_corpus
from r2med.assessment.audit.provenance import encoding, provenance, shown_characters
from r2med.data.corpus import Corpus
from r2med.data.dataset import Qrels
from r2med.foundation.pages.finding import MAX_EVIDENCE
from support.datasets import r2med_folder


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({}, "licence and the source"),
        ({"README.md": "From the ward.\n"}, "licence"),
        ({"LICENSE": "MIT"}, "source"),
        ({"licence.txt": "MIT", "readme.rst": "From the ward."}, ""),
        ({"README.md": "---\nlicense: mit\n---\nFrom the ward.\n"}, ""),
        ({"README.md": " \n", "COPYING": "GPL"}, "source"),
    ],
)
def test_licence_and_source_are_found_in_files(tmp_path: Path, files: dict[str, str], missing: str) -> None:
    folder = r2med_folder(tmp_path / "mine")
    for name, text in files.items():
        (folder / name).write_text(text)
    dataset = load(folder)
    finding = provenance(AuditMaterial("mine", dataset.qrels, dataset))
    assert finding.verdict == ("look" if missing else "sound")
    assert not missing or f"The {missing} of the dataset" in finding.sentence.replace(
        " and the source", " and the source"
    )


def test_a_bundled_card_states_both() -> None:
    dataset = load("demo/Biology")
    assert provenance(AuditMaterial("demo/Biology", dataset.qrels, dataset)).numbers == {"licence": 1, "source": 1}


def material(texts: list[str], query: str = "what?") -> AuditMaterial:
    corpus = Corpus.of((f"d{number}", text) for number, text in enumerate(texts))
    qrels = Qrels({"q": {"d0": 1}})
    return AuditMaterial("d", qrels, Dataset("d", [Query("q", query)], corpus, qrels))


@pytest.mark.parametrize(
    ("faulty", "text", "verdict"),
    [
        (0, "", "sound"),
        (2, "MÃ©niÃ¨re", "sound"),
        (3, "MÃ©niÃ¨re", "look"),
        (20, "MÃ©niÃ¨re", "broken"),
        (200, "p &lt; 0.05", "look"),  # entities do not break a dataset
        (20, "a\x00b", "broken"),
    ],
)
def test_the_share_of_faulty_documents_decides(faulty: int, text: str, verdict: str) -> None:
    finding = encoding(material([text] * faulty + ["sound"] * (200 - faulty)))
    assert finding.verdict == verdict
    assert sum(finding.numbers.values()) == faulty == sum(len(table.rows) for table in finding.evidence)


def test_faults_of_queries_count_too_and_are_shown_as_code_points() -> None:
    finding = encoding(material(["sound"], "M\ufffdnière\x00?"))
    assert finding.verdict == "broken"
    assert {row[1:] for row in finding.evidence[0].rows} == {("query", "q", "U+FFFD"), ("query", "q", "U+0000")}


def test_invisible_characters_are_shown_as_code_points() -> None:
    assert shown_characters("é\x96\ufffd") == "éU+0096U+FFFD"


def test_a_scan_lists_few_faults_but_counts_all_and_keeps_judged_documents() -> None:
    rows = MAX_EVIDENCE + 5
    scan = scan_corpus(Corpus.of((str(row), " ") for row in range(rows)), {rows - 1})
    assert (scan.empty_count, len(scan.empty)) == (rows, MAX_EVIDENCE + 1)
    assert scan.empty[-1] == rows - 1
    scan = scan_corpus(Corpus.of((str(row), "a\x00") for row in range(rows)), ())
    assert [(kind, len(found)) for kind, found in scan.faults.items()] == [("control characters", MAX_EVIDENCE)]
    assert scan.fault_counts["control characters"] == rows

"""What to cite: the same paper and version in BibTeX and in CITATION.cff."""

from pathlib import Path

import pytest
import yaml

import r2med
from support.commands import typed


def test_the_paper_and_the_installed_version_are_cited(capsys: pytest.CaptureFixture[str]) -> None:
    typed("cite")
    printed = capsys.readouterr().out
    for part in ("author = {Zhang, Xiangxu and", "2505.14558", f"version = {{{r2med.__version__}}}", "Revised in 2026"):
        assert part in printed


def test_the_citation_file_says_the_same() -> None:
    content = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())
    assert content["version"] == r2med.__version__
    [paper] = content["references"]
    assert paper["authors"][0] == {"family-names": "Zhang", "given-names": "Xiangxu"}
    assert paper["url"].endswith("2505.14558")

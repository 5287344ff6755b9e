"""The docs list every limit of the server with its number."""

import re
from pathlib import Path

from r2med.server import limits

DOCS = Path(__file__).parents[2] / "docs/serve-others.md"


def test_the_docs_list_every_limit():
    listed = re.findall(r"^\| ([\d,]+) ", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(f"{value:,}" for name, value in vars(limits).items() if name.isupper())

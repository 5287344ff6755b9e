"""Write the generated pages of the docs from the source: python docs/make_reference.py.

Each page has a module in docs/generators/; `marked_parts.py` fills in parts of pages that are written by hand.
`pages()` returns all texts without writing them, for the test that checks that the files are up to date.
"""

from __future__ import annotations

from pathlib import Path

from generators import (
    api_page,
    cards_page,
    commands_page,
    environment_page,
    expected_page,
    formats_page,
    marked_parts,
    stages_page,
)

DOCS = Path(__file__).parent


def pages() -> dict[Path, str]:
    """Return every generated file with its text."""
    written = {
        "commands.md": commands_page.page(),
        "api.md": api_page.page(),
        "stages.md": stages_page.page(),
        "cards.md": cards_page.page(),
        "formats.md": formats_page.page(),
        "environment.md": environment_page.page(),
        "expected.md": expected_page.page(),
    }
    schemas = {f"schemas/{name}.json": text for name, text in formats_page.schemas().items()}
    return {DOCS / name: text for name, text in {**written, **schemas}.items()} | marked_parts.pages()


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

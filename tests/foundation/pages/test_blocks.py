"""Every kind of block has one look in each format: headings, paragraphs, lists, verbatim texts and tables."""

import io
import re

from rich.console import Console

from r2med.foundation.pages.cells import Column
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.page import Bullets, Page, Paragraph, Section, Table, Verbatim
from r2med.foundation.pages.terminal import print_page
from r2med.foundation.pages.text_formats import page_csv, page_latex, page_markdown, page_value
from r2med.foundation.text.highlight import Words

FEVER = "Nobody knew why. The fever came back with a rash."
PAGE = Page(
    "A page",
    [
        Section(
            "Blocks",
            [
                "A sentence.",
                Paragraph("It is set off.", "quiet"),
                Paragraph("It is strong.", "strong"),
                Paragraph.excerpt("found:", FEVER, Words.of("Which fever?", ["A rash."]), 40),
                Bullets(["one", "two"]),
                Verbatim("A prompt", "Answer.\n  Be brief."),
                Table((Column("name"), Column("score", "score")), [("bm25", 12.345)], "Scores", "One run."),
                Table.of_counts("Lengths", [("short", 2), ("long", 1)]),
            ],
            "The finding.",
            ["One was left out."],
            "blocks",
            "sound",
            "good",
        )
    ],
    "In short.",
    [("Queries", "12", "judged")],
    "The foot.",
    about="A test",
)
TEXT = """Queries: 12 judged

Blocks sound
The finding.
A sentence.
It is set off.
It is strong.
found: … why. The fever came back with a rash.
- one
- two
A prompt
Answer.
  Be brief.
Scores
name score
──────────
bm25 12.35
One run.

Lengths
      count
───────────
short     2
long      1
Note: One was left out.
"""
MARKDOWN = r"""# A page

A test

In short.

|  |  |  |
| :-- | :-- | :-- |
| Queries | 12 | judged |

## Blocks sound

The finding.

A sentence.

It is set off.

**It is strong.**

**found:** … why. The fever came back with a rash.

- one
- two

**A prompt**

    Answer.
      Be brief.

**Scores**

| name | score |
| :-- | --: |
| bm25 | 12.35 |

One run.

**Lengths**

|  | count |
| :-- | --: |
| short | 2 |
| long | 1 |

- One was left out.

The foot.
"""
HTML = (
    '<section class="section" id="blocks"><h2>Blocks <small class="good">sound</small></h2>',
    '<p class="lead">The finding.</p><p>A sentence.</p>',
    '<p class="note">It is set off.</p><p><strong>It is strong.</strong></p>',
    "<p><strong>found:</strong> … why. The <mark>fever</mark> came back with a <mark>rash</mark>.</p>",
    '<ul><li>one</li><li>two</li></ul><div class="texts"><details><summary>A prompt</summary>',
    '<div class="command"><pre>Answer.\n  Be brief.</pre></div></details></div>',
    '<div class="block"><h3>Scores</h3><div class="table-wrap" role="region" tabindex="0" aria-label="Scores">',
    '<table><thead><tr><th scope="col">name</th><th scope="col" class="num">score</th></tr></thead>',
    '<tbody><tr><td><bdi class="name">bm25</bdi></td><td class="num">12.35</td></tr></tbody></table></div>',
    '<p class="note">One run.</p></div><div class="columns"><div class="block"><h3>Lengths</h3>',
    '<div class="table-wrap" role="region" tabindex="0" aria-label="Lengths"><table class="bars"><tbody>',
    '<tr><th scope="row">short</th><td class="bar">BAR</td><td class="num">2</td></tr>',
    '<tr><th scope="row">long</th><td class="bar">BAR</td><td class="num">1</td></tr></tbody></table>',
    "</div></div></div>",
    '<ul class="notes"><li>One was left out.</li></ul></section>',
)


def printed(colours: bool) -> str:
    out = io.StringIO()
    system = "standard" if colours else None
    print_page(PAGE, Console(file=out, width=60, force_terminal=colours, color_system=system, highlight=False))
    return out.getvalue()


def test_a_terminal_shows_the_blocks_from_top_to_bottom() -> None:
    assert [line.rstrip() for line in printed(colours=False).splitlines()] == TEXT.splitlines()


def test_colours_of_a_terminal_show_tones_and_the_sources_of_words() -> None:
    lines = printed(colours=True).splitlines()
    assert "\x1b[1mBlocks\x1b[0m \x1b[1;32msound\x1b[0m" in lines
    assert "\x1b[2mIt is set off.\x1b[0m" in lines
    marked = "\x1b[1mfound: \x1b[0m… why. The \x1b[1;33mfever\x1b[0m came back with a \x1b[1;36mrash\x1b[0m."
    assert marked in lines, "the label and the words that match are bold, nothing else"
    assert lines[-2].startswith("\x1b[2mWords of the question are yellow")


def test_markdown_has_every_block() -> None:
    assert page_markdown(PAGE) == MARKDOWN


def test_html_has_every_block_and_draws_counts_as_bars() -> None:
    section = re.search("<section.*</section>", page_html(PAGE), re.DOTALL)
    assert section and re.sub("<svg.*?</svg>", "BAR", section[0]) == "".join(HTML)


def test_json_has_the_texts_of_blocks_and_their_tables() -> None:
    (section,) = page_value(PAGE)["sections"]
    assert section["texts"] == [
        "A sentence.",
        "It is set off.",
        "It is strong.",
        "found: … why. The fever came back with a rash.",
        "one",
        "two",
        "Answer.\n  Be brief.",
    ]
    assert [table["title"] for table in section["tables"]] == ["Scores", "Lengths"]
    assert {key: value for key, value in section.items() if key not in ("texts", "tables")} == {
        "name": "blocks",
        "title": "Blocks",
        "aside": "sound",
        "lead": "The finding.",
        "notes": ["One was left out."],
    }


def test_csv_and_latex_have_the_tables() -> None:
    assert page_csv(PAGE) == "name,score\nbm25,12.345\n\n,count\nshort,2\nlong,1\n"
    assert page_latex(PAGE).count("\\begin{table}") == 2
    assert "\\caption{Scores One run.}" in page_latex(PAGE)

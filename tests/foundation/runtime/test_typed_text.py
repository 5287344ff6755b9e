"""Messages name settings in Python, and flags on the command line."""

import ast
import re
from pathlib import Path

import pytest

import r2med as package
from r2med.foundation.pages.page import Note, Page, Section, Table
from r2med.foundation.runtime.typed_text import as_typed, page_as_typed

SOURCE = Path(package.__file__).parent


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("allow it with Setup(trust_remote_code=True)", "allow it with --trust-remote-code"),
        ("use Setup(device='cpu', dtype='float32').", "use --device cpu --dtype float32."),
        ("leave Setup(dtype=...) out", "leave --dtype out"),
        ("Setup(model_paths={'minilm': 'DIR'}), or R2MED_MODELS", "--model-path minilm=DIR, or R2MED_MODELS"),
        ("Setup(memory=...) and Setup(offline=True)", "--memory and --offline"),
        ("run(expand=['hyde', 'rm3'], llms=['o3-mini'])", "--expand hyde --expand rm3 --llm o3-mini"),
        ("r2med.run('rm3 → bm25', data='demo') makes one", "r2med run 'rm3 → bm25' --data demo makes one"),
        ("(r2med.import_tables('a.csv', text='COLUMN'))", "(r2med data import a.csv --text COLUMN)"),
        ("r2med.run('f(x)', data='a)b')", "r2med run 'f(x)' --data 'a)b'"),
        ("r2med.run(['bm25', 'rm3'], data='demo')", "r2med run bm25 rm3 --data demo"),
        ("make it with board(texts=False)", "make it with --without-texts"),
        ("Setup(models_kept=5) has no flag", "Setup(models_kept=5) has no flag"),
        ("hyde(llm=o3) and bm25(k1=2) stay", "hyde(llm=o3) and bm25(k1=2) stay"),
        ("a run(of the mill) and Setup(", "a run(of the mill) and Setup("),
    ],
)
def test_calls_become_what_one_types(message, typed):
    assert as_typed(message) == typed


def test_notes_of_a_page_name_flags_and_its_tables_stay():
    call = "Setup(offline=True)"
    table = Table((), [], note=call)
    page = page_as_typed(Page("", [Section("", [Note(call), table], notes=[call])]))
    assert page.sections[0].parts == [Note("--offline"), table] and list(page.sections[0].notes) == ["--offline"]


FLAG = re.compile(r"(?<![\w-])--[a-z]")
PROGRAMS = re.compile(r"\b(r2med|ray|pip) [a-z]")
"""A whole command line is one, whoever reads it."""


def _texts(file: Path) -> list[str]:
    """Return the strings of a file, without docstrings and without lone flags, which commands are made of."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    formatted = [node.values for node in nodes if isinstance(node, ast.JoinedStr)]
    skipped = {id(part) for parts in formatted for part in parts}
    skipped |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    whole = [[node] for node in nodes if isinstance(node, ast.Constant) and id(node) not in skipped]
    texts = ["".join(str(getattr(part, "value", "")) for part in parts) for parts in [*formatted, *whole]]
    return [text for text in texts if not re.fullmatch(r"--[a-z-]+", text)]


@pytest.mark.parametrize("room", sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "cli"))
def test_no_message_of_the_package_names_a_flag(room):
    found = [
        f"{file.relative_to(SOURCE)}: {text}"
        for file in (SOURCE / room).rglob("*.py")
        if file.name not in ("typed_text.py", "typed_notices.py")  # it makes the flags
        for text in _texts(file)
        if FLAG.search(text) and not PROGRAMS.search(text)
    ]
    assert not found, "name the setting in Python, as in Setup(dtype='float32'): the command line prints its flag"

"""The notebook of the docs: it runs from its first cell to its last, and is kept without outputs."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "tour.ipynb"


def test_every_cell_of_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        assert not cell["outputs"] and cell["execution_count"] is None
        code = ast.parse("".join(cell["source"]))
        last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
        exec(compile(code, NOTEBOOK.name, "exec"), names)
        if isinstance(last, ast.Expr):  # what a notebook shows
            shown = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
            assert shown is None or shown._repr_html_().startswith("<table>")

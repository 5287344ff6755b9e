"""Benchmarks run rarely: what they import from r2med must be there."""

import ast
import importlib
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda file: file.stem)
def test_what_a_benchmark_imports_is_there(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "r2med":
            module = importlib.import_module(str(node.module))
            missing = [each.name for each in node.names if not hasattr(module, each.name)]
            for name in missing:
                importlib.import_module(f"{node.module}.{name}")

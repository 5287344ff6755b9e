"""Starting up costs nothing: heavy modules are imported where they are used, and imports only go down."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import r2med

SOURCE = Path(r2med.__file__).parent
HEAVY = {"numpy", "scipy", "pyarrow", "pydantic_core", "torch", "huggingface_hub"}

# Bottom to top, as docs/design.md has it; a room may import from its own floor and from those below.
FLOORS = [
    {"errors", "lazy", "plugins", "spec", "cost", "cards", "stages", "version"},
    {"text", "store", "engine"},
    {"net"},
    {"setup"},
    {"data"},
    {"encoders"},
    {"crossencoders"},
    {"llm"},
    {"prompts"},
    {"retrieve"},
    {"expand"},
    {"agents"},
    {"rerank"},
    {"system"},
    {"measure"},
    {"results"},
    {"serve"},
    {"cli"},
]


def loaded(statement):
    code = f"import sys; {statement}; print(' '.join(m for m in sys.modules if '.' not in m))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_imports_nothing_heavy():
    assert not loaded("import r2med") & HEAVY
    assert "rich" not in loaded("import r2med")


def test_the_help_page_imports_nothing_heavy():
    code = "sys.argv = ['r2med', '--help']\ntry:\n  from r2med.cli import main; main()\nexcept SystemExit: pass"
    code = f"import sys\n{code}\nprint('MODULES', *(m for m in sys.modules if '.' not in m))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    modules = set(out.partition("MODULES")[2].split())
    assert "r2med" in modules
    assert not modules & (HEAVY - {"pydantic_core"})  # newer releases of typer bring pydantic along


def test_every_public_name_is_there():
    for name in r2med.__all__:
        assert getattr(r2med, name) is not None
    with pytest.raises(AttributeError):
        _ = r2med.no_such_name


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("r2med."):
                yield name.split(".")[1]


def test_imports_only_go_down():
    level = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0] in ("__init__", "__main__"):
            continue
        for room in imports(path):
            assert level[room] <= level[parts[0]], f"{path.name} reaches up to {room}"

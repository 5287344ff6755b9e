"""Starting up costs nothing: heavy modules are imported where they are used. Imports only go down, in no circle."""

import ast
import subprocess
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from pkgutil import resolve_name

import pytest

import r2med
from r2med.foundation.core.names import BUILT_IN_STAGES, CARD_FOLDERS, NOUNS
from support.sources import source

SOURCE = Path(r2med.__file__).parent
HEAVY = {
    *("numpy", "scipy", "pyarrow", "pydantic_core", "torch", "huggingface_hub", "httpx2", "python_calamine", "fastapi"),
    *("starlette", "uvicorn", "Stemmer", "rjieba", "tiktoken", "tokenizers", "filelock", "platformdirs"),
}

# In the order of docs/design.md: a floor imports only from earlier floors, a room also from earlier rooms of its floor.
FLOORS = {
    "foundation": ["core", "text", "web", "pages", "store", "engine", "net", "runtime"],
    "data": [],
    "models": ["encoders", "crossencoders", "llm", "prompts", "ask"],
    "systems": ["retrieve", "expand", "agents", "rerank", "system"],
    "evaluation": ["measure", "records", "comparison", "running", "advice"],
    "assessment": ["audit", "rubrics", "panels", "judgements", "review", "answers", "training"],
    "analysis": [],
    "construction": [],
    "publication": ["leaderboard", "site", "bridges", "packs"],
    "server": [],
    "public": [],
    "cli": [],
}
ROOMS = [f"{floor}.{room}" if room else floor for floor, rooms in FLOORS.items() for room in rooms or [""]]


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


def test_the_first_floor_names_no_later_one():
    later = tuple(f"r2med.{floor}" for floor in FLOORS if floor != "foundation")
    named = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "foundation").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(later)
    }
    assert named == set()


def test_every_class_and_folder_that_a_name_means_is_there():
    for kind in NOUNS:
        stages = BUILT_IN_STAGES[kind]
        paths = [path for table in vars(stages).values() for path in table.values() if path]
        assert all(resolve_name(path).kind == kind for path in paths)
    assert all((SOURCE / folder).is_dir() for folder in CARD_FOLDERS.values())


def test_every_public_name_is_there():
    bridges = {"LangChainRetriever", "PyTerrierRetriever"}  # whose other side not every machine has
    modules = (r2med, r2med.values, r2med.extend, r2med.agreement)
    for module in modules:
        for name in set(module.__all__) - bridges:
            assert getattr(module, name) is not None
        assert set(module.__all__) <= set(dir(module))
        with pytest.raises(AttributeError):
            _ = module.no_such_name
    names = [name for module in modules for name in module.__all__]
    assert len(set(names)) == len(names)


def test_a_name_of_the_package_is_imported_when_it_is_used():
    """Its modules for those who extend it, too: they are attributes of the package without an import of their own."""
    code = "import sys, r2med; print(len([m for m in sys.modules if m[:5] == 'r2med'])); "
    code += "print(r2med.extend.Stage.__name__, r2med.agreement.cohen_kappa.__name__, 'r2med.server' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["5", "Stage", "cohen_kappa", "False"]


def test_no_room_hides_a_public_name():
    """A submodule that is imported becomes an attribute of the package, in place of a function of its name."""
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()} | {path.stem for path in SOURCE.glob("*.py")}
    assert not rooms & set(r2med.__all__)
    code = "import r2med, r2med.publication.site.site, r2med.server, r2med.analysis.analysis; "
    code += "import r2med.construction.benchmark; "
    code += "print(callable(r2med.board), callable(r2med.analyse), callable(r2med.run_build), callable(r2med.search))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["True"] * 4


def test_reading_a_record_loads_a_few_small_modules():
    code = "import sys; from r2med.evaluation.records.record import Record; "
    code += "print(*(m for m in sys.modules if m[:5] == 'r2med'))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "r2med.evaluation.records.record" in modules
    assert len(modules) <= 25
    rooms = {room_of(name) for name in modules} - {None} - set(FLOORS)
    assert rooms == {"foundation.core", "foundation.store", "evaluation.records"}


def module_name(path):
    parts = ("r2med", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def imports(path):
    """Yield the modules of ours that a file imports: on top, within functions, and for types alone."""
    for name in (*source(path).modules, *map(".".join, source(path).members)):
        module = name if name in MODULES else name.rpartition(".")[0]
        if module in MODULES:
            yield module


def room_of(module):
    """Return the room of a module, or its floor where the floor has no rooms; None for the package itself."""
    _, *parts = module.split(".")
    if not parts or parts[0] not in FLOORS:
        return None
    return ".".join(parts[:2]) if FLOORS[parts[0]] and len(parts) > 1 else parts[0]


def test_imports_between_rooms_only_go_down():
    level = {room: number for number, room in enumerate(ROOMS)}
    for name, path in MODULES.items():
        room = room_of(name)
        if room in level:
            for imported in imports(path):
                if imported != "r2med":
                    assert level[room_of(imported)] <= level[room], f"{name} reaches up to {imported}"


HIDDEN_FLOORS = """
import importlib, pkgutil, sys

sys.modules["torch"] = None  # as if it were not installed: to import it takes longer than all the rest
floors = sys.argv[1:]
hidden = {f"r2med.{later}" for later in floors[1:]}  # also from what the package itself imports

class LaterFloors:
    def find_spec(self, name, path=None, target=None):
        if name in hidden:
            raise ImportError(f"{name} is a later floor")

sys.meta_path.insert(0, LaterFloors())
for number, floor in enumerate(floors):
    hidden = {f"r2med.{later}" for later in floors[number + 1 :]}
    package = importlib.import_module(f"r2med.{floor}")
    for module in pkgutil.walk_packages(package.__path__, f"r2med.{floor}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.startswith("r2med"):
                raise
            print(module.name, error.name)  # a package that is not installed
"""


def test_every_module_can_be_imported_with_the_later_floors_hidden():
    """Modules that need a package that is not installed are left out; torch counts as one of these."""
    code = [sys.executable, "-c", HIDDEN_FLOORS, *FLOORS]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    left_out = dict(line.split() for line in done.stdout.splitlines())
    of_torch = {name for name, package in left_out.items() if package == "torch"}
    assert {name.rpartition(".")[2] for name in of_torch} == {"transformer", "lora", "openvino_engine", "pair_model"}


def test_every_folder_is_a_floor_or_a_room():
    folders = {path.parent.relative_to(SOURCE) for path in MODULES.values()} - {Path()}
    assert {folder.parts[0] for folder in folders} == set(FLOORS)
    for floor, rooms in FLOORS.items():
        found = {folder.parts[1] for folder in folders if folder.parts[0] == floor and len(folder.parts) > 1}
        assert not rooms or found == set(rooms)
        assert {path.name for path in (SOURCE / floor).glob("*.py")} == {"__init__.py"} or not rooms


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: set(imports(path)) - {name} for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" ← ".join(error.args[1]))


def test_no_two_files_bear_one_name():
    times = Counter(path.name for path in MODULES.values() if path.name != "__init__.py")
    assert {name for name, number in times.items() if number > 1} == set()


def test_no_two_classes_have_one_name():
    times = Counter(name for path in MODULES.values() for name in source(path).classes)
    assert {name for name, number in times.items() if number > 1} == set()


def test_no_function_of_another_floor_has_the_name_of_a_public_one():
    public = {name for name in r2med.__all__ if name[0].islower()}
    twins = {
        f"{module}.{node.name}"
        for module, path in MODULES.items()
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name in public and getattr(r2med, node.name).__module__ != module
    }
    assert twins == set()


def test_the_folders_of_tests_are_rooms():
    tests = Path(__file__).parent
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    # Fidelity compares whole systems with the original's.
    assert {folder for folder in folders if not (SOURCE / folder / "__init__.py").exists()} == {Path("fidelity")}


def test_nothing_compiles_code_while_it_runs():
    """A compiler inside a request made it wait for minutes, and its cache, which is pickle, could abort the process."""
    compilers = {"numba", "cffi", "cython", "pickle"}
    for path in MODULES.values():
        names = {*source(path).modules, *(module for module, _ in source(path).members)}
        assert not compilers & {name.partition(".")[0] for name in names}, path

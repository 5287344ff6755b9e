"""Code outside the package in keys: files of the user are read, installed packages count by their version."""

import importlib
import sys
from pathlib import Path

import pytest

from r2med.foundation.core import foreign_code as module
from r2med.foundation.core.foreign_code import code_digest, foreign_code


@pytest.fixture
def read(monkeypatch):
    """Return the list of the files that were read."""
    files = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: files.append(self) or real(self))
    foreign_code.cache_clear()
    yield files
    foreign_code.cache_clear()


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that writes a module into a folder of the path and imports it anew."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(**sources):
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module(next(iter(sources)))

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


STAGE = "import numpy, hypothesis.errors\nimport stage_words\nclass Mine(hypothesis.errors.HypothesisException): pass"


def test_a_base_class_of_an_installed_package_counts_by_its_version(written, read, monkeypatch):
    stage = written(stage_code=STAGE, stage_words="WORDS = 1")
    first = foreign_code(stage.Mine)
    assert {file.name for file in read} == {"stage_code.py", "stage_words.py"}
    monkeypatch.setattr(sys.modules["hypothesis"], "__version__", "0.0.1")
    module._version.cache_clear()
    foreign_code.cache_clear()
    assert foreign_code(stage.Mine) != first
    module._version.cache_clear()


def test_a_module_beside_a_stage_is_part_of_its_code(written, read):
    first = foreign_code(written(stage_code=STAGE, stage_words="WORDS = 1").Mine)
    assert foreign_code(written(stage_code=STAGE, stage_words="WORDS = 2").Mine) != first


def test_modules_that_import_each_other_or_cannot_be_read_have_a_digest(written):
    lazily = "import ring_one\ndef later(): import ring_broken, ring_missing"
    ring = written(ring_one="import ring_two", ring_two=lazily)
    Path(ring.__file__).with_name("ring_broken.py").write_text("def (")
    first = code_digest(ring)
    Path(ring.__file__).with_name("ring_broken.py").write_text("x = 1")
    assert len({first, code_digest(ring), ""}) == 3
    assert code_digest(None) == code_digest(sys) == ""

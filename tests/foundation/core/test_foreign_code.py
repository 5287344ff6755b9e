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


def test_a_module_of_constants_counts_and_one_that_others_import_does_not(written):
    def digest(words, other):
        stage = written(words_of="from words_deep import WORDS", words_deep=f"WORDS = {words}")
        written(other_stage="import words_deep", other=f"NUMBER = {other}")
        code = code_digest(stage)
        for name in ("words_of", "words_deep", "other_stage"):
            sys.modules.pop(name)
        return code

    assert digest(1, other=1) == digest(1, other=2) != digest(2, other=1)


def test_modules_that_import_each_other_have_a_digest_until_python_loads_what_changed(written):
    ring = written(ring_one="import ring_two", ring_two="import ring_one\ndef later(): import ring_late")
    first = code_digest(ring)
    written(ring_late="x = 1")
    assert code_digest(ring) == first, "what is loaded later does not count"
    Path(ring.__file__).with_name("ring_two.py").write_text("def (")
    assert len({first, code_digest(ring), ""}) == 3
    assert code_digest(None) == code_digest(sys) == ""

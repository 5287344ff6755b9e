"""A user's object as a model: strings or dicts in, a checked array out."""

import subprocess
import sys

import numpy as np
import pytest

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import resolve_card
from support.facts import states

GOOD = """
import numpy as np

class Strings:
    def encode_queries(self, queries, **kwargs):
        return np.array([[len(q), 1.0] for q in queries])

    def encode_corpus(self, corpus, **kwargs):
        return [[len(text.upper()), 2.0] for text in corpus]

class Dicts(Strings):
    calls = 0

    def encode_corpus(self, corpus, **kwargs):
        Dicts.calls += 1
        return np.array([[len(document["text"]), 2.0] for document in corpus])

class Counted(Strings):
    made = 0

    def __init__(self):
        Counted.made += 1

class Loaded(Strings):
    def __init__(self):
        self.weights = [1.0]

class Known(Strings):
    revision = "v1"

class Trained(Strings):
    folders = ["weights"]

class Torch(Strings):
    def encode_queries(self, queries):
        import torch
        return torch.ones(len(queries), 3, dtype=torch.bfloat16, requires_grad=True)

class Bad(Strings):
    def encode_corpus(self, corpus):
        return np.ones((len(corpus) + 1, 2))

    def encode_queries(self, queries):
        return np.array([[np.nan if "odd" in q else 1.0] for q in queries])

class Flat(Strings):
    def encode_queries(self, queries):
        return np.ones(len(queries))

    def encode_corpus(self, corpus):
        return ["not", "numbers"]

class Raises(Strings):
    def encode_queries(self, queries):
        raise RuntimeError("no such file: weights.bin")

    def encode_corpus(self, corpus):
        return corpus[0]["no such key"]

class NeedsArguments(Strings):
    def __init__(self, path):
        pass

class Half:
    def encode_queries(self, queries):
        return []

ready = Strings()
"""


@pytest.fixture
def opened(tmp_path, monkeypatch, request):
    """Return a function that opens a class of a module in the current folder. Each test has its own module."""
    import hashlib

    name = "custom_" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    (tmp_path / f"{name}.py").write_text(GOOD)
    monkeypatch.chdir(tmp_path)

    runtime = Runtime()

    def open_(thing, module=None):
        return open_encoder(resolve_card(f"py:{module or name}:{thing}"), ANY_DATASET, runtime)

    open_.module = name
    return open_


@pytest.mark.parametrize("thing", ["Strings", "Dicts", "ready"])
def test_a_class_or_an_object_may_take_strings_or_dicts(opened, thing):
    found = opened(thing)
    assert found.encode(["abc", ""], "query").vectors.tolist() == [[3, 1], [0, 1]]
    assert found.encode(["ab"], "document").vectors.tolist() == [[2, 2]]
    assert found.encode(["ab"], "document").vectors.dtype == np.float32
    assert found.encode(["ab"], "generated").vectors.tolist() == [[2, 1]]
    assert found.encode(["ab", "c"], "document").cost.texts == 2


def test_strings_are_not_tried_again_once_dicts_are_needed(opened):
    import sys

    found = opened("Dicts")
    for _ in range(3):
        found.encode(["ab"], "document")
    assert sys.modules[opened.module].Dicts.calls == 4


def test_a_tensor_is_accepted_as_an_array(opened):
    assert opened("Torch").encode(["a", "b"], "query").vectors.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_the_prefix_py_is_optional(opened):
    assert resolve_card(f"{opened.module}:Strings").loader == "custom"
    assert opened("Strings").key("query")["model"] == f"{opened.module}:Strings"


def test_a_source_that_changed_since_the_import_is_refused(opened, tmp_path):
    opened("Known")
    file = tmp_path / f"{opened.module}.py"
    file.write_text(file.read_text() + "# changed\n")
    with pytest.raises(UserError, match=r"Known: its source has changed.*start Python again"):
        opened("Known")


USES_HELPERS = """
import numpy as np
import {name}_direct
from {name}_tools import weights

class Model:
    revision = "v1"

    def encode(self, texts):
        return [[{name}_direct.number(), weights.WEIGHT, len(text)] for text in texts]
"""


@pytest.mark.parametrize("file", ["{}_deep.py", "{}_tools/weights.py"])
def test_a_changed_helper_module_counts_though_the_revision_is_the_same(opened, tmp_path, file):
    name = opened.module
    (tmp_path / f"{name}.py").write_text(USES_HELPERS.format(name=name))
    (tmp_path / f"{name}_direct.py").write_text(f"from {name}_deep import NUMBER\ndef number(): return NUMBER")
    (tmp_path / f"{name}_deep.py").write_text("NUMBER = 1")
    (tmp_path / f"{name}_tools").mkdir()  # a folder without __init__.py is a package, too
    (tmp_path / f"{name}_tools" / "weights.py").write_text("WEIGHT = 2")
    (tmp_path / "unrelated.py").write_text("X = 1")
    before = opened("Model").key("document")
    (tmp_path / "unrelated.py").write_text("X = 2")
    assert opened("Model").key("document") == before
    (tmp_path / file.format(name)).write_text("NUMBER = WEIGHT = 7")
    with pytest.raises(UserError, match="its source has changed"):
        opened("Model")


def test_an_object_is_created_once_for_all_datasets(opened):
    import sys

    for _ in range(5):
        opened("Counted").key("query")
        opened("Counted").encode(["a"], "document")
    assert sys.modules[opened.module].Counted.made == 1


def test_an_object_is_identified_by_its_revision(opened):
    about = opened("Known").key("document")
    assert about["revision"] == "v1" and "process" not in about
    sys.modules[opened.module].Known.revision = lambda self: "v2"
    assert opened("Known").key("document")["revision"] == "v2"


def test_an_object_is_identified_by_the_files_in_its_folders(opened, tmp_path):
    (tmp_path / "weights").mkdir()
    seen = []
    for content in (b"one", b"two", b"two"):
        (tmp_path / "weights" / "model.onnx").write_bytes(content)
        seen.append(opened("Trained").key("document"))
    assert seen[0] != seen[1] == seen[2]
    (tmp_path / "weights" / "model.onnx").unlink()
    (tmp_path / "weights").rmdir()
    with pytest.raises(UserError, match=r"Trained.folders names weights, which does not exist"):
        opened("Trained").key("document")


def test_a_class_without_a_revision_is_known_by_its_files_in_every_process(opened, caplog):
    key = opened("Strings").key("document")
    assert "process" not in key and not caplog.records
    code = "from r2med import Runtime; from r2med.models.encoders.user_objects import UserObjects; "
    code += f"print(UserObjects.of(Runtime()).get('{opened.module}:Strings').key())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert key["source"] in other and "process" not in other


def test_a_class_that_may_have_read_weights_is_asked_once_to_state_them(opened, caplog):
    opened("Loaded").key("document")
    opened("Loaded")
    [line] = [record.message for record in caplog.records]
    states(line, "Loaded", "known by its code", "`folders`", "`revision`")


@pytest.mark.parametrize(
    ("thing", "role", "message"),
    [
        ("Bad", "document", r"encode_corpus returned 3 rows for 2 texts"),
        ("Bad", "query", r"text 2 has NaN"),
        ("Flat", "query", r"one row per text, but its array has the shape \(2,\)"),
        ("Flat", "document", r"array of numbers, not list"),
        ("Raises", "query", r"encode_queries failed at custom_\w+.py:\d+: RuntimeError: no such file"),
        ("Raises", "document", r"encode_corpus failed at .*: TypeError"),
    ],
)
def test_a_wrong_result_of_a_model_gives_a_one_line_error(opened, thing, role, message):
    with pytest.raises(UserError, match=message) as caught:
        opened(thing).encode(["even", "odd"], role)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("Stings", r"has no 'Stings' \(did you mean Strings\?\)"),
        ("Half", r"no method encode_corpus"),
        ("NeedsArguments", r"creating it without arguments failed"),
    ],
)
def test_an_object_that_is_not_a_model_gives_a_one_line_error(opened, thing, message):
    with pytest.raises(UserError, match=message):
        opened(thing)


def test_a_missing_module_gives_a_one_line_error_with_the_nearest_name(opened):
    with pytest.raises(UserError, match=rf"no module '{opened.module}s' \(did you mean {opened.module}\?\)"):
        opened("Strings", opened.module + "s")


def test_a_module_that_needs_another_package_gives_a_one_line_error(opened, tmp_path):
    (tmp_path / "needs_more_than_there_is.py").write_text("import a_package_that_is_not_there")
    with pytest.raises(UserError, match="a_package_that_is_not_there"):
        opened("Strings", "needs_more_than_there_is")

"""Objects of a user's own belong to one runtime."""

import sys

import pytest

from r2med import Runtime, UserError, run
from r2med.models.encoders.user_objects import UserObjects
from support.facts import states

MODULE = """
class Model:
    made = 0

    def __init__(self):
        Model.made += 1

    def encode(self, texts):
        return [[1.0] for _ in texts]
"""


class Given:
    """A model that is given by hand."""

    def encode(self, texts):
        return [[1.0] for _ in texts]


def count_letters(texts):
    return [[float(text.count(letter)) for letter in "abcdefgh"] for text in texts]


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in the current folder that no other test has imported."""
    name = "objects_of_a_user"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_a_runtime_makes_an_object_once_and_another_runtime_makes_its_own(module):
    with Runtime() as one, Runtime() as other:
        first, second = UserObjects.of(one).get(f"{module}:Model"), UserObjects.of(other).get(f"{module}:Model")
        assert UserObjects.of(one.with_settings(depth=5)).get(f"{module}:Model") is first
        assert first.model is not second.model and sys.modules[module].Model.made == 2
        assert first.key() == second.key(), "both are what their source makes"


def test_an_object_that_was_given_to_one_runtime_is_unknown_to_another():
    with Runtime() as one, Runtime() as other:
        mine, yours = Given(), Given()
        path = UserObjects.of(one).name(mine).removeprefix("py:")
        assert UserObjects.of(one).get(path).model is mine
        assert UserObjects.of(other).name(yours) == f"py:{path}", "names are numbered within one runtime"
        assert UserObjects.of(other).get(path).model is yours
        assert UserObjects.of(one).name(yours) == f"py:{path}-2"
        with pytest.raises(UserError, match="Given-2"):
            UserObjects.of(other).get(f"{path}-2")


def test_a_source_that_changed_between_two_runtimes_is_refused(module, tmp_path):
    UserObjects.of(Runtime()).get(f"{module}:Model")
    (tmp_path / f"{module}.py").write_text(MODULE + "    revision = 'two'\n")
    with pytest.raises(UserError, match="start Python again"):
        UserObjects.of(Runtime()).get(f"{module}:Model")


def test_a_module_that_ends_the_process_is_one_line(module, tmp_path):
    (tmp_path / f"{module}_script.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(UserError, match=r"importing .* failed at .*_script.py:2: SystemExit: 3"):
        UserObjects.of(Runtime()).get(f"{module}_script:Model")


def test_a_syntax_error_is_placed_in_the_file_of_the_user(module, tmp_path):
    (tmp_path / f"{module}_broken.py").write_text("import sys\n\ndef embed(texts:\n    return texts\n")
    with pytest.raises(UserError, match=r"failed at \w+_broken.py:3: SyntaxError: '\(' was never closed$"):
        UserObjects.of(Runtime()).get(f"{module}_broken:embed")


def test_a_model_that_ends_the_process_is_one_line(module, tmp_path):
    (tmp_path / f"{module}_ends.py").write_text(
        "class Made:\n    def __init__(self):\n        raise SystemExit(3)\n\n"
        "def embed(texts):\n    raise SystemExit(3)\n\nembed.revision = '1'\n"
    )
    results = run([f"py:{module}_ends:Made", f"py:{module}_ends:embed"], data="demo/Biology", out=None)
    made, embed = results.errors
    states(made, f"{module}_ends.py:3: SystemExit: 3")
    states(embed, f"{module}_ends.py:6: SystemExit: 3")


def test_a_function_is_a_model_by_its_own_name(tmp_path):
    with Runtime() as runtime:
        objects = UserObjects.of(runtime)
        assert objects.name(count_letters) == objects.name(count_letters) == f"py:{__name__}:count_letters"
        other = lambda texts: count_letters(texts)  # noqa: E731
        assert objects.name(other) == f"py:{__name__}:lambda"
        assert not objects.get(f"{__name__}:count_letters").is_known
    results = run(["bm25", count_letters], data="demo/Biology", out=None)
    assert not results.errors
    assert [record.system for record in results.records] == ["bm25", f"py:{__name__}:count_letters"]


def test_a_function_of_a_file_encodes_reranks_and_states_its_revision(tmp_path, monkeypatch):
    (tmp_path / "functions_of_a_user.py").write_text(
        "def embed(texts):\n    return [[float(len(text)), 1.0] for text in texts]\n\n"
        "def rank(pairs):\n    return [-float(len(text)) for _, text in pairs]\n\n"
        "embed.revision = '1'\n\ndef make():\n    return 1\n"
    )
    monkeypatch.delitem(sys.modules, "functions_of_a_user", raising=False)
    with Runtime() as runtime:
        assert UserObjects.of(runtime).get("functions_of_a_user:embed").key()["revision"] == "1"
    systems = ["py:functions_of_a_user:embed", "bm25 → py:functions_of_a_user:rank@5"]
    results = run([*systems, "py:functions_of_a_user:make"], data="demo/Biology", out=None)
    assert [record.system for record in results.records] == systems
    [error] = results.errors
    states(error, "functions_of_a_user:make", "TypeError")

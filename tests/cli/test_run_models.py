"""`r2med run` with embedding models: one of one's own, and every mistake one line."""

import json

import pytest

from support.facts import states

CUSTOM = """
import numpy as np

class MyModel:
    def encode_queries(self, queries, **kwargs):
        return self._encode(queries)

    def encode_corpus(self, corpus, **kwargs):
        return self._encode([d["text"] if isinstance(d, dict) else d for d in corpus])

    def _encode(self, texts):
        return np.array([[t.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for t in texts], dtype=float)

class TooFew(MyModel):
    def encode_corpus(self, corpus, **kwargs):
        return super().encode_corpus(corpus)[:-1]

class NotANumber(MyModel):
    def encode_corpus(self, corpus, **kwargs):
        return super().encode_corpus(corpus) * float("nan")
"""


def test_a_model_of_one_s_own_runs_from_the_current_folder(tmp_path, r2med):
    (tmp_path / "mine.py").write_text(CUSTOM)
    done = r2med("run", "py:mine:MyModel", "--data", "demo/Biology", "--format", "json")
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)
    assert row["system"] == "py:mine:MyModel"
    assert row["mean"]["R@1000"] == 1.0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("TooFew", "rows"),
        ("NotANumber", "document 'bio-"),
        ("MyModle", "MyModel?"),
        ("x:y", "mine has no 'x:y'"),
    ],
)
def test_a_model_of_one_s_own_that_is_wrong_is_one_line(tmp_path, name, says, r2med):
    (tmp_path / "mine.py").write_text(CUSTOM)
    done = r2med("run", f"py:mine:{name}", "--data", "demo/Biology")
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "results").rglob("*.json"))


def test_a_model_whose_queries_and_documents_differ_in_length_is_one_line(tmp_path, r2med):
    (tmp_path / "odd.py").write_text(
        "import numpy as np\n"
        "class Odd:\n"
        "    def encode_queries(self, q, **k): return np.ones((len(q), 8))\n"
        "    def encode_corpus(self, c, **k): return np.ones((len(c), 16))\n"
    )
    done = r2med("run", "py:odd:Odd", "--data", "demo/Biology")
    assert done.returncode == 2, done.stderr
    states(done.stderr.splitlines()[-1], "8 for queries", "16 for documents")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "minlm"], "did you mean minilm"),
        (["run", "minilm", "--device", "cuda:7"], "cuda:7"),
        (["run", "minilm", "--dtype", "float12"], "float12"),
        (["run", "minilm", "--backend", "onyx"], "openvino"),
        (["run", "minilm", "--memory", "lots"], "--memory"),
        (["run", "openai", "--budget", "-1"], "--budget"),
        (["run", "nv", "--data", "demo/Biology"], "--trust-remote-code"),
        (["run", "bge", "--model-path", "bge=nowhere", "--data", "demo/Biology"], "nowhere"),
        (["run", "path:nowhere"], "nowhere"),
        (["show", "--kind", "models", "bgee"], "did you mean bge"),
    ],
)
def test_mistakes_about_models_are_one_line(arguments, says, r2med):
    done = r2med(*arguments)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_api_model_without_its_key_is_one_line_from_the_command_line(r2med, monkeypatch):
    for key in ("OPENAI_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.delenv(key, raising=False)
        name = key.split("_")[0].lower()
        for spec in (name, f"bm25+{name}"):
            done = r2med("run", spec, "--data", "demo/Biology")
            assert done.returncode == 2, done.stderr
            assert key in done.stderr.splitlines()[-1]
            assert "Traceback" not in done.stderr


def test_openvino_does_not_pretend_to_a_precision_it_was_asked_for(r2med):
    done = r2med("run", "minilm", "--backend", "openvino", "--dtype", "float32", "--data", "demo/Biology")
    assert done.returncode == 2
    assert "remove dtype (--dtype float32)" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("typed", "right"), [("./weights", "path:./weights"), ("mine:MyModel", "py:mine:MyModel")])
def test_a_model_of_one_s_own_without_its_prefix_gets_the_right_word(tmp_path, r2med, typed, right):
    (tmp_path / "weights").mkdir()
    (tmp_path / "mine.py").write_text(CUSTOM)
    done = r2med("run", typed, "--data", "demo/Biology")
    assert (done.returncode, done.stderr) == (2, f"r2med: no retriever '{typed}': did you mean {right}?\n")

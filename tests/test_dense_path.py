"""The whole dense path with real weights: model, store, search, fusion, records, and a model of one's own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from r2med import Dataset, Qrels, Query, UserError, evaluate, load
from r2med.data import Corpus
from r2med.encoders.encoder import Encoded
from r2med.retrieve.dense import embeddings
from r2med.system import System

TOPICS = ["myocardial infarction", "tax law", "pulmonary embolism", "a recipe for bread"]


def tiny(query, documents=TOPICS):
    corpus = Corpus.of((text, text) for text in documents)
    return Dataset("tiny", (Query("q", query),), corpus, Qrels({"q": {documents[0]: 1}}))


def found(spec, dataset, store, k=10):
    return [document for document, _ in next(iter(System.parse(spec).run(dataset, store, k).run))[1]]


def test_a_heart_attack_is_nearer_to_myocardial_infarction_than_to_tax_law(store):
    ranking = found("minilm", tiny("heart attack"), store)
    assert ranking[0] == "myocardial infarction"
    assert ranking.index("myocardial infarction") < ranking.index("tax law")
    assert len(ranking) == len(TOPICS)


def test_fusion_finds_what_either_part_finds(store):
    documents = ["myocardial infarction", "heart of palm salad attack plan", "tax law"]
    assert set(found("bm25+minilm", tiny("heart attack", documents), store)) == set(documents)
    assert found("bm25", tiny("heart attack", documents), store) == [documents[1]]


def test_excluded_documents_are_left_out_of_dense_rankings(store):
    dataset = tiny("heart attack")
    query = Query("q", "heart attack", excluded=("myocardial infarction",))
    dataset = Dataset("tiny", (query,), dataset.corpus, dataset.qrels)
    assert "myocardial infarction" not in found("minilm", dataset, store)
    assert "myocardial infarction" not in found("bm25+minilm", dataset, store)


def test_on_the_demo_minilm_and_its_fusion_give_sensible_recorded_scores(tmp_path):
    dataset = load("demo/Medical-Sciences")
    records = {spec: evaluate(spec, dataset, out=tmp_path) for spec in ("bm25", "minilm", "bm25+minilm")}
    scores = {spec: record.mean["nDCG@10"] for spec, record in records.items()}
    assert scores["minilm"] > scores["bm25"] > 0.1
    assert scores["bm25+minilm"] > scores["bm25"]
    settings = records["minilm"].settings["retrieve"]
    assert settings["document"]["max_tokens"] == 256
    assert settings["document"]["dtype"] == "float32"
    assert settings["document"]["revision"]
    assert records["minilm"].cost.texts == len(dataset.corpus) + len(dataset.queries)
    expanded = evaluate("hyde(author) → minilm", dataset, out=tmp_path)
    assert expanded.mean["nDCG@10"] > scores["minilm"]


def test_a_warm_run_needs_no_weights(store, monkeypatch):
    dataset = tiny("heart attack")
    first = found("minilm", dataset, store)
    monkeypatch.setattr("r2med.encoders.transformer.Tower", None)  # would fail if a model were loaded
    monkeypatch.setattr("r2med.retrieve.retriever.VERSION", -1)  # the run itself is not read back
    assert found("minilm", dataset, store) == first


KILLED = """
import os, signal, sys
import numpy as np
from r2med.data import Corpus
from r2med.encoders.encoder import Encoded
from r2med.retrieve.dense import embeddings
from r2med.store import Store

class Model:
    calls = 0
    def describe(self, role): return {"model": "counting"}
    def encode(self, texts, role):
        Model.calls += 1
        if len(sys.argv) > 2 and Model.calls == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return Encoded(np.ones((len(texts), 2), dtype=np.float32))

embeddings.SHARD = 10
embeddings.embed_corpus(Corpus.of((str(i), str(i)) for i in range(100)), Model(), Store(sys.argv[1]))
print(Model.calls)
"""


def test_killed_at_shard_7_of_10_the_next_start_encodes_the_rest(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    assert subprocess.run([*command, "kill"], capture_output=True).returncode == -9
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "4"


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


def r2med(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "r2med", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, env=os.environ
    )


def test_a_model_of_one_s_own_runs_from_the_current_folder(tmp_path):
    (tmp_path / "mine.py").write_text(CUSTOM)
    done = r2med("run", "--model", "mine:MyModel", "--data", "demo/Biology", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)
    assert row["system"] == "py:mine:MyModel"
    assert row["mean"]["R@1000"] == 1.0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("TooFew", "rows"),
        ("NotANumber", "document 'bio-"),
        ("MyModle", "did you mean MyModel"),
        ("x:y", "mine has no 'x:y'"),
    ],
)
def test_a_model_of_one_s_own_that_is_wrong_is_one_line(tmp_path, name, says, forked):
    (tmp_path / "mine.py").write_text(CUSTOM)
    done = forked("run", "--model", f"mine:{name}", "--data", "demo/Biology")
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "results").rglob("*.json"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "minlm"], "did you mean minilm"),
        (["run", "minilm", "--device", "cuda:7"], "cuda:7"),
        (["run", "minilm", "--dtype", "float12"], "float12"),
        (["run", "minilm", "--backend", "onyx"], "onnx"),
        (["run", "minilm", "--memory", "lots"], "--memory"),
        (["run", "openai", "--budget", "-1"], "--budget"),
        (["run", "nv", "--data", "demo/Biology"], "--trust-remote-code"),
        (["run", "bge", "--model-path", "bge=nowhere", "--data", "demo/Biology"], "nowhere"),
        (["run", "path:nowhere"], "nowhere"),
        (["models", "show", "bgee"], "did you mean bge"),
    ],
)
def test_mistakes_about_models_are_one_line(arguments, says, forked):
    done = forked(*arguments)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_models_are_listed_shown_and_checked(tmp_path, forked):
    listed = forked("models", "list").stdout
    assert all(name in listed for name in ("medcpt:published", "nv", "voyage", "qwen3-8b"))
    shown = json.loads(forked("models", "show", "medcpt:published").stdout)
    assert shown["query"]["repository"] == "ncbi/MedCPT-Article-Encoder"
    checked = r2med("models", "check", "minilm", cwd=tmp_path)
    assert "384 dimensions; norms 1.0000" in checked.stdout, checked.stderr


def test_a_corpus_that_is_empty_is_one_line(store):
    empty = Dataset("empty", (Query("q", "x"),), Corpus.of([]), Qrels({"q": {"d": 1}}))
    for spec in ("minilm", "bm25+minilm"):
        with pytest.raises(UserError, match="corpus is empty"):
            System.parse(spec).run(empty, store, 5)


def test_vectors_of_different_lengths_are_refused(store, monkeypatch):
    class Growing:
        width = 1

        def describe(self, role):
            return {}

        def encode(self, texts, role):
            self.width += 1
            return Encoded(np.ones((len(texts), self.width), dtype=np.float32))

    monkeypatch.setattr(embeddings, "SHARD", 2)
    with pytest.raises(UserError, match="different lengths"):
        embeddings.embed_corpus(Corpus.of((str(i), "x") for i in range(4)), Growing(), store)


def test_an_api_model_without_its_key_is_one_line_from_the_command_line(forked, monkeypatch):
    for key in ("OPENAI_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.delenv(key, raising=False)
        name = key.split("_")[0].lower()
        for spec in (name, f"bm25+{name}"):
            done = forked("run", spec, "--data", "demo/Biology")
            assert done.returncode == 2, done.stderr
            assert key in done.stderr.splitlines()[-1]
            assert "Traceback" not in done.stderr


def test_a_model_whose_queries_and_documents_differ_in_length_is_one_line(tmp_path, forked):
    (tmp_path / "odd.py").write_text(
        "import numpy as np\n"
        "class Odd:\n"
        "    def encode_queries(self, q, **k): return np.ones((len(q), 8))\n"
        "    def encode_corpus(self, c, **k): return np.ones((len(c), 16))\n"
    )
    done = forked("run", "--model", "odd:Odd", "--data", "demo/Biology")
    assert done.returncode == 2, done.stderr
    assert "8 for queries and 16 for documents" in done.stderr.splitlines()[-1]


def test_openvino_does_not_pretend_to_a_precision_it_was_asked_for(forked):
    done = forked("run", "minilm", "--backend", "openvino", "--dtype", "float32", "--data", "demo/Biology")
    assert done.returncode == 2
    assert "leave --dtype float32 out" in done.stderr.splitlines()[-1]

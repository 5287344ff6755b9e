"""A user's object as a reranker: pairs in, checked numbers out."""

import hashlib

import pytest

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.crossencoders.pair_scorer import open_scorer
from r2med.models.crossencoders.reranker_cards import resolve_reranker
from r2med.models.encoders.encoder import NotFiniteError
from support.forgotten_modules import forget_modules

MODULE = """
import numpy as np

class Overlap:
    def predict(self, pairs):
        assert all(isinstance(pair, tuple) for pair in pairs)
        return [len(set(query.split()) & set(document.split())) for query, document in pairs]

class Array(Overlap):
    def predict(self, pairs):
        return np.array(super().predict(pairs), dtype=np.float16)

class Torch(Overlap):
    def predict(self, pairs):
        import torch
        return torch.tensor(super().predict(pairs), dtype=torch.bfloat16).requires_grad_()

class Short(Overlap):
    def predict(self, pairs):
        return super().predict(pairs)[1:]

class Square(Overlap):
    def predict(self, pairs):
        return [[score, score] for score in super().predict(pairs)]

class Column(Overlap):
    def predict(self, pairs):
        return np.ones((len(pairs), 1))

class Words:
    def predict(self, pairs):
        return ["good"] * len(pairs)

class Forgot:
    def predict(self, pairs):
        [1.0 for _ in pairs]

class NaN:
    def predict(self, pairs):
        return [1.0, float("nan")]

class Huge:
    def predict(self, pairs):
        return [1.0, 1e300]

class Raises:
    def predict(self, pairs):
        raise RuntimeError("no such file: weights.bin")

class Encoder:
    def encode_queries(self, queries):
        return []

ready = Overlap()
"""

PAIRS = [("heart attack", "a heart is attacked"), ("tax law", "tax law and more tax")]


@pytest.fixture
def opened(tmp_path, monkeypatch, request):
    """Return a function that opens an object of a module in the current folder. Each test has its own module."""
    name = "reranker_" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return lambda thing: open_scorer(resolve_reranker(f"py:{name}:{thing}"), ANY_DATASET, Runtime())


@pytest.mark.parametrize("thing", ["Overlap", "Array", "Torch", "ready"])
def test_lists_arrays_and_tensors_are_accepted_as_scores(opened, thing):
    found = opened(thing).score(PAIRS)
    assert [scored.score for scored in found] == [1.0, 2.0]
    assert all(scored.seconds > 0 and scored.tokens == 0 and not scored.cut for scored in found)
    assert opened(thing).score([]) == []


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("Short", r"predict returned 1 numbers for 2 pairs"),
        ("Square", r"one number per pair, but its array has the shape \(2, 2\)"),
        ("Column", r"one number per pair, but its array has the shape \(2, 1\)"),
        ("Words", r"must return an array of numbers, not list"),
        ("Forgot", r"predict returned nothing; it must return one number per pair"),
        ("Raises", r"predict failed at reranker_\w+.py:\d+: RuntimeError: no such file"),
        ("Encoder", r"it has no method predict; it needs predict"),
        ("Overlay", r"has no 'Overlay' \(did you mean Overlap\?\)"),
    ],
)
def test_a_wrong_result_gives_a_one_line_error(opened, thing, message):
    with pytest.raises(UserError, match=message) as caught:
        opened(thing).score(PAIRS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("thing", ["NaN", "Huge"])
def test_the_error_for_a_score_that_is_not_finite_names_the_pair(opened, thing):
    with pytest.raises(NotFiniteError) as caught:
        opened(thing).score(PAIRS)
    assert caught.value.index == 1 and f"{thing}.predict" in caught.value.hint


def test_a_changed_source_file_gives_another_model(opened, tmp_path):
    before = opened("Overlap").key()
    (file,) = tmp_path.glob("reranker_*.py")
    file.write_text(file.read_text() + "# changed\n")
    forget_modules(tmp_path)
    assert opened("Overlap").key() != before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("py:alone", "the form of a Python reranker is py:MODULE:NAME"),
        ("hf:alone", "the form of a hub model is hf:ORG/NAME"),
        ("path:no/such/folder", "there is no such folder"),
        ("bge-rerankr", r"no reranker 'bge-rerankr' \(did you mean bge-reranker\?\)"),
    ],
)
def test_an_invalid_name_gives_a_one_line_error(spec, message):
    with pytest.raises(UserError, match=message):
        resolve_reranker(spec)

"""The benchmark's three rerankers against a plain computation of what the original does, and of what is right."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from r2med.data.dataset_cards import cards as dataset_cards
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.crossencoders.pair_scorer import open_scorer
from r2med.models.crossencoders.reranker_cards import RERANKERS
from support import tiny_rerankers

WORDS = "heart tax of the gut a law and swelling infarction".split()


def text(words, seed):
    return " ".join(np.random.default_rng(seed).choice(WORDS, words))


WITHIN = [
    ("heart attack", "myocardial infarction"),
    ("swelling of the face\nafter dental work", text(40, 1)),
    (text(30, 2), "x"),
    ("naïve café 心脏", "tax law, and what doctors pay"),
    (text(50, 3), text(50, 4)),
]
"""Pairs that fit every limit."""

LONG_DOCUMENTS = [("heart attack", text(3000, 20)), (text(50, 21), text(3000, 22))]
OVER = [
    ("heart attack", text(3000, 5)),
    (text(3000, 6), "myocardial infarction"),
    (text(3000, 7), text(3000, 8)),
    (text(1000, 9), text(3000, 10)),
    (text(3000, 11), text(1000, 12)),
    (text(300, 13), text(3000, 14)),
]
"""Pairs that fit none: the document is too long, or the query, or both, equally or not."""


def classifier(folder, limit, column):
    """Return how a pair is scored by a logit of a classifier, as the library's documentation does it."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def score(query, document):
        inputs = tokenizer(query, document, truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            return float(model(**inputs).logits[0, column])

    return score


def rankllama(folder, limit):
    """Return how a pair is scored by a Llama's last token, with the adapter as a second path beside its layers."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "base")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "base").eval().model
    tensors = load_file(folder / "adapter/adapter_model.safetensors")

    def beside(first, second):
        return lambda layer, inputs, output: output + 8 / 4 * (inputs[0] @ first.T) @ second.T  # lora_alpha / r

    for name, layer in model.named_modules():
        key = f"base_model.model.model.{name}.lora_{{}}.weight"
        if key.format("A") in tensors:
            layer.register_forward_hook(beside(tensors[key.format("A")], tensors[key.format("B")]))

    def score(query, document):
        pair = f"query: {query}", f"document: {document}"
        ids = tokenizer(*pair, truncation=True, max_length=limit, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            last = model(input_ids=ids).last_hidden_state[0, -1]
        return float(last @ tensors["base_model.model.score.weight"][0])

    return score


def tiny_rankllama(folder):
    base = tiny_rerankers.llama(folder / "base", positions=1024)
    tiny_rerankers.lora(folder / "adapter", base)


@dataclass(frozen=True)
class Original:
    """One of the benchmark's rerankers: a tiny one of its architecture, and how a pair is scored."""

    make: Callable[[Path], object]
    scoring: Callable[[Path, int], Callable[[str, str], float]]
    """(folder, limit) -> how a pair is scored; a pair that is too long loses tokens where it is longer."""
    limit: int
    published_limit: int
    paths: tuple[tuple[str, str], ...]
    """What is to be named by --model-path, and its folder."""


ORIGINALS = {
    "bge-reranker": Original(
        lambda folder: tiny_rerankers.xlm_roberta(folder / "model", positions=2048),
        lambda folder, limit: classifier(folder / "model", limit, 0),
        2048,
        512,
        (("bge-reranker", "model"),),
    ),
    "monobert": Original(
        lambda folder: tiny_rerankers.bert(folder / "model", positions=512),
        lambda folder, limit: classifier(folder / "model", limit, 1),
        512,
        512,
        (("monobert", "model"),),
    ),
    "rankllama": Original(
        tiny_rankllama, rankllama, 1024, 1024, (("rankllama", "adapter"), ("rankllama.base", "base"))
    ),
}


@pytest.fixture(scope="module")
def reranker_weights(tmp_path_factory):
    """Return the folder of a reranker's tiny weights, made when it is first asked for."""

    @cache
    def made(name):
        folder = tmp_path_factory.mktemp(name)
        ORIGINALS[name].make(folder)
        return folder

    return made


def scored(spec, folder, pairs, dataset="IIYi-Clinical"):
    name = spec.partition(":")[0]
    paths = tuple((known, folder / place) for known, place in ORIGINALS[name].paths)
    setup = Runtime(device="cpu", dtype="float32", model_paths=paths, tokens_per_batch=500)
    scorer = open_scorer(RERANKERS.card(spec), dataset_cards()[dataset].instruction, setup)
    return [one.score for one in scorer.score(pairs)]


def agree(scores, wanted):
    assert len(set(wanted)) == len(wanted)
    np.testing.assert_allclose(scores, wanted, rtol=2e-4, atol=3e-5)


def wanted(name, folder, pairs, limit):
    score = ORIGINALS[name].scoring(folder, limit)
    return [score(*pair) for pair in pairs]


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_pair_within_the_limit_is_scored_as_by_the_original(name, reranker_weights):
    folder = reranker_weights(name)
    scores = wanted(name, folder, WITHIN, ORIGINALS[name].published_limit)
    agree(scored(name, folder, WITHIN), scores)
    agree(scored(f"{name}:published", folder, WITHIN), scores)


@pytest.mark.parametrize("name", ORIGINALS)
def test_the_published_variant_cuts_a_pair_that_is_too_long_as_the_original_does(name, reranker_weights):
    scores = wanted(name, reranker_weights(name), OVER, ORIGINALS[name].published_limit)
    agree(scored(f"{name}:published", reranker_weights(name), OVER), scores)


@pytest.mark.parametrize("name", ORIGINALS)
def test_by_default_a_query_that_fits_is_kept_and_the_document_cut_at_its_end(name, reranker_weights):
    scores = wanted(name, reranker_weights(name), LONG_DOCUMENTS, ORIGINALS[name].limit)
    agree(scored(name, reranker_weights(name), LONG_DOCUMENTS), scores)

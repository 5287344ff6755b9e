"""Models of MTEB in: encoders, cross-encoders and models that search, each as MTEB itself runs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med import System, evaluate, load, run
from r2med.data.runs import Run
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from support.fork_server import Command
from support.mteb_local import register_models

DATA = "demo/MedQA-Diag"


def test_without_mteb_one_line_says_what_is_missing_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mteb", None)
    for system in ("mteb:intfloat/e5-small-v2", "bm25 → mteb:BAAI/bge-reranker-v2-m3@10"):
        with pytest.raises(
            UserError, match=r"mteb:\S+ needs an optional part: pip install -e '\.\[mteb\]'.*docs/bridges.md.*compiled"
        ):
            System.parse(system).check([load(DATA)])


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return register_models(tmp_path, monkeypatch)


def test_the_record_says_which_model_it_is_and_how_it_was_prompted(models: Any, tmp_path: Path) -> None:
    record = evaluate("mteb:org/bert", DATA, tmp_path)
    query, document = record.settings["retrieve"]["query"], record.settings["retrieve"]["document"]
    assert (document["model"], document["revision"]) == ("org/bert", "r1")
    assert query["settings"]["model_prompts"]["query"] == "query: " and "task_prompt" not in document
    assert query["task_prompt"] == "Given a Medical Exam, retrieve relevant passages that help answer the exam"
    assert record.cost.texts == len(load(DATA).corpus) + len(load(DATA).queries) and not record.cost.tokens
    assert evaluate("mteb:org/bert", DATA, tmp_path).created == record.created


def test_the_instruction_of_the_dataset_is_the_prompt_of_the_task(models: Any, store: Any) -> None:
    from r2med.publication.bridges.mteb_models import MtebModel

    demo = load(DATA)
    system = System.parse("mteb:org/instructed")
    assert isinstance(system.retriever, MtebModel)
    encoder = system.retriever.encoder(demo, system.runtime)
    typed = MtebModel(name="mteb:org/bert").encoder(demo, system.runtime)
    words = "Instruct: Given a Medical Exam, retrieve relevant passages that help answer the exam\nQuery: "
    bare = system.retriever.model(system.runtime).loaded().first.model
    assert np.allclose(encoder.encode(["a cough"], "query").vectors, bare.encode([f"{words}a cough"]), atol=1e-5)
    assert np.allclose(encoder.encode(["a cough"], "document").vectors, bare.encode(["a cough"]), atol=1e-5)
    assert np.allclose(typed.encode(["a cough"], "generated").vectors, bare.encode(["passage: a cough"]), atol=1e-5)


def test_a_cross_encoder_reranks_by_its_own_scores(models: Any) -> None:
    demo = load(DATA)
    [record] = run("bm25", DATA, rerank=["mteb:org/cross@5"], out=None).records
    assert record.stages[-1].stage == "rerank"
    found = System.parse("bm25 → mteb:org/cross@5").run(demo, 5).run
    model = models.get_model("org/cross", device="cpu").model
    for query, ranking in found:
        [text] = [each.text for each in demo.queries if each.id == query]
        scores = model.predict([(text, demo.corpus.text(demo.corpus.row(document) or 0)) for document, _ in ranking])
        assert [score for _, score in ranking] == pytest.approx([float(score) for score in scores], abs=1e-4)


def test_a_model_that_searches_gives_its_own_ranking(models: Any) -> None:
    demo = load(DATA)
    found: Run = System.parse("mteb:org/search").run(demo, 3).run
    longest = sorted((len(text) for _, text in demo.corpus), reverse=True)[:3]
    assert [score for _, score in found.top(demo.queries[0].id)] == longest
    assert len(run("bm25+mteb:org/search", DATA, out=None).records) == 1
    whole = evaluate("mteb:org/wrapped", DATA).mean  # an encoder with a similarity that is not ours
    assert whole == pytest.approx(evaluate("mteb:org/bert", DATA).mean)
    with pytest.raises(UserError, match="mteb:org/search can only search for a whole set of queries"):
        System.parse("mteb:org/search").live(demo)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("mteb:org/brt", r"no model of MTEB 'org/brt' \(did you mean org/bert\?\): hf:ORG/NAME"),
        ("mteb:org/bert@r2", "mteb:org/bert@r2: .*r2"),
        ("mteb:org/cross", "is a cross-encoder, not a retriever: rerank with it, as in bm25 → mteb:org/cross"),
        ("bm25 → mteb:org/bert", "mteb:org/bert is not a cross-encoder"),
        ("mteb:org/own-code", r"add trust_remote_code \(--trust-remote-code\)"),
        ("mteb:openai/text-embedding-3-small%20%28embed_dim%3D512%29", "without a budget"),
        ("mteb:facebook/dinov2-small", "mteb:facebook/dinov2-small: this model does not read texts"),
    ],
)
def test_what_cannot_run_is_told_in_one_line(models: Any, system: str, message: str) -> None:

    setup = Runtime(budget=1.0) if "openai/text" in system else Runtime()
    with pytest.raises(UserError, match=message):
        System.parse(system, setup).run(load(DATA), 3)


def test_the_command_line_lists_the_form(r2med: Command) -> None:
    assert r2med("list", "stages").stdout.count("mteb:ORG/NAME") == 2

"""MTEB without the network: models of a few layers in its registry, and our datasets as tasks of its."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from r2med.data import Dataset

NO_MTEB = "mteb is not installed: extra mteb; on Linux on ARM it must be compiled"


def register_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return mteb with org/bert, org/instructed, org/cross, org/search and others in its registry."""
    mteb = pytest.importorskip("mteb", reason=NO_MTEB)
    from mteb.models import CrossEncoderWrapper, SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
    from mteb.models.model_implementations import MODEL_REGISTRY

    from support import tiny_models, tiny_rerankers

    weights = {
        "bert": str(tiny_models.sentence_bert(folder / "bert")),
        "cross": str(tiny_rerankers.bert(folder / "cross", labels=1)),
    }

    def bert(name: str, revision: str, device: str, **settings: Any) -> Any:
        return SentenceTransformerEncoderWrapper(weights["bert"], device=device, **settings)

    def instructed(name: str, revision: str, device: str, **settings: Any) -> Any:
        return InstructSentenceTransformerModel(weights["bert"], "", device=device, **settings)

    def cross(name: str, revision: str, device: str, **settings: Any) -> Any:
        return CrossEncoderWrapper(weights["cross"], device=device, **settings)

    prompts = {"model_prompts": {"query": "query: ", "document": "passage: "}}
    template = {"instruction_template": "Instruct: {instruction}\nQuery: ", "apply_instruction_to_passages": False}
    for name, loader, settings, kind in (
        ("org/bert", bert, prompts, "dense"),
        ("org/instructed", instructed, template, "dense"),
        ("org/cross", cross, {}, "cross-encoder"),
        ("org/search", LongestFirst, {}, "sparse"),
        ("org/wrapped", bert, prompts, "late-interaction"),
        ("org/own-code", bert, {"trust_remote_code": True}, "dense"),
    ):
        facts = {"name": name, "revision": "r1", "loader": loader, "loader_kwargs": settings, "model_type": [kind]}
        monkeypatch.setitem(MODEL_REGISTRY, name, mteb.models.ModelMeta.create_empty(facts))
    return mteb


class LongestFirst:
    """A model that searches by itself, the longest documents first, and forgets the corpus after it."""

    mteb_model_meta: Any = None

    def __init__(self, name: str, **settings: Any) -> None:
        self.corpus: Any = None

    def index(self, corpus: Any, **about: Any) -> None:
        self.corpus = corpus

    def search(self, queries: Any, top_k: int, **about: Any) -> dict[str, dict[str, float]]:
        lengths = sorted(((len(row["text"]), row["id"]) for row in self.corpus), reverse=True)[:top_k]
        self.corpus = None
        return {query: {document: float(length) for length, document in lengths} for query in queries["id"]}


def local_task(dataset: Dataset) -> Any:
    """Return a dataset of ours as a task of MTEB."""
    from datasets import Dataset as Rows
    from mteb import TaskMetadata
    from mteb.abstasks import AbsTaskRetrieval

    class Local(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(
            name="Local",
            description="a dataset of ours",
            dataset={"path": "local", "revision": "1"},
            type="Retrieval",
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
        )

        def load_data(self, **options: Any) -> None:
            split = {
                "corpus": Rows.from_list([{"id": key, "title": "", "text": text} for key, text in dataset.corpus]),
                "queries": Rows.from_list([{"id": query.id, "text": query.text} for query in dataset.queries]),
                "relevant_docs": {query: dict(grades) for query, grades in dataset.qrels.items()},
                "top_ranked": None,
            }
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    return Local()

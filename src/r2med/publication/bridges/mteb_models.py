"""Use models of MTEB as stages: mteb:ORG/NAME retrieves, or reranks if it is a cross-encoder.

Encoders use our batches, shards and exact search, and cross-encoders use our cache of pairs. Any other model searches
with its own `index` and `search`, and its run is stored. A model sees a dataset as a task of MTEB, with the dataset's
instruction as its prompt. A model with its own prompts prefers those, like in MTEB.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote

import numpy as np

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run, on_corpus
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import MissingExtraError, UserError, unknown
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.crossencoders.pair_scorer import ScoredPair, cost_of
from r2med.models.crossencoders.pairs import Pair
from r2med.models.encoders import devices, model_loading
from r2med.models.encoders.encoder import Encoder, Role, Vectors
from r2med.models.encoders.model_cards import ModelCard, safe_name
from r2med.models.encoders.ragged import Ragged
from r2med.models.encoders.replicas import Replicas, cached_model
from r2med.publication.bridges.mteb_results import tasks
from r2med.systems.rerank.cross import CrossEncoder
from r2med.systems.retrieve.dense.dense_retriever import Dense
from r2med.systems.retrieve.retriever import Searched, SearchQuery

PREFIX = "mteb:"
TASK_PROMPT = "Given a {kind}, retrieve {what}"
SPLIT_ARGUMENTS = {"hf_split": "test", "hf_subset": "default"}
QUIET_ARGUMENTS = {"show_progress_bar": False}
SIMILARITIES = {None: "cosine", "cosine": "cosine", "dot": "dot"}
"""Similarity by MTEB's name -> similarity of our exact search. A model without one means the cosine."""
CHARACTERS_PER_TOKEN = 4
"""Approximate length of a token. It sets the size of batches, since not every model of MTEB has a tokenizer."""


class MtebModel(Dense, kind="retrieve"):
    """Search with a model of MTEB (mteb:ORG/NAME): encoders use our search, other models their own."""

    @classmethod
    def summary(cls, name: str) -> str:
        """Return a one-sentence description."""
        return super(Dense, cls).summary(name)

    def model(self, runtime: Runtime) -> RegisteredModel:
        """Return the model of MTEB's registry. Raises UserError if it cannot search as these settings say."""
        return runtime.part((self, "mteb"), lambda: self._checked_model(runtime))

    def _checked_model(self, runtime: Runtime) -> RegisteredModel:
        model = RegisteredModel.of(self.name, runtime)
        if model.meta.is_cross_encoder:
            raise UserError(
                f"{self.name} is a cross-encoder, not a retriever: rerank with it, as in bm25 → {self.name}"
            )
        if self.changed and not model.is_encoder:
            typed = ", ".join(f"{key}={value}" for key, value in self.changed)
            raise UserError(f"{self.name} has its own search: {typed} needs a model with one vector per text")
        return model

    def card(self, runtime: Runtime) -> ModelCard:
        """Return a card with the similarity that MTEB states."""
        compared = SIMILARITIES[self.model(runtime).meta.similarity_fn_name]
        return ModelCard(name=safe_name(self.name), loader="custom", similarity=compared)

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return no modules: MTEB names its own when it loads the model."""
        self.model(runtime)
        return ()

    def encoder(self, dataset: Dataset, runtime: Runtime) -> Encoder:
        """Return the encoder for a dataset."""
        return MtebEncoder(self.model(runtime), dataset)

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        model = self.model(runtime)
        if model.is_encoder:
            return super().key(dataset, runtime)
        return {**self.settings(), "query": model.query_key(dataset), "document": model.key(dataset)}

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k best documents of each query. A model with its own search indexes the corpus each time."""
        model = self.model(runtime)
        if model.is_encoder:
            return super().search(dataset, queries, k, runtime)
        if not runtime.store.keeps_questions:
            raise UserError(f"{self.name} can only search for a whole set of queries, not answer single questions")
        return search_with_mteb(model, dataset, queries, k)


class MtebCrossEncoder(CrossEncoder, kind="rerank"):
    """Rerank candidates with a cross-encoder of MTEB (mteb:ORG/NAME)."""

    def memo_name(self, runtime: Runtime) -> str:
        """Return the model's name, as the name of a file."""
        return safe_name(self.name)

    def lock_name(self, runtime: Runtime) -> str:
        """Return the model's name in MTEB."""
        return self.name

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return no modules: MTEB names its own when it loads the model."""
        return ()

    def cost(self, scored: Sequence[ScoredPair], runtime: Runtime) -> Cost:
        """Return the cost of some scores."""
        return cost_of(scored)

    def open_scorer(self, dataset: Dataset, runtime: Runtime) -> MtebScorer:
        """Return the scorer for a dataset. Raises UserError if the model is not a cross-encoder."""
        model = RegisteredModel.of(self.name, runtime)
        if not model.meta.is_cross_encoder:
            raise UserError(f"{self.name} is not a cross-encoder: it can retrieve, but not rerank")
        return MtebScorer(model, dataset)

    def _scorer(self, dataset: Dataset, runtime: Runtime) -> MtebScorer:
        # MTEB's prompts depend on the name of a dataset, not only on its instruction.
        return self.open_scorer(dataset, runtime)


@dataclass(frozen=True)
class RegisteredModel:
    """A model of MTEB's registry with our setup."""

    name: str
    meta: Any
    runtime: Runtime

    @classmethod
    def of(cls, name: str, runtime: Runtime) -> RegisteredModel:
        """Return the model of mteb:ORG/NAME or mteb:ORG/NAME@REVISION.

        Raises UserError if mteb is not installed or does not have this model, or if the setup cannot run it.
        """
        mteb = _mteb(name)
        typed, _, revision = unquote(name.removeprefix(PREFIX)).partition("@")
        try:
            meta = mteb.get_model_meta(typed, revision or None)
        except KeyError:
            known = [meta.name for meta in mteb.get_model_metas()]
            raise unknown("model of MTEB", typed, known, "hf:ORG/NAME takes any of the hub") from None
        except ValueError as error:  # another revision than the one in the registry
            raise UserError(f"{name}: {error}") from None
        own_code = meta.loader_kwargs.get("trust_remote_code") and not runtime.setup.trust_remote_code
        for wrong, why in (
            (meta.loader is None, "MTEB has results for this model, but no code to run it"),
            ("text" not in meta.modalities, "this model does not read texts"),
            (
                own_code,
                "this model runs code from its own repository: add trust_remote_code (--trust-remote-code)",
            ),
            (
                runtime.setup.dtype != "auto",
                "it has the precision that MTEB gives it: leave dtype (--dtype) out",
            ),
            (
                "API" in meta.framework and runtime.budget.limit is not None,
                "MTEB has no prices: run without a budget",
            ),
        ):
            if wrong:
                raise UserError(f"{name}: {why}")
        devices.check_torch(runtime.setup, name)
        return cls(name, meta, runtime)

    @property
    def is_encoder(self) -> bool:
        """True if the model makes one vector per text that our search can compare."""
        one_vector = {"dense", "router"}.intersection(self.meta.model_type)
        return bool(one_vector) and self.meta.similarity_fn_name in SIMILARITIES

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return everything that the vectors of documents depend on. Nothing is loaded."""
        return {
            "loader": "mteb",
            "model": self.meta.name,
            "revision": self.meta.revision or "",
            "settings": _plain(self.meta.loader_kwargs),
            "mteb": version("mteb"),
            "task": _task_name(dataset),
        }

    def query_key(self, dataset: Dataset) -> dict[str, Any]:
        """Return everything that the vectors of queries depend on, including the prompt of the task."""
        return {**self.key(dataset), "task_prompt": dataset.instruction.fill(TASK_PROMPT)}

    def task(self, dataset: Dataset) -> Any:
        """Return the metadata of a dataset as a task of MTEB."""
        from mteb.abstasks.task_metadata import TaskMetadata

        return TaskMetadata(
            name=_task_name(dataset),
            description=f"{dataset.name}, by r2med",
            dataset={"path": dataset.source or dataset.name, "revision": dataset.fingerprint},
            type="Retrieval",
            category="t2t",
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
            prompt={"query": dataset.instruction.fill(TASK_PROMPT)},
        )

    def loaded(self) -> Replicas[Any]:
        """Return a copy of the model on each device."""

        def load(device: str, dtype: str) -> Any:
            with _quietly(f"{self.name}: loading it"), model_loading.quiet():
                return self.meta.load_model(device=device)

        key = ("mteb", self.meta.name, self.meta.revision)
        return cached_model(key, self.runtime, lambda: Replicas(self.runtime.setup, load))

    def rows(self, texts: Sequence[str], ask: Callable[[Any, Sequence[int]], Any]) -> Ragged:
        """Return one row per text. `ask(model, positions)` returns the rows at these positions from one model copy."""

        def rows(model: Any, positions: Sequence[int]) -> Vectors:
            with _quietly(self.name):
                returned = ask(model, positions)
            if hasattr(returned, "detach"):
                returned = returned.detach().float().cpu().numpy()
            array = np.asarray(returned, dtype=np.float32)
            array = array[:, None] if array.ndim == 1 else array
            if array.ndim != 2 or len(array) != len(positions):
                raise UserError(f"{self.name} returned an array of shape {array.shape} for {len(positions)} texts")
            return array

        limit = int(min(self.meta.max_tokens or 1 << 20, 1 << 20))
        lengths = [min(limit, 1 + len(text) // CHARACTERS_PER_TOKEN) for text in texts]
        encoded = self.loaded().run(lengths, rows, estimated=True)
        return replace(encoded, cost=replace(encoded.cost, unpriced=len(texts) if "API" in self.meta.framework else 0))


@dataclass(frozen=True)
class MtebEncoder(Encoder):
    """Encodes the texts of a dataset. Generated texts resemble documents and are encoded like them."""

    model: RegisteredModel
    dataset: Dataset

    def key(self, role: Role) -> dict[str, Any]:
        """Return everything that the vectors of a role depend on."""
        return (self.model.query_key if role == "query" else self.model.key)(self.dataset)

    def encode(self, texts: Sequence[str], role: Role) -> Ragged:
        """Return one row per text, in the same order."""
        from mteb.types import PromptType

        if not texts:
            return Ragged.single(np.empty((0, 0), dtype=np.float32))
        kind = PromptType.query if role == "query" else PromptType.document
        task = self.model.task(self.dataset)

        def ask(model: Any, at: Sequence[int]) -> Any:
            inputs = _inputs([texts[position] for position in at], kind.value)
            return model.encode(
                inputs, task_metadata=task, prompt_type=kind, batch_size=len(at), **SPLIT_ARGUMENTS, **QUIET_ARGUMENTS
            )

        return self.model.rows(texts, ask)


def search_with_mteb(model: RegisteredModel, dataset: Dataset, queries: Sequence[SearchQuery], k: int) -> Searched:
    """Return what a model of MTEB with its own search finds: multi-vector, sparse and hybrid models, and BM25.

    Raises UserError if the model fails.
    """
    from mteb.models import SearchEncoderWrapper
    from mteb.models.models_protocols import SearchProtocol

    corpus, loaded = dataset.corpus, model.loaded().first
    about = {
        "task_metadata": model.task(dataset),
        **SPLIT_ARGUMENTS,
        "encode_kwargs": QUIET_ARGUMENTS,
        "num_proc": None,
    }
    ids = [query.query.id for query in queries]
    with _quietly(model.name):
        searcher = loaded if isinstance(loaded, SearchProtocol) else SearchEncoderWrapper(loaded)
        started = time.perf_counter()
        searcher.index(_rows(*zip(*corpus, strict=True)), **about)
        indexed = time.perf_counter()
        asked = _rows(ids, [query.lexical_text for query in queries])
        rankings = searcher.search(asked, top_k=min(k, len(corpus)), top_ranked=None, **about)
    cost = Cost(seconds=time.perf_counter() - indexed, texts=len(ids))
    prepared = Cost(seconds=indexed - started, texts=len(corpus))
    return Searched(on_corpus(Run.of(rankings), ids, corpus, k, model.name), cost, prepared)


@dataclass(frozen=True)
class MtebScorer:
    """Scores pairs with a cross-encoder of MTEB."""

    model: RegisteredModel
    dataset: Dataset

    def key(self) -> dict[str, Any]:
        """Return everything that a score depends on, except the two texts."""
        return self.model.query_key(self.dataset)

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """Return one score per pair, in the same order."""
        if not pairs:
            return []
        task = self.model.task(self.dataset)

        def ask(model: Any, at: Sequence[int]) -> Any:
            queries, documents = zip(*(pairs[position] for position in at), strict=True)
            sides = _inputs(queries, "query"), _inputs(documents, "document")
            return model.predict(*sides, task_metadata=task, batch_size=len(at), **SPLIT_ARGUMENTS, **QUIET_ARGUMENTS)

        started = time.perf_counter()
        scores = self.model.rows([f"{query} {document}" for query, document in pairs], ask).vectors
        if scores.shape[1] != 1:
            raise UserError(f"{self.model.name} gives {scores.shape[1]} scores for a pair: one is needed")
        seconds = (time.perf_counter() - started) / len(pairs)
        return [ScoredPair(float(score), seconds=seconds) for score in scores[:, 0]]


def _mteb(name: str) -> Any:
    try:
        import mteb
    except ModuleNotFoundError:
        compiled = "pytrec-eval-terrier, which mteb needs, has to be compiled there"
        raise MissingExtraError(name, "mteb", f" (on Linux on ARM see docs/bridges.md: {compiled})") from None
    import datasets

    logging.getLogger("mteb").setLevel(logging.ERROR)  # it warns about every prompt that a task does not have
    datasets.disable_progress_bars()
    return mteb


@contextmanager
def _quietly(what: str) -> Iterator[None]:
    """Hide warnings, and raise UserError for any error of the model except a lack of memory, which callers handle."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        if isinstance(error, UserError) or devices.is_out_of_memory(error):
            raise
        raise UserError(f"{what}: {type(error).__name__}: {error}") from error


def _task_name(dataset: Dataset) -> str:
    """Return MTEB's name of a dataset if it has one, since models may have a prompt for this task."""
    return tasks().get(dataset.name, dataset.name)


def _inputs(texts: Sequence[str], side: str) -> Any:
    """Return texts in one batch, in the form that MTEB gives to its models."""
    from datasets import Dataset as Rows
    from torch.utils.data import DataLoader

    stripped = [text.strip() for text in texts] if side == "document" else list(texts)
    columns = {"text": stripped, {"query": "query", "document": "body"}[side]: list(texts)}
    return DataLoader(Rows.from_dict(columns), batch_size=len(texts))


def _rows(ids: Sequence[str], texts: Sequence[str]) -> Any:
    from datasets import Dataset as Rows

    return Rows.from_dict({"id": list(ids), "text": list(texts)})


def _plain(value: Any) -> Any:
    """Return the settings of a model as JSON values. A function is written as its name."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__qualname__", None) or str(value)

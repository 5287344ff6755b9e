"""Threads of one runtime wait for the model that they use, and for no other."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from r2med import Runtime, System
from r2med.data import Corpus, Query
from r2med.models.encoders.user_objects import UserObjects
from r2med.systems.retrieve.dense import dense_retriever
from support import embedding_server as api
from support.api_encoders import card
from support.datasets import dataset_of
from support.keys import KEY

SECONDS = 120
"""Far more than any machine needs: a test that waits so long hangs."""
DATASET = dataset_of(Corpus.of([("iron", "Iron deficiency."), ("knee", "A swollen knee.")]), [Query("0", "iron")])


class MeetingModel:
    """A model whose every question waits until the other model is asked a question, too."""

    revision = "1"

    def __init__(self, name, meeting):
        self.name, self._meeting = name, meeting
        self.is_ready = False
        self._alone = threading.Lock()

    def encode_corpus(self, texts):
        return np.ones((len(texts), 2))

    def encode_queries(self, texts):
        assert self._alone.acquire(blocking=False), "two threads use one model at the same time"
        try:
            if self.is_ready:
                self._meeting.wait(SECONDS)
            return np.ones((len(texts), 2))
        finally:
            self._alone.release()


class MeetingReranker(MeetingModel):
    """A cross-encoder that waits as well."""

    def predict(self, pairs):
        return self.encode_queries(pairs)[:, 0]


@pytest.mark.parametrize(("kind", "before"), [(MeetingModel, ""), (MeetingReranker, "bm25 → ")])
def test_four_questions_to_two_slow_models_keep_both_models_busy(store, kind, before):
    """With one lock for all models, no model would ever meet the other, and the barrier would break."""
    meeting = threading.Barrier(2)
    models = [kind(name, meeting) for name in ("one", "other")]
    with Runtime(store=store) as runtime, ThreadPoolExecutor(4) as threads:
        specs = [before + UserObjects.of(runtime).name(model) for model in models]
        live = store.with_policy("live")
        systems = [System.parse(spec, runtime).with_store(live).live(DATASET) for spec in specs]
        for model in models:
            model.is_ready = True
        asked = [
            threads.submit(system.answer, f"iron, question {number}", 1) for number in range(2) for system in systems
        ]
        assert [answer.result(SECONDS).run.found.tolist() for answer in asked] == [[1]] * 4


def test_an_api_that_stalls_stops_no_other_retriever(store, embedding_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(dense_retriever, "resolve_card", lambda name: card(name))
    is_asked, go_on = threading.Event(), threading.Event()

    def stall(exchange):
        is_asked.set()
        assert go_on.wait(SECONDS)
        api.answer()(exchange)

    endpoints = tuple((name, embedding_server.address) for name in ("openai", "voyage"))
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    with Runtime(store=store, endpoints=endpoints) as runtime, ThreadPoolExecutor(1) as threads:
        live = store.with_policy("live")
        stalled, lexical, dense = (
            System.parse(spec, runtime).with_store(live).live(DATASET) for spec in ("openai", "bm25", "voyage")
        )
        embedding_server.script = [stall]
        waiting = threads.submit(stalled.answer, "iron", 1)
        try:
            assert is_asked.wait(SECONDS)
            assert lexical.answer("iron", 1).run.found.tolist() == [1]
            assert dense.answer("iron", 1).run.found.tolist() == [1]
            assert not waiting.done()
        finally:
            go_on.set()
        assert waiting.result(SECONDS).run.found.tolist() == [1]

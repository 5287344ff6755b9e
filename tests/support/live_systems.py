"""Live systems over a small corpus, and an application that serves them."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI

from r2med.data import Corpus, Dataset
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.server.http_app import create_app
from r2med.server.served_corpus import ServedData, open_served
from support.datasets import LIVE_DOCUMENTS, dataset_of


def app_of(*specs: str, folder: Path, dataset: Dataset | None = None, **setup: Any) -> FastAPI:
    """Return the application for some systems; `setup` are fields of Setup."""
    store = Store(folder, "live")
    dataset = dataset or dataset_of(Corpus.of(LIVE_DOCUMENTS))
    served, systems = open_served(dataset, specs, "", Runtime(store=store, **setup), store)
    return create_app(ServedData(served, systems))

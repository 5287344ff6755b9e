"""Live systems over a small corpus, and an application that serves them."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI

from r2med.data import Corpus, Dataset
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.server.http_app import create_app
from r2med.server.served_corpus import open_served
from support.datasets import dataset_of

MARKUP = "<img src=x onerror='window.harmed=1'>\u202e __proto__ javascript:alert(1)"
DOCUMENTS = [
    ("gluten", "Gluten harms the small bowel in coeliac disease."),
    ("iron", "Iron deficiency has many causes; bread is none of them."),
    ("knee", "A swollen knee after a fall."),
    (MARKUP, f"A swollen face, and {MARKUP} in the text."),
]


def app_of(*specs: str, folder: Path, dataset: Dataset | None = None, settings: Any = None, **setup: Any) -> FastAPI:
    """Return the application for some systems; `settings` are those of the application, `setup` fields of Setup."""
    store = Store(folder, "live")
    dataset = dataset or dataset_of(Corpus.of(DOCUMENTS))
    served, systems = open_served(dataset, specs, "", Runtime(store=store, **setup), store)
    return create_app(served, systems=systems, **(settings or {}))

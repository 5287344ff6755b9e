"""The path of a text from a system to torch is short: a reader can follow it, and a traceback shows it."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest
import torch

import r2med
from r2med import Dataset, Qrels, Query
from r2med.data import Corpus
from r2med.foundation.store import Store
from r2med.systems.system import System

SOURCE = str(Path(r2med.__file__).parent)


def frames_between_system_and_model() -> list[str]:
    """Return our functions on the stack below `System._run` and above the first one of a library for models."""
    stack = traceback.extract_stack()
    start = max(number for number, frame in enumerate(stack) if frame.name == "_run" and "system.py" in frame.filename)
    names = list[str]()
    for frame in stack[start + 1 :]:
        if any(f"{library}/" in frame.filename for library in ("torch", "transformers", "sentence_transformers")):
            break
        if frame.filename.startswith(SOURCE):
            names.append(frame.name)
    return names


def test_a_text_passes_few_of_our_functions_before_torch_sees_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = set[tuple[str, ...]]()
    call = torch.nn.Module.__call__

    def noted(module: torch.nn.Module, *inputs: Any, **settings: Any) -> Any:
        stacks.add(tuple(frames_between_system_and_model()))
        return call(module, *inputs, **settings)

    monkeypatch.setattr(torch.nn.Module, "__call__", noted)
    corpus = Corpus.of([("d1", "heart attack"), ("d2", "bread recipe")])
    data = Dataset("small", (Query("q1", "heart"),), corpus, Qrels({"q1": {"d1": 1}}))
    System.parse("minilm").run(data, 2)
    encoding = [stack for stack in stacks if "cached_model" not in stack]  # the others load the weights
    of_documents = [stack for stack in encoding if "embed_corpus" in stack]
    of_queries = [stack for stack in encoding if "embed_texts" in stack]
    assert of_documents and of_queries
    assert max(map(len, of_documents)) <= 18, of_documents
    assert max(map(len, of_queries)) <= 17, of_queries

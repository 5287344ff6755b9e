"""The loader `custom`: any Python object with `encode_queries` and `encode_corpus`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from r2med.cost import Cost
from r2med.data.dataset_cards import Instruction
from r2med.encoders.encoder import Encoded, Role, check_finite, timed
from r2med.encoders.model_cards import ModelCard
from r2med.errors import UserError, nearest
from r2med.setup import Setup

METHODS = {"query": "encode_queries", "document": "encode_corpus"}
EXPECTED = (TypeError, KeyError, AttributeError, IndexError)
"""What code that reads `document["text"]` or `document.get("text")` raises when it is given a string."""


class CustomEncoder:
    """Encodes with a user's object; its prefix, lengths and batches are its own affair."""

    def __init__(self, card: ModelCard, instruction: Instruction, setup: Setup, store: object = None) -> None:
        self._place, self._generated = card.repository, card.generated
        self._model = load(self._place)
        self._source = source_digest(self._place)
        self._wants_dicts: bool | None = None

    def describe(self, role: Role) -> dict[str, Any]:
        """Return the object's name, and a digest of its module's source: what it imports in turn is not in it."""
        return {"loader": "custom", "model": self._place, "source": self._source, "method": self._method_name(role)}

    @timed
    def encode(self, texts: Sequence[str], role: Role) -> Encoded:
        """Return one row per text, in their order, checked."""
        name = self._method_name(role)
        if not texts:
            return Encoded(np.empty((0, 0), dtype=np.float32))
        found = self._call(getattr(self._model, name), list(texts), name)
        if hasattr(found, "detach"):
            found = found.detach().float().cpu().numpy()
        where = f"{self._place}.{name}"
        try:
            vectors = np.asarray(found, dtype=np.float32)
        except (TypeError, ValueError):
            raise UserError(f"{where} must return an array of numbers, not {type(found).__name__}") from None
        if vectors.ndim != 2:
            raise UserError(f"{where} must return one row per text: its array has the shape {vectors.shape}")
        if len(vectors) != len(texts):
            raise UserError(f"{where} returned {len(vectors):,} rows for {len(texts):,} texts")
        check_finite(vectors, hint=f"from {where}")
        return Encoded(vectors, Cost(texts=len(texts)))

    def _method_name(self, role: Role) -> str:
        side = self._generated if role == "generated" else role
        return METHODS["document" if side == "document" else "query"]

    def _call(self, method: Callable[[list[Any]], Any], texts: list[str], name: str) -> Any:
        """Give strings; a corpus method that cannot read strings gets `{"text": …}`, and from then on only that.

        Tried with strings first, since both shapes are in use and a method's signature does not tell. An error of
        the method itself comes back when dicts fail as well: then the first one is shown.
        """
        if name == METHODS["query"] or self._wants_dicts is False:
            return guarded(method, texts, f"{self._place}.{name}")
        dicts = [{"text": text} for text in texts]
        if self._wants_dicts:
            return guarded(method, dicts, f"{self._place}.{name}")
        try:
            found = method(list(texts))
        except EXPECTED as error:
            try:
                found = method(list(dicts))
            except Exception:
                raise _failed(f"{self._place}.{name}", error) from error
            self._wants_dicts = True
            return found
        except UserError:
            raise
        except Exception as error:
            raise _failed(f"{self._place}.{name}", error) from error
        self._wants_dicts = False
        return found


def guarded(method: Callable[[list[Any]], Any], inputs: list[Any], where: str) -> Any:
    """Return what a user's method returns; what it raises is one line that says where."""
    try:
        return method(inputs)
    except UserError:
        raise
    except Exception as error:
        raise _failed(where, error) from error


def _failed(where: str, error: Exception) -> UserError:
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    at = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return UserError(f"{where} failed{at}: {type(error).__name__}: {error}")


def load(place: str, methods: Sequence[str] = tuple(METHODS.values())) -> Any:
    """Return the object of MODULE:NAME, a class instantiated; the current folder is importable."""
    module_name, _, name = place.partition(":")
    with _current_folder():
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            missing = error.name or module_name
            if missing != module_name and not module_name.startswith(f"{missing}."):
                raise UserError(f"model {place}: its module needs {missing!r}, which is not installed") from None
            there = [path.stem for path in Path.cwd().glob("*.py")]
            raise UserError(
                f"model {place}: no module {module_name!r}{nearest(module_name, there)} in {Path.cwd()} or installed"
            ) from None
        except Exception as error:
            raise _failed(f"model {place}: importing {module_name}", error) from error
        found: Any = module
        for part in name.split("."):
            if not hasattr(found, part):
                public = [known for known in dir(found) if not known.startswith("_")]
                raise UserError(f"model {place}: {module_name} has no {part!r}{nearest(part, public)}")
            found = getattr(found, part)
        if inspect.isclass(found):
            try:
                found = found()
            except Exception as error:
                raise _failed(f"model {place}: creating it without arguments", error) from error
    for method in methods:
        if not callable(getattr(found, method, None)):
            raise UserError(f"model {place}: it has no method {method}, it needs {' and '.join(methods)}")
    return found


@contextmanager
def _current_folder() -> Any:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def source_digest(place: str) -> str:
    """Return a digest of the module's source file, so that a changed model is encoded again."""
    module = sys.modules[place.partition(":")[0]]
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:40] if file else ""

"""The loader `custom`: any Python object that encodes, by `encode_queries` and `encode_corpus` or by `encode` alone.

An object is known by the source of its module and by what it says of itself: `revision`, a string that changes with its
vectors, and `folders`, where the files lie that it reads. Without either nobody can tell whether it was trained
further since, so nothing of it is used again by a later process.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import logging
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.core.cost import Cost
from r2med.core.errors import UserError, nearest
from r2med.data.dataset_cards import Instruction
from r2med.encoders.encoder import Encoded, Role, check_finite, timed
from r2med.encoders.model_cards import ModelCard
from r2med.encoders.weights import folder_revision
from r2med.engine.work import HERE, Needs
from r2med.runtime.runtime import Runtime

log = logging.getLogger("r2med")

METHODS = (
    {"query": "encode_queries", "document": "encode_corpus"},
    {"query": "encode_query", "document": "encode_document"},
    {"query": "encode", "document": "encode"},
)
"""The methods that encode either side, by the first pair that an object has."""
PIPELINE = "pyterrier"
"""How the names begin of objects that neither encode nor score pairs, but transform whole frames."""
EXPECTED = (TypeError, KeyError, AttributeError, IndexError)
"""What code that reads `document["text"]` or `document.get("text")` raises when it is given a string."""


class CustomEncoder:
    """Encodes with a user's object; its prefix, lengths and batches are its own affair."""

    def __init__(self, card: ModelCard, instruction: Instruction, runtime: Runtime, store: object = None) -> None:
        self._opened_with = (card, instruction, runtime)
        self._object = python_object(card.repository)
        self._methods = _encoding_methods(self._object.model, f"model {card.repository}")
        self._path = card.repository
        self._generated = card.generated
        self._wants_dicts: bool | None = None

    def __reduce__(self) -> tuple[type[CustomEncoder], tuple[ModelCard, Instruction, Runtime]]:
        return type(self), self._opened_with

    @property
    def needs(self) -> Needs:
        """Where it can be opened: what is known in this process only stays in it."""
        return self._object.needs

    def describe(self, role: Role) -> dict[str, Any]:
        """Return the object's name, the digest of its module's source, and its revision."""
        return {**self._object.describe(), "method": self._method_name(role)}

    @timed
    def encode(self, texts: Sequence[str], role: Role) -> Encoded:
        """Return one row per text, in their order. Raises UserError if the object returned something else."""
        name = self._method_name(role)
        if not texts:
            return Encoded(np.empty((0, 0), dtype=np.float32))
        returned = self._call(getattr(self._object.model, name), list(texts), name)
        vectors = self._object.numbers(returned, len(texts), name, "row per text").astype(np.float32)
        check_finite(vectors, hint=f"from {self._path}.{name}")
        return Encoded(vectors, Cost(texts=len(texts)))

    def _method_name(self, role: Role) -> str:
        side = self._generated if role == "generated" else role
        return self._methods["document" if side == "document" else "query"]

    def _call(self, method: Callable[[list[Any]], Any], texts: list[str], name: str) -> Any:
        """Give strings; a corpus method that cannot read strings gets `{"text": …}`, and from then on only that.

        Tried with strings first, since both shapes are in use and a method's signature does not tell. An error of
        the method itself comes back when dicts fail as well: then the first one is shown.
        """
        if name == self._methods["query"] or self._wants_dicts is False:
            return guarded(method, texts, f"{self._path}.{name}")
        dicts = [{"text": text} for text in texts]
        if self._wants_dicts:
            return guarded(method, dicts, f"{self._path}.{name}")
        with _one_line(f"{self._path}.{name}"):
            try:
                returned = method(list(texts))
                self._wants_dicts = False
            except EXPECTED as error:
                try:
                    returned = method(list(dicts))
                except Exception:
                    raise error from None
                self._wants_dicts = True
        return returned


def _encoding_methods(model: Any, what: str) -> Mapping[str, str]:
    for methods in METHODS:
        if all(callable(getattr(model, name, None)) for name in methods.values()):
            return methods
    first = METHODS[0]
    lacking = next(name for name in first.values() if not callable(getattr(model, name, None)))
    raise UserError(f"{what}: it has no method {lacking}, it needs {' and '.join(first.values())}, or encode")


_OWN_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")


def spec_of(model: object) -> str:
    """Return the name of a user's object in systems of this process: py:MODULE:CLASS, numbered if that is taken.

    An object with an attribute `name`, a string, is called by it: py:MODULE:NAME.

    That of a pipeline of PyTerrier, which has `transform` and neither encodes nor predicts, begins with pyterrier.

    It may have been trained further since it was last named, so what it gave until then counts only if it says that it
    is the same (`revision`). Raises UserError if it neither encodes nor, as a reranker, has `predict`.
    """
    module, name = type(model).__module__, type(model).__name__
    chosen = getattr(model, "name", None)
    if isinstance(chosen, str) and chosen:
        if not _OWN_NAME.fullmatch(chosen):
            raise UserError(f"a model's attribute name is {chosen!r}: letters, digits, '.', '_' and '-' only")
        name = chosen
    methods = [name for name in ("encode", "predict", "transform") if callable(getattr(model, name, None))]
    is_pipeline = methods == ["transform"]
    if not is_pipeline and "predict" not in methods:
        _encoding_methods(model, f"an object of {name}, given as a system")
    with _lock:
        alike = [path for path in _given if re.fullmatch(rf"{re.escape(f'{module}:{name}')}(-\d+)?", path)]
        path = next((path for path in alike if _given[path].model is model), "")
        path = path or (f"{module}:{name}-{len(alike) + 1}" if alike else f"{module}:{name}")
        source = _source_digest(sys.modules.get(module))
        _given[path] = PythonObject(path, model, source, uuid.uuid4().hex)
    return f"{PIPELINE if is_pipeline else 'py'}:{path}"


@dataclass(frozen=True)
class PythonObject:
    """An object of a user's, as MODULE:NAME names it."""

    path: str
    model: Any
    source: str
    """A digest of its module's source: what that imports in turn is not in it."""
    since: str = ""
    """When it was given, for one that is not imported."""

    def describe(self) -> dict[str, Any]:
        """Return all that is known of what its answers depend on; `this process` if it does not say enough."""
        return {"loader": "custom", "model": self.path, "source": self.source, **self._revision()}

    @property
    def needs(self) -> Needs:
        """Where it can be made: what was given by hand, or does not say which weights it has, is here alone."""
        return HERE if self.since or "process" in self._revision() else Needs(gpu=True)

    def numbers(self, returned: Any, count: int, method: str, each: str) -> npt.NDArray[np.float64]:
        """Return what a method returned as an array of a "row per text" or a "number per pair".

        Raises UserError if it is something else.
        """
        where = f"{self.path}.{method}"
        entry, _, given = each.partition(" per ")
        if returned is None:
            raise UserError(f"{where} returned nothing: it must return one {each}")
        if hasattr(returned, "detach"):
            returned = returned.detach().float().cpu().numpy()
        try:
            array = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            raise UserError(f"{where} must return an array of numbers, not {type(returned).__name__}") from None
        if array.ndim != (2 if entry == "row" else 1):
            raise UserError(f"{where} must return one {each}: its array has the shape {array.shape}")
        if len(array) != count:
            raise UserError(f"{where} returned {len(array):,} {entry}s for {count:,} {given}s")
        return array

    def _revision(self) -> dict[str, Any]:
        revision = self._stated("revision")
        folders = self._stated("folders")
        if revision is None and folders is None:
            _notice(self.path)
            return {"process": self.since or _this_process()}
        paths = [folders] if isinstance(folders, str | Path) else list(folders or ())
        return {
            "revision": "" if revision is None else str(revision),
            "files": {str(path): self._files_digest(Path(path).expanduser()) for path in paths},
        }

    def _stated(self, name: str) -> Any:
        value = getattr(self.model, name, None)
        return guarded(lambda _: value(), [], f"{self.path}.{name}") if callable(value) else value

    def _files_digest(self, path: Path) -> str:
        if path.is_dir():
            return folder_revision(path, ignored=())
        if path.is_file():
            return hashlib.sha256(path.read_bytes()).hexdigest()[:40]
        raise UserError(f"{self.path}.folders names {path}, which is not there")


@cache
def _this_process() -> str:
    return uuid.uuid4().hex


@cache
def _notice(path: str) -> None:
    """Write the line for an object that does not say which weights it has, once."""
    log.warning(
        "py:%s does not say which weights it has, so later runs start over: give it an attribute `revision`, a string "
        "that changes with them, or `folders`, the folders where they lie",
        path,
    )


_given: dict[str, PythonObject] = {}
"""Objects of this process, by the names they got."""
_objects: dict[tuple[str, str], PythonObject] = {}
_sources: dict[str, str] = {}
"""The digest of the source of each module when it was imported here."""
_lock = threading.Lock()


def python_object(path: str, methods: Sequence[str] = ()) -> PythonObject:
    """Return the object of MODULE:NAME, made once in a process; a class is called without arguments.

    The current folder is importable. A module whose source has changed since is imported again. Raises UserError if
    there is no such object, or if it lacks one of the methods.
    """
    if path in _given:
        return _given[path]
    module_name = path.partition(":")[0]
    with _lock, _current_folder():
        module = _imported(module_name, path)
        source = _source_digest(module)
        if _sources.setdefault(module_name, source) != source:
            with _one_line(f"model {path}: importing {module_name}"):
                module = importlib.reload(module)
            _sources[module_name] = source
        if (path, source) not in _objects:
            _objects[path, source] = PythonObject(path, _made(module, path), source)
    python = _objects[path, source]
    for method in methods:
        if not callable(getattr(python.model, method, None)):
            raise UserError(f"model {path}: it has no method {method}, it needs {' and '.join(methods)}")
    return python


def _imported(name: str, path: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if missing != name and not name.startswith(f"{missing}."):
            raise UserError(f"model {path}: its module needs {missing!r}, which is not installed") from None
        modules = [file.stem for file in Path.cwd().glob("*.py")]
        raise UserError(
            f"model {path}: no module {name!r}{nearest(name, modules)} in {Path.cwd()} or installed"
        ) from None
    except Exception as error:
        raise _failed(f"model {path}: importing {name}", error) from error


def _made(module: Any, path: str) -> Any:
    thing = module
    for part in path.partition(":")[2].split("."):
        if not hasattr(thing, part):
            public = [name for name in dir(thing) if not name.startswith("_")]
            raise UserError(f"model {path}: {module.__name__} has no {part!r}{nearest(part, public)}")
        thing = getattr(thing, part)
    if not inspect.isclass(thing):
        return thing
    with _one_line(f"model {path}: creating it without arguments"):
        return thing()


def _source_digest(module: Any) -> str:
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:40] if file else ""


def guarded(method: Callable[[list[Any]], Any], inputs: list[Any], where: str) -> Any:
    """Return what a user's method returns. Raises UserError that says where it failed."""
    with _one_line(where):
        return method(inputs)


@contextmanager
def _one_line(where: str) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise _failed(where, error) from error


def _failed(where: str, error: Exception) -> UserError:
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    at = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return UserError(f"{where} failed{at}: {type(error).__name__}: {error}")


@contextmanager
def _current_folder() -> Iterator[None]:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)

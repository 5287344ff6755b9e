"""Python objects of the user as models: imported by MODULE:NAME, or passed to `r2med.run`. Each runtime has its own.

A function is a model too: it turns texts into vectors or, as a reranker, pairs into scores.
An object is identified by the source of its module and of the user's modules that it imports, and by two optional
attributes. `revision` is a string that changes with its vectors. `folders` are the folders with the files that it
reads. An imported object without either is what its source makes. An object that was passed in without either may have
been trained further, and a module without a file may have changed, so a later run uses none of their results.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.errors import ForeignCodeError, UserError, nearest
from r2med.foundation.core.foreign_code import code_digest
from r2med.foundation.engine.work import HERE, WorkNeeds
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.store.file_digests import path_digest

log = logging.getLogger("r2med")

METHODS = (
    {"query": "encode_queries", "document": "encode_corpus"},
    {"query": "encode_query", "document": "encode_document"},
    {"query": "encode", "document": "encode"},
)
"""Names of the methods that encode queries and documents. The first pair that an object has is used."""

_OWN_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")
_SOURCE = "__r2med_source__"
"""Attribute of a user's module with the digest of its source when it was imported. All runtimes share modules."""


@dataclass(frozen=True)
class UserFunction:
    """A function of the user as an object with the methods of a model."""

    function: Callable[[list[Any]], Any]

    def encode(self, texts: list[Any]) -> Any:
        """Return a vector for each text."""
        return self.function(texts)

    def predict(self, pairs: list[Any]) -> Any:
        """Return a score for each pair."""
        return self.function(pairs)

    @property
    def revision(self) -> Any:
        """The attribute of the function."""
        return getattr(self.function, "revision", None)

    @property
    def folders(self) -> Any:
        """The attribute of the function."""
        return getattr(self.function, "folders", None)


@dataclass(frozen=True)
class PythonObject:
    """A Python object of the user, identified by MODULE:NAME."""

    path: str
    model: Any
    source: str
    """Digest of its module's source and of the user's modules that it imports."""
    made: str
    """Identifies the time at which it was created or passed in."""
    store: Store
    """Remembers the digests of its files."""
    is_given: bool = False
    """True if it was passed in, and not imported."""

    def key(self) -> dict[str, Any]:
        """Return everything known that its results depend on. If that is not all, this includes the current process."""
        return {"loader": "custom", "model": self.path, "source": self.source, **self._revision()}

    @property
    def needs(self) -> WorkNeeds:
        """Where it can be created.

        An object that was passed in, or whose files are not known, exists only in this process.
        """
        return HERE if self.is_given or not self.is_known else WorkNeeds(gpu=True)

    @property
    def is_known(self) -> bool:
        """True if everything is known that its results depend on: it states its weights, or its source makes it."""
        return self.states_weights or (bool(self.source) and not self.is_given)

    @property
    def states_weights(self) -> bool:
        """True if it has a revision, or names the folders with its files."""
        return self._stated("revision") is not None or self._stated("folders") is not None

    def check_method(self, name: str) -> None:
        """Raise UserError if it lacks a method."""
        if not callable(getattr(self.model, name, None)):
            raise UserError(f"model {self.path}: it has no method {name}; it needs {name}")

    def numbers(self, returned: Any, count: int, method: str, each: str) -> npt.NDArray[np.float64]:
        """Return the result of a method as an array with one "row per text" or one "number per pair".

        Raises UserError if it is something else.
        """
        where = f"{self.path}.{method}"
        entry, _, given = each.partition(" per ")
        if returned is None:
            raise UserError(f"{where} returned nothing; it must return one {each}")
        if hasattr(returned, "detach"):
            returned = returned.detach().float().cpu().numpy()
        try:
            array = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            raise UserError(f"{where} must return an array of numbers, not {type(returned).__name__}") from None
        if array.ndim != (2 if entry == "row" else 1):
            raise UserError(f"{where} must return one {each}, but its array has the shape {array.shape}")
        if len(array) != count:
            raise UserError(f"{where} returned {len(array):,} {entry}s for {count:,} {given}s")
        return array

    def _revision(self) -> dict[str, Any]:
        revision = self._stated("revision")
        folders = self._stated("folders")
        if revision is None and folders is None:
            return {} if self.is_known else {"process": self.made}
        paths = [folders] if isinstance(folders, str | Path) else list(folders or ())
        return {
            "revision": "" if revision is None else str(revision),
            "files": {str(path): self._files_digest(Path(path).expanduser()) for path in paths},
        }

    def _stated(self, name: str) -> Any:
        value = getattr(self.model, name, None)
        return guarded(lambda _: value(), [], f"{self.path}.{name}") if callable(value) else value

    def _files_digest(self, path: Path) -> str:
        if not path.exists():
            raise UserError(f"{self.path}.folders names {path}, which does not exist")
        return path_digest(path, self.store)


class UserObjects:
    """The objects of one runtime, by name. It is thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._given: dict[str, PythonObject] = {}
        self._imported: dict[tuple[str, str], PythonObject] = {}
        self._noticed: set[str] = set()
        self._lock = threading.RLock()  # A user's class may use r2med itself.

    @classmethod
    def of(cls, runtime: Runtime) -> UserObjects:
        """Return the objects of a runtime."""
        return runtime.opened("user objects", lambda: cls(runtime.store))

    def get(self, path: str) -> PythonObject:
        """Return the object of MODULE:NAME. It is created once, and a class is called without arguments.

        Modules in the current folder can be imported. Raises UserError if there is no such object, or if its
        source has changed since it was imported.
        """
        with self._lock, _current_folder():
            found = self._given.get(path) or self._import(path)
            self._notice(found)
            return found

    def name(self, model: object) -> str:
        """Return the name of a user's object in systems of this runtime.

        The name is py:MODULE:CLASS or py:MODULE:FUNCTION, with a number if that is taken. If an object has a string
        attribute `name`, the name is py:MODULE:NAME.

        The object may have been trained further since it was last named. So its earlier results are used only if its
        `revision` is the same. Raises UserError if it neither encodes nor, as a reranker, has `predict`.
        """
        named = model if inspect.isroutine(model) else type(model)
        module, name = str(named.__module__), re.sub(r"\W", "", named.__name__)  # a lambda has a name in brackets
        model = _as_model(model)
        chosen = getattr(model, "name", None)
        if isinstance(chosen, str) and chosen:
            if not _OWN_NAME.fullmatch(chosen):
                raise UserError(
                    f"a model's attribute name is {chosen!r}; it may contain only letters, digits, '.', '_' and '-'"
                )
            name = chosen
        if not callable(getattr(model, "predict", None)):
            encoding_methods(model, f"an object of {name}, used as a system")
        with self._lock:
            alike = [path for path in self._given if re.fullmatch(rf"{re.escape(f'{module}:{name}')}(-\d+)?", path)]
            path = next((path for path in alike if _is_same(self._given[path].model, model)), "")
            path = path or (f"{module}:{name}-{len(alike) + 1}" if alike else f"{module}:{name}")
            source = code_digest(sys.modules.get(module))
            self._given[path] = PythonObject(path, model, source, uuid.uuid4().hex, self._store, is_given=True)
        return f"py:{path}"

    def _import(self, path: str) -> PythonObject:
        module = _imported(path.partition(":")[0], path)
        source = code_digest(module)
        if (path, source) not in self._imported:
            self._imported[path, source] = PythonObject(
                path, _made(module, path), source, uuid.uuid4().hex, self._store
            )
        return self._imported[path, source]

    def _notice(self, found: PythonObject) -> None:
        """Log a warning, once, for an object that may have weights and does not state them."""
        if found.path in self._noticed or found.states_weights:
            return
        self._noticed.add(found.path)
        if found.is_known and getattr(found.model, "__dict__", {}):  # without attributes, it has loaded nothing
            log.warning(
                "py:%s is known by its code; if it reads weights or other files, give it an attribute `folders`, the "
                "folders that contain them, or `revision`, a string that changes with them",
                found.path,
            )
        elif not found.is_known:
            log.warning(
                "py:%s does not state its weights, so later runs start over; give it an attribute `revision`, a "
                "string that changes with the weights, or `folders`, the folders that contain them",
                found.path,
            )


def encoding_methods(model: Any, what: str) -> Mapping[str, str]:
    """Return the names of the methods that encode queries and documents. Raises UserError if the object lacks one."""
    for methods in METHODS:
        if all(callable(getattr(model, name, None)) for name in methods.values()):
            return methods
    first = METHODS[0]
    lacking = next(name for name in first.values() if not callable(getattr(model, name, None)))
    raise UserError(f"{what}: it has no method {lacking}; it needs {' and '.join(first.values())}, or encode")


def guarded(method: Callable[[list[Any]], Any], inputs: list[Any], where: str) -> Any:
    """Return the result of a user's method. Raises UserError that says where it failed."""
    with in_one_line(where):
        return method(inputs)


@contextmanager
def in_one_line(where: str) -> Iterator[None]:
    """Turn any error of a user's code into a UserError that says where it failed."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # user code may call sys.exit
        raise _failed(where, error) from error


def _imported(name: str, path: str) -> Any:
    """Return a user's module. Raises UserError if its source, or one that it imports, has changed since the import."""
    module = _import_module(name, path)
    source = code_digest(module)
    if getattr(module, _SOURCE, source) != source:
        raise UserError(f"model {path}: its source has changed since Python imported it: start Python again")
    if source:  # A module without a file, such as one in C, may refuse attributes.
        setattr(module, _SOURCE, source)
    return module


def _import_module(name: str, path: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if missing != name and not name.startswith(f"{missing}."):
            raise UserError(f"model {path}: its module needs {missing!r}, which is not installed") from None
        modules = [file.stem for file in Path.cwd().glob("*.py")]
        raise UserError(
            f"model {path}: no module {name!r}{nearest(name, modules)} in {Path.cwd()} or in the installed packages"
        ) from None
    except (Exception, SystemExit) as error:  # a script without a main guard may end with sys.exit
        raise _failed(f"model {path}: importing {name}", error) from error


def _made(module: Any, path: str) -> Any:
    thing = module
    for part in path.partition(":")[2].split("."):
        if not hasattr(thing, part):
            public = [name for name in dir(thing) if not name.startswith("_")]
            raise UserError(f"model {path}: {module.__name__} has no {part!r}{nearest(part, public)}")
        thing = getattr(thing, part)
    if not inspect.isclass(thing):
        return _as_model(thing)
    with in_one_line(f"model {path}: creating it without arguments"):
        return thing()


def _as_model(thing: object) -> object:
    return UserFunction(thing) if inspect.isroutine(thing) else thing


def _is_same(model: object, other: object) -> bool:
    if isinstance(model, UserFunction) and isinstance(other, UserFunction):
        return model.function is other.function
    return model is other


def _failed(where: str, error: BaseException) -> ForeignCodeError:
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    file, line, reason = (frames[-1].filename, frames[-1].lineno, str(error)) if frames else ("", 0, str(error))
    if isinstance(error, SyntaxError) and error.filename and error.lineno:  # the frames are those of Python's import
        file, line, reason = error.filename, error.lineno, error.msg
    at = f" at {Path(file).name}:{line}" if file and not file.startswith("<frozen") else ""
    return ForeignCodeError(f"{where} failed{at}: {type(error).__name__}: {reason}")


@contextmanager
def _current_folder() -> Iterator[None]:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)

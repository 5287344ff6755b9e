"""Load the files of a model: check that its own code may run, keep libraries quiet, and report unusable files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import devices
from r2med.models.encoders.weights import first_line, json_object


def own_code(folder: Path, kind: str = "AutoModel") -> list[str]:
    """Return the Python classes that a model's files use instead of those of the library."""
    classes: list[str] = []
    for path in (folder / "config.json", folder / "0_Transformer" / "config.json"):
        if path.is_file():
            classes += [str(name) for key, name in (json_object(path).get("auto_map") or {}).items() if key == kind]
    if (folder / "modules.json").is_file():
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        types = [str(module.get("type", "")) for module in modules]
        # sentence-transformers reads the checkpoints of PyLate with its own modules.
        classes += [name for name in types if not name.startswith(("sentence_transformers.", "pylate."))]
    return classes


def not_trusted(name: str) -> UserError:
    """Return the error for a model whose code the user has not allowed."""
    return UserError(
        f"model {name} runs code from its repository; read the code, then allow it with trust_remote_code "
        "(--trust-remote-code)",
    )


def check_trust(folder: Path, name: str, options: Setup, kind: str = "AutoModel") -> None:
    """Raise UserError before code runs that the user has not allowed or that no revision pins."""
    code = own_code(folder, kind)
    if code and not options.trust_remote_code:
        raise not_trusted(name)
    if elsewhere := [name for name in code if "--" in name]:
        raise UserError(
            f"model {name} takes its code from another repository, {elsewhere[0].split('--')[0]}, which no "
            "revision pins; put that code into the model's folder, name it in config.json, and use model_paths "
            f"(--model-path {name}=DIR)",
        )


@contextmanager
def loading(name: str, folder: Path) -> Iterator[None]:
    """Load without output, and raise UserError for any error of the libraries about unusable files."""
    try:
        with quiet():
            yield
    except (UserError, MemoryError):
        raise
    except ImportError as error:
        raise UserError(f"model {name}: its code needs a package that is not installed: {error}") from None
    except Exception as error:
        if devices.is_out_of_memory(error):  # The caller handles it, because it can free memory.
            raise
        if "trust_remote_code" in str(error):
            raise not_trusted(name) from None
        raise UserError(f"model {name}: cannot load {folder}: {type(error).__name__}: {first_line(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars and load reports of transformers. Important problems are checked here."""
    from transformers.utils import logging

    library: Any = logging
    level = library.get_verbosity()
    bar = library.is_progress_bar_enabled() if hasattr(library, "is_progress_bar_enabled") else True
    library.set_verbosity_error()
    library.disable_progress_bar()
    try:
        yield
    finally:
        library.set_verbosity(level)
        if bar:
            library.enable_progress_bar()

"""Analyse a benchmark and its results: overlap, reliability, pairs of systems, answers and retrieval."""

from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily

if TYPE_CHECKING:
    from r2med.analysis.analysis import run_analyses as run_analyses

__getattr__, __dir__ = lazily(__name__)

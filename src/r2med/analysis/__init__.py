"""Analyse a benchmark and its results: overlap, reliability, pairs of systems, answers and retrieval."""

from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily

if TYPE_CHECKING:
    from r2med.analysis.analysis import analyse

__all__ = ["analyse"]

__getattr__ = lazily(__name__)

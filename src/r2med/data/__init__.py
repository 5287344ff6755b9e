"""Datasets: their parts, their sources, and the checks of their contents."""

from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily

if TYPE_CHECKING:
    from r2med.data.corpus import Corpus
    from r2med.data.dataset import Dataset, Qrels, Query
    from r2med.data.dataset_cards import DatasetCard
    from r2med.data.loading import load
    from r2med.data.locating import names

__all__ = ["Corpus", "Dataset", "DatasetCard", "Qrels", "Query", "load", "names"]

__getattr__ = lazily(__name__)

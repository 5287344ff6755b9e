"""Datasets: their parts, their sources, and the checks of their contents."""

from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily

if TYPE_CHECKING:
    from r2med.data.corpus import Corpus as Corpus
    from r2med.data.dataset import Dataset as Dataset
    from r2med.data.dataset import Qrels as Qrels
    from r2med.data.dataset import Query as Query
    from r2med.data.dataset_cards import DatasetCard as DatasetCard
    from r2med.data.dataset_word import names as names
    from r2med.data.loading import load as load

__getattr__, __dir__ = lazily(__name__)

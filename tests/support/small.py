"""A dataset around a corpus in memory, for tests of what searches it."""

from collections.abc import Sequence

from r2med.data import Corpus, Dataset, Qrels, Query


def dataset_of(corpus: Corpus, queries: Sequence[Query] = ()) -> Dataset:
    return Dataset("small", tuple(queries), corpus, Qrels({}))

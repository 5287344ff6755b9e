"""Datasets: what they are made of, where they come from, and whether they are sound."""

from r2med.data.cards import Card, cards, groups
from r2med.data.corpus import Corpus
from r2med.data.loading import load, names
from r2med.data.model import Dataset, Qrels, Query

__all__ = ["Card", "Corpus", "Dataset", "Qrels", "Query", "cards", "groups", "load", "names"]

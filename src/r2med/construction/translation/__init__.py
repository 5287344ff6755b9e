"""Sentence-aligned translation: languages, splitting, and the checks that compare a sentence with its translation."""

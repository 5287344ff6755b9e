"""The words Lucene's EnglishAnalyzer drops unless told otherwise."""

_WORDS = """
a an and are as at be but by for if in into is it no not of on or such
that the their then there these they this to was will with
"""
STOP_WORDS = frozenset(_WORDS.split())

"""What a word-matching retriever searches when a query was expanded. Dense ones combine otherwise."""

from __future__ import annotations

from r2med.retrieve.contracts import SearchQuery

# As the benchmark does it: a generated document speaks for itself, LameR's is added to the query, and
# Query2Doc repeats the query so that the longer generated text does not drown it.
QUERY_COPIES = {"hyde": 0, "alone": 0, "lamer": 1, "query2doc": 2}


def lexical_text(search: SearchQuery) -> str:
    """Return the text to search: without generated text always the query itself."""
    if not search.generated:
        return search.query.text
    copies = QUERY_COPIES.get(search.method, 0) if search.copies is None else search.copies
    return " ".join([search.query.text] * copies + list(search.generated))

"""What is written to a folder reads back, whatever the ids and texts are."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from r2med.data import load
from r2med.data.qrels_file import read_qrels
from r2med.foundation.store import Store
from support.datasets import beir_folder, hub_files, r2med_folder, write_parquet

texts = st.text()
ids = st.text(min_size=1)
in_columns = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r"), min_size=1)
grades = st.integers(-3, 2**31)


@st.composite
def contents(draw: st.DrawFn, identifiers: st.SearchStrategy[str]):
    documents = draw(st.dictionaries(identifiers, texts, max_size=6))
    queries = draw(st.dictionaries(identifiers, texts, max_size=4))
    pairs = [(query, document) for query in queries for document in documents]
    judged = draw(st.dictionaries(st.sampled_from(pairs), grades)) if pairs else {}
    return documents, queries, judged


def rows(documents: dict[str, str], queries: dict[str, str], judged: dict[tuple[str, str], int]):
    return (
        [{"id": identifier, "text": text} for identifier, text in documents.items()],
        [{"id": identifier, "text": text} for identifier, text in queries.items()],
        [{"q_id": query, "p_id": document, "score": grade} for (query, document), grade in judged.items()],
    )


def flat(qrels) -> dict[tuple[str, str], int]:
    return {(query, document): grade for query, found in qrels.items() for document, grade in found.items()}


@given(contents(ids))
def test_an_r2med_folder_reads_back(content) -> None:
    documents, queries, judged = content
    with TemporaryDirectory() as place:
        dataset = load(r2med_folder(Path(place) / "set", *rows(*content)), Store(Path(place) / "store"))
        assert dict(dataset.corpus) == documents
        assert {query.id: query.text for query in dataset.queries} == queries
        assert flat(dataset.qrels) == judged


@given(contents(in_columns), texts)
def test_a_beir_folder_reads_back(content, title: str) -> None:
    documents, queries, judged = content
    titled = [{**row, "title": title} for row in rows(*content)[0]]
    with TemporaryDirectory() as place:
        folder = beir_folder(Path(place) / "set", titled, *rows(*content)[1:])
        dataset = load(folder, Store(Path(place) / "store"))
        assert dict(dataset.corpus) == {key: f"{title} {text}".strip() for key, text in documents.items()}
        assert {query.id: query.text for query in dataset.queries} == {
            query: text for query, text in queries.items() if any(query == judged_query for judged_query, _ in judged)
        }
        assert flat(dataset.qrels) == judged


@given(st.dictionaries(ids, texts, min_size=1, max_size=6))
def test_a_parquet_corpus_reads_back(documents: dict[str, str]) -> None:
    with TemporaryDirectory() as place:
        clone = hub_files(Path(place) / "clone")
        write_parquet(clone / "corpus" / "corpus-00000-of-00001.parquet", rows(documents, {}, {})[0])
        assert dict(load(clone, Store(Path(place) / "store")).corpus) == documents


@given(st.dictionaries(st.tuples(in_columns, in_columns), grades), st.booleans())
def test_tsv_qrels_read_back_with_and_without_a_header(judged: dict[tuple[str, str], int], header: bool) -> None:
    lines = [f"{query}\t{document}\t{grade}\n" for (query, document), grade in judged.items()]
    with TemporaryDirectory() as place:
        path = Path(place) / "qrels.tsv"
        path.write_bytes("".join(["query-id\tcorpus-id\tscore\n"] * header + lines).encode())
        assert flat(read_qrels(path)) == judged

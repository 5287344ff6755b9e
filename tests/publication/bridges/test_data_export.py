"""Data export: every layout is read back by our loaders, and by the tool it is for where that can be installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import r2med
from data.test_hub_tables import ODD
from r2med.data import Dataset, load
from r2med.data.check import check
from r2med.data.dataset import Query
from r2med.data.nuggets_file import nuggets_of
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.publication.bridges.data_export import FORMS, write_layout
from support.fork_server import Command
from support.mteb_local import NO_MTEB


@pytest.fixture
def demo() -> Dataset:
    return load("demo/MedQA-Diag")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_exported_loads_as_the_same_queries_documents_and_judgements(
    form: str, demo: Dataset, tmp_path: Path
) -> None:
    write_layout(demo, form, tmp_path / "out")
    back = load(tmp_path / "out")
    assert list(back.corpus) == list(demo.corpus)
    assert back.qrels.fingerprint == demo.qrels.fingerprint
    assert [(query.id, query.text) for query in back.queries] == [(query.id, query.text) for query in demo.queries]
    if form in ("trec", "hub", "croissant"):  # these keep what is for analysis alone
        assert back.fingerprint == demo.fingerprint
    assert not check(tmp_path / "out").problems


@pytest.mark.parametrize("form", FORMS)
def test_aspects_and_nuggets_of_answers_are_exported_too(form: str, tmp_path: Path) -> None:
    demo = load("demo/Medical-Sciences")
    write_layout(demo, form, tmp_path / "out")
    back = load(tmp_path / "out")
    assert back.aspects == demo.aspects
    assert nuggets_of(back) == nuggets_of(demo) is not None


def test_options_of_questions_are_exported_too(tmp_path: Path) -> None:
    asked = Query("1", "a swollen toe", answer="gout", options=("gout", "a sprain"))
    dataset = Dataset.of([asked], {"a": "about gout"}, {"1": {"a": 1}})
    write_layout(dataset, "hub", tmp_path / "out")
    assert load(tmp_path / "out").queries[0] == asked


@pytest.fixture
def exported(demo: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return what exports the demo and gives its folder; the hub's library keeps what it reads in the test's folder."""
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def export(form: str) -> str:
        write_layout(demo, form, tmp_path / form)
        return str(tmp_path / form)

    return export


def test_mlcroissant_reads_the_rows_of_every_file(demo: Dataset, exported: Callable[[str], str]) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    dataset = mlcroissant.Dataset(jsonld=f"{exported('croissant')}/croissant.json")
    rows = {name: list(dataset.records(name)) for name in ("query", "corpus", "qrels")}
    assert texts(rows["query"], "query/id", "query/text") == {query.id: query.text for query in demo.queries}
    assert texts(rows["corpus"], "corpus/id", "corpus/text") == dict(demo.corpus)
    judged = {(row["qrels/q_id"].decode(), row["qrels/p_id"].decode()): row["qrels/score"] for row in rows["qrels"]}
    assert judged == {(query, document): grade for query in demo.qrels for document, grade in demo.qrels[query].items()}


def texts(rows: Sequence[Mapping[str, bytes]], key: str, text: str) -> dict[str, str]:
    return {row[key].decode(): row[text].decode() for row in rows}


def test_the_libraries_of_the_hub_read_head_and_configs(demo: Dataset, exported: Callable[[str], str]) -> None:
    datasets = pytest.importorskip("datasets")
    from huggingface_hub import DatasetCard

    folder = exported("hub")
    rows = {name: datasets.load_dataset(folder, name, split=name) for name in ("query", "corpus", "qrels")}
    assert dict(zip(rows["corpus"]["id"], rows["corpus"]["text"], strict=True)) == dict(demo.corpus)
    assert rows["query"]["answer"] == [query.answer for query in demo.queries]
    assert len(rows["qrels"]) == demo.qrels.positives
    configs = DatasetCard.load(f"{folder}/README.md").data.configs
    assert {config["config_name"] for config in configs} == set(rows)


def test_beir_reads_its_layout(demo: Dataset, exported: Callable[[str], str]) -> None:
    loader = pytest.importorskip("beir.datasets.data_loader", reason="beir is not installed: not on Linux on ARM")
    corpus, queries, qrels = loader.GenericDataLoader(exported("beir")).load("test")
    assert {key: row["text"] for key, row in corpus.items()} == dict(demo.corpus)
    assert queries == {query.id: query.text for query in demo.queries}
    assert qrels == {query: dict(grades) for query, grades in demo.qrels.items()}


def test_mteb_reads_its_layout(demo: Dataset, exported: Callable[[str], str]) -> None:
    pytest.importorskip("mteb", reason=NO_MTEB)
    from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader

    split = RetrievalDatasetLoader(exported("mteb"), "main", split="test").load()
    assert dict(zip(split["corpus"]["id"], split["corpus"]["text"], strict=True)) == dict(demo.corpus)
    assert split["queries"]["text"] == [query.text for query in demo.queries]
    assert split["relevant_docs"] == {query: dict(grades) for query, grades in demo.qrels.items()}


def test_the_library_of_the_hub_reads_mtebs_layout(demo: Dataset, exported: Callable[[str], str]) -> None:
    datasets, folder = pytest.importorskip("datasets"), exported("mteb")
    for config, rows in {"default": demo.qrels.positives, "corpus": len(demo.corpus), "queries": 8}.items():
        assert len(datasets.load_dataset(folder, config, split="test")) == rows


def test_ir_datasets_reads_the_files_of_trec(demo: Dataset, exported: Callable[[str], str]) -> None:
    formats = pytest.importorskip("ir_datasets.formats", reason="ir_datasets is not installed: extra irds")
    from ir_datasets.util import LocalDownload

    folder = exported("trec")
    topics = formats.TsvQueries(LocalDownload(f"{folder}/topics.tsv"))
    assert {each.query_id: each.text for each in topics.queries_iter()} == {
        query.id: " ".join(query.text.split()) for query in demo.queries
    }
    qrels = formats.TrecQrels(LocalDownload(f"{folder}/qrels.txt"), {1: "relevant"})
    assert qrels.qrels_dict() == {query: dict(grades) for query, grades in demo.qrels.items()}
    documents = formats.JsonlDocs(LocalDownload(f"{folder}/corpus.jsonl"), mapping={"doc_id": "id", "text": "text"})
    assert {each.doc_id: each.text for each in documents.docs_iter()} == dict(demo.corpus)


def test_an_id_that_would_break_a_column_is_told(tmp_path: Path) -> None:
    odd = Dataset.of({"q": "text"}, {"a b": "text"}, {"q": {"a b": 1}})
    write_layout(odd, "beir", tmp_path / "beir")
    assert dict(load(tmp_path / "beir").qrels["q"]) == {"a b": 1}
    write_layout(odd, "trec", tmp_path / "trec")
    assert (tmp_path / "trec" / "qrels.txt").read_text() == "q 0 a%20b 1\n"  # as in our run files
    broken = Dataset.of({"q": "text"}, {"a\tb": "text"}, {"q": {"a\tb": 1}})
    with pytest.raises(UserError, match=r"'a\\tb' would break a column"):
        write_layout(broken, "beir", tmp_path / "broken")
    assert not (tmp_path / "broken").exists()


def test_a_folder_that_is_there_is_not_overwritten(demo: Dataset, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        write_layout(demo, "hub", tmp_path / "out")


def test_the_command_knows_its_formats(tmp_path: Path, r2med: Command) -> None:
    ended = r2med("data", "export", "demo/Biology", "--format", "hub", "-o", tmp_path / "out")
    assert "is written" in ended.stdout and json.loads((tmp_path / "out/query.jsonl").read_text().split("\n")[0])
    assert "no format 'bier'" in r2med("data", "export", "demo/Biology", "--format", "bier", "-o", "x", code=2).stderr


def test_ids_with_slashes_quotes_and_blanks_survive_every_format(tmp_path: Path, store: Store) -> None:
    dataset = r2med.Dataset.of({"q 1/'": "Iron?", "q2": "Tax?"}, {ODD: "Iron.", "x/y": "Tax."}, {"q 1/'": {ODD: 1}})
    for form in ("beir", "mteb", "trec", "hub", "croissant"):
        write_layout(dataset, form, tmp_path / form)
        again = load(tmp_path / form, store)
        assert (again.qrels, dict(again.corpus)) == (dataset.qrels, dict(dataset.corpus))
    results = r2med.run("bm25", data=dataset, out=tmp_path / "results")
    record = results.records[0]
    assert record.per_query["q 1/'"]["nDCG@10"] == 1.0
    again = r2med.Record.read(next((tmp_path / "results").rglob("*.json")))
    assert again.per_query == record.per_query
    run_file = next((tmp_path / "results").rglob("*.trec.gz"))
    for qrels in ("qrels.jsonl", "qrels.txt"):  # the ids as they are, and as in run files
        assert r2med.score(tmp_path / "trec" / qrels, run_file).mean["nDCG@10"] == 1.0

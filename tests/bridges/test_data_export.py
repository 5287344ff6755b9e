"""Data export: every layout is read back by our loaders, and by the tool it is for where that can be installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2med.bridges.data_export import FORMS, export_data
from r2med.data import Dataset, load
from r2med.data.check import check
from r2med.errors import UserError
from support.fork_server import Command

NO_DATASETS = "the package datasets is not installed: it comes with mteb"


@pytest.fixture
def demo() -> Dataset:
    return load("demo/MedQA-Diag")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_exported_loads_as_the_same_queries_documents_and_judgements(
    form: str, demo: Dataset, tmp_path: Path
) -> None:
    export_data(demo, form, tmp_path / "out")
    back = load(tmp_path / "out")
    assert list(back.corpus) == list(demo.corpus)
    assert back.qrels.fingerprint == demo.qrels.fingerprint
    assert [(query.id, query.text) for query in back.queries] == [(query.id, query.text) for query in demo.queries]
    if form in ("trec", "hub", "croissant"):  # these keep what is for analysis alone
        assert back.fingerprint == demo.fingerprint
    assert not check(tmp_path / "out").problems


def test_croissant_reads_the_rows(demo: Dataset, tmp_path: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    export_data(demo, "croissant", tmp_path / "out")
    dataset = mlcroissant.Dataset(jsonld=tmp_path / "out/croissant.json")
    rows = {row["query/id"].decode(): row["query/text"].decode() for row in dataset.records("query")}
    assert rows == {query.id: query.text for query in demo.queries}


def test_the_hubs_library_reads_the_configs(demo: Dataset, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason=NO_DATASETS)
    export_data(demo, "mteb", tmp_path / "out")
    for config, rows in {"default": demo.qrels.positives, "corpus": len(demo.corpus), "queries": 8}.items():
        assert len(datasets.load_dataset(str(tmp_path / "out"), config, split="test")) == rows


def test_an_id_that_would_break_a_column_is_told(tmp_path: Path) -> None:
    odd = Dataset.of({"q": "text"}, {"a b": "text"}, {"q": {"a b": 1}})
    export_data(odd, "beir", tmp_path / "beir")
    assert dict(load(tmp_path / "beir").qrels["q"]) == {"a b": 1}
    with pytest.raises(UserError, match="'a b' would break a column"):
        export_data(odd, "trec", tmp_path / "trec")
    assert not (tmp_path / "trec").exists()


def test_a_folder_that_is_there_is_not_overwritten(demo: Dataset, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is there already"):
        export_data(demo, "hub", tmp_path / "out")


def test_the_command_knows_its_formats(tmp_path: Path, r2med: Command) -> None:
    ended = r2med("data", "export", "demo/Biology", "--format", "hub", "-o", tmp_path / "out")
    assert "is written" in ended.stdout and json.loads((tmp_path / "out/query.jsonl").read_text().split("\n")[0])
    assert "no format 'bier'" in r2med("data", "export", "demo/Biology", "--format", "bier", "-o", "x", code=2).stderr

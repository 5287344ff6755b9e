"""ir_datasets, both ways: ours are registered there, theirs load as ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ir_datasets = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed: extra irds")

from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericDoc, GenericQrel, GenericQuery  # noqa: E402

from r2med import evaluate, load  # noqa: E402
from r2med.foundation.core.errors import UserError  # noqa: E402


class Toy(BaseDocs, BaseQueries, BaseQrels):  # type: ignore[misc]
    """A dataset in memory that counts how often its documents were read."""

    read = 0

    def docs_iter(self) -> Iterator[Any]:
        Toy.read += 1
        return iter([GenericDoc("d 1", "heart failure"), GenericDoc("d2", "kidney stones")])

    def queries_iter(self) -> Iterator[Any]:
        return iter([GenericQuery("q1", "failing heart"), GenericQuery("other split", "x")])

    def qrels_iter(self) -> Iterator[Any]:
        return iter([GenericQrel("q1", "d 1", 2)])


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ir_datasets.registry._registered, "toy/test", ir_datasets.Dataset(Toy()))
    monkeypatch.setitem(ir_datasets.registry._registered, "toy", ir_datasets.Dataset(type("Docs", (BaseDocs,), {})()))
    monkeypatch.setattr(Toy, "read", 0)


def test_ours_are_registered_and_read_when_they_are_used() -> None:
    import r2med.publication.bridges.ir_datasets  # registers

    assert r2med.publication.bridges.ir_datasets.identifiers()["Biology"] in ir_datasets.registry
    ours, theirs = load("demo/MedQA-Diag"), ir_datasets.load("r2med/demo/medqa-diag")
    assert [tuple(doc) for doc in theirs.docs_iter()] == list(ours.corpus) and theirs.docs_count() == len(ours.corpus)
    assert {query.query_id: query.text for query in theirs.queries_iter()} == {q.id: q.text for q in ours.queries}
    assert theirs.qrels_dict() == {query: dict(grades) for query, grades in ours.qrels.items()}
    wanted = ours.corpus.ids([3, 1])
    assert [doc.doc_id for doc in theirs.docs_store().get_many_iter([*wanted, "nowhere"])] == wanted


def test_theirs_load_as_ours_and_are_read_once(toy: None, tmp_path: Path) -> None:
    dataset = load("irds:toy/test")
    assert dataset.name == "toy/test" and list(dataset.corpus) == [("d 1", "heart failure"), ("d2", "kidney stones")]
    assert [query.id for query in dataset.queries] == ["q1"] and dict(dataset.qrels["q1"]) == {"d 1": 2}
    assert evaluate("bm25", "irds:toy/test", tmp_path).mean["nDCG@10"] == 1
    assert Toy.read == 1


@pytest.mark.parametrize(
    ("name", "message"), [("toy/tets", "no dataset 'toy/tets'.*toy/test"), ("toy", "irds:toy has no queries")]
)
def test_what_cannot_be_loaded_is_told(toy: None, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(f"irds:{name}")


def test_a_download_that_fails_is_one_line(toy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from requests import ConnectionError as Unreachable

    def docs_iter(self: Toy) -> Iterator[Any]:
        raise Unreachable("no such host")

    monkeypatch.setattr(Toy, "docs_iter", docs_iter)
    with pytest.raises(UserError, match=r"cannot download toy/test \(ConnectionError\): try again online$"):
        load("irds:toy/test")

"""folds:DIR asks, for each query, the model that was trained without it: as a retriever and as a reranker."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers

import r2med
from r2med import Record, Setup, System
from r2med.data.fold_file import Folds, QueryFold, query_digest
from r2med.foundation.store import Store
from support import tiny_models, tiny_rerankers
from support.chat_server import Server, answer
from support.facts import error_states

DATA = r2med.Dataset.of(
    {"a": "heart attack", "b": "tax law", "c": "which bacteria live in the gut", "d": "facial swelling"},
    {f"d{place}": text for place, text in enumerate(tiny_models.SENTENCES)},
    {"a": {"d2": 1}, "b": {"d4": 1}, "c": {"d5": 1}, "d": {"d0": 1}},
)
FOLD = {"a": 1, "b": 2, "c": 1, "d": 2}


def lines(dataset: r2med.Dataset = DATA, **folds: int) -> list[QueryFold]:
    return [
        QueryFold(query=each.id, text=query_digest(each), fold=(folds or FOLD).get(each.id, 1 + number % 2), group=1)
        for number, each in enumerate(dataset.queries)
    ]


def _shifted(folder: Path, seed: int, kind: type) -> None:
    """Give a model other weights."""
    model = kind.from_pretrained(folder)
    torch.manual_seed(seed)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(0.3 * torch.randn_like(each))
    model.save_pretrained(folder)


def made(folder: Path, write: Callable[[Path], Path], kind: type, seed: int = 0) -> Path:
    for fold in (1, 2):
        write(folder / f"fold-{fold}")
        _shifted(folder / f"fold-{fold}", seed + fold, kind)
    Folds.of(lines()).write(folder / "folds.jsonl")
    return folder


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("dense"), tiny_models.sentence_bert, transformers.AutoModel)


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kind = transformers.AutoModelForSequenceClassification
    return made(tmp_path_factory.mktemp("cross"), tiny_rerankers.bert, kind)


def rankings(spec: str, store: Store, data: r2med.Dataset = DATA) -> dict[str, list[str]]:
    run = System.parse(spec, Setup(store=store)).run(data, 7).run
    return dict(zip(run.queries, run.id_lists(), strict=True))


@pytest.mark.parametrize("kind", ["dense", "cross"])
def test_every_query_is_ranked_by_the_model_of_its_fold(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder, store = request.getfixturevalue(kind), Store(tmp_path)
    form = "{}" if kind == "dense" else f"path:{request.getfixturevalue('dense')}/fold-1 → {{}}@7"
    alone = {fold: rankings(form.format(f"path:{folder}/fold-{fold}"), store) for fold in (1, 2)}
    assert alone[1] != alone[2]
    joined = rankings(form.format(f"folds:{folder}"), store)
    assert joined == {query: alone[fold][query] for query, fold in FOLD.items()}


def test_a_record_of_folds_is_compared_with_the_model_before_training_and_made_once(
    dense: Path, tmp_path: Path
) -> None:
    store, out = Store(tmp_path / "store"), tmp_path / "results"
    systems = [f"path:{dense}/fold-1", f"folds:{dense}"]
    results = r2med.run(systems, DATA, out=out, store=store)
    assert len(results.records) == 2
    [file] = out.rglob("folds*.json")
    record = Record.read(file)
    assert record.system == systems[1] and System.parse(record.system).name == record.system
    assert [len(part) > 0 for part in record.settings["retrieve"]["models"]] == [True, True]
    r2med.run(systems[1], DATA, out=out, store=store)
    again = Record.read(file)
    assert again.model_copy(update={"named": record.named}) == record
    difference = r2med.compare(systems, results=out).pairs
    assert difference


def test_settings_of_dense_models_are_those_of_every_fold(dense: Path, tmp_path: Path) -> None:
    store = Store(tmp_path)
    alone = rankings(f"path:{dense}/fold-2(dims=4)", store)
    assert rankings(f"folds:{dense}(dims=4)", store)["b"] == alone["b"]


@pytest.fixture
def rewriting(chat_server: Server, store: Store, monkeypatch: pytest.MonkeyPatch) -> Setup:
    """An LLM that rewrites every query in the same words."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chat_server.otherwise = answer(tiny_models.SENTENCES[3])
    return Setup(base_url=chat_server.address, store=store)


def test_a_rewritten_query_is_searched_by_the_model_of_the_query_that_it_replaces(
    dense: Path, rewriting: Setup, store: Store
) -> None:
    alone = {fold: rewritten(f"path:{dense}/fold-{fold}", rewriting, store) for fold in (1, 2)}
    assert alone[1] != alone[2]
    expected = {query: alone[fold][query] for query, fold in FOLD.items()}
    assert rewritten(f"folds:{dense}", rewriting, store) == expected
    assert rewritten(f"fuse(folds:{dense}, depth=9)", rewriting, store) == expected


def test_models_of_folds_search_the_original_query_where_a_fusion_names_it(
    dense: Path, rewriting: Setup, store: Store
) -> None:
    fused = f"fuse(folds:{dense}+bm25, queries=original:expanded, weights=1:0)"
    assert rewritten(fused, rewriting, store) == rankings(f"folds:{dense}", store)


def rewritten(retriever: str, setup: Setup, store: Store) -> dict[str, list[str]]:
    run = System.parse(f"rewrite(gpt4) → {retriever}", setup).run(DATA, 7).run
    return dict(zip(run.queries, run.id_lists(), strict=True))


OTHERS = r2med.Dataset.of({"a": "another question"}, dict(DATA.corpus), {"a": {"d1": 1}})
MORE = r2med.Dataset.of({"e": "one more"}, dict(DATA.corpus), {"e": {"d1": 1}})


@pytest.mark.parametrize("form", ["folds:{}", "bm25 → folds:{}@5"])
@pytest.mark.parametrize(
    ("data", "facts"), [(MORE, ("'e'", "no fold")), (OTHERS, ("'a'", "another dataset"))], ids=("new query", "others")
)
def test_a_query_without_a_fold_and_folds_of_another_dataset_are_refused(
    form: str, data: r2med.Dataset, facts: tuple[str, ...], dense: Path, cross: Path, tmp_path: Path
) -> None:
    setup = Setup(store=Store(tmp_path))
    system = System.parse(form.format(cross if "bm25" in form else dense), setup)
    with error_states("folds.jsonl", *facts):
        system.check([data])
    with error_states("folds.jsonl", *facts):
        system.run(data, 5)


@pytest.mark.parametrize("form", ["folds:{}", "bm25 → folds:{}@5"])
def test_a_folder_that_cannot_be_used_is_refused(form: str, dense: Path, tmp_path: Path) -> None:
    spec = form.format(tmp_path / "models")
    with error_states("no such folder"):
        System.parse(spec).check([DATA])
    (tmp_path / "models" / "fold-1").mkdir(parents=True)
    with error_states("folds.jsonl", "cannot be read"):
        System.parse(spec).check([DATA])
    shutil.copy(dense / "folds.jsonl", tmp_path / "models")
    with error_states("fold 2", "missing"):
        System.parse(spec).check([DATA])
    twice = "\n".join(row.model_dump_json() for row in (*lines(), *lines(a=2)[:1]))
    (tmp_path / "models" / "folds.jsonl").write_text(twice)
    with error_states("folds.jsonl:5:", "'a'", "1 and 2"):
        System.parse(spec).check([DATA])


def test_a_question_of_a_user_is_refused(dense: Path, tmp_path: Path) -> None:
    with error_states("no fold", "train one model", "path:DIR"):
        r2med.search(DATA, "why does my toe hurt", system=f"folds:{dense}", setup=Setup(store=Store(tmp_path)))
    assert r2med.search(DATA, "heart attack", system=f"folds:{dense}", setup=Setup(store=Store(tmp_path)))


@pytest.mark.parametrize("form", ["folds:{}", "bm25 → folds:{}@5"])
def test_a_server_of_folds_is_refused_when_it_starts(form: str, dense: Path, cross: Path, tmp_path: Path) -> None:
    system = form.format(cross if "bm25" in form else dense)
    with error_states("a new question has no fold", "train one model", "path:DIR"):
        System.parse(system, Setup(store=Store(tmp_path))).live(DATA)

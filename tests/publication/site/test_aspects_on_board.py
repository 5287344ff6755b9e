"""The board of a dataset with aspects: columns of the leaderboard, and the aspects of each query in the explorer."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from r2med import run
from r2med.data import load
from r2med.data.runs.trec import WrittenRun
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.publication.site import make_board
from r2med.publication.site.explorer import explorer_files
from r2med.publication.site.leaderboard import site_value

from .conftest import Open

WITH, WITHOUT = "demo/Medical-Sciences", "demo/Bioinformatics"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    run("bm25", [WITH, WITHOUT], out=results)
    run("bm25(scorer=lucene)", WITHOUT, out=results)
    return results


@pytest.fixture(scope="module")
def collection(records: Path) -> RecordCollection:
    return collect([records])


@pytest.fixture(scope="module")
def site(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_board([records], tmp_path_factory.mktemp("site") / "board").parent


def test_the_leaderboard_has_the_means_of_the_measures_of_aspects(collection: RecordCollection) -> None:
    site = site_value(collection)
    demo = [each["name"] for each in site["sets"]].index("demo")
    by_name = {system["name"]: system["aspects"] for system in site["systems"]}
    mean = collection.cells["bm25", WITH].record.mean
    assert by_name["bm25"][demo] == [round(mean[name], 6) for name in site["aspect_measures"]]
    assert by_name["bm25(scorer=lucene)"][demo] is None
    assert all(
        values[number] is None for values in by_name.values() for number in range(len(site["sets"])) if number != demo
    )


def test_the_explorer_has_the_aspects_of_a_query_with_their_documents(collection: RecordCollection) -> None:
    names, dataset = [WITH, WITHOUT], load(WITH)
    files = dict(explorer_files(collection, names, {WITH: dataset, WITHOUT: load(WITHOUT)}))
    query = files["explorer/0/q3"]
    ids = [document["id"] for document in query["documents"]]
    shown = [(each["name"], each["weight"], [ids[place] for place in each["documents"]]) for each in query["aspects"]]
    expected = [(name, each.weight, list(each.documents)) for name, each in dataset.aspects["3"].items()]
    assert shown == expected
    assert all(place < query["gold"] for each in query["aspects"] for place in each["documents"])
    assert files["explorer/1/q0"]["aspects"] == []


def test_the_page_of_a_query_names_the_aspects_that_no_system_finds(
    collection: RecordCollection, open_page: Open
) -> None:
    aspects = load(WITH).aspects
    file = collection.cells["bm25", WITH].run_file
    assert file is not None
    ranked = WrittenRun(file, list(aspects))
    for query in aspects:
        first = {document for document, _ in ranked.top(query, 10)}
        lost = [name for name, aspect in aspects[query].items() if first.isdisjoint(aspect.documents)]
        if 0 < len(lost) < len(aspects[query]):
            break
    page = open_page(f"#/explorer?{urlencode({'data': WITH, 'q': query, 'a': 'bm25'})}")
    page.wait_for_selector(".aspects tbody tr")
    rows = page.eval_on_selector_all(".aspects tbody tr", "all => all.map((row) => row.textContent)")
    assert [name for name in aspects[query] for row in rows if name in row and "No system finds" in row] == lost
    assert f"No system finds {len(lost)} of" in page.inner_text(".aspects .note")

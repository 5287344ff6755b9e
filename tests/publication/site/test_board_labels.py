"""A board with an overlay: scores as published, and with its labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from r2med import UserError, load
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.evaluation.comparison.comparing import with_labels
from r2med.evaluation.records.collection import collect
from r2med.publication.site import make_board

from .conftest import DATASETS, SYSTEMS, Open
from .test_pages import figures, names
from .test_site import value

REVIEWER = "Dr Alma Quist"
REASON = "it names the purple sequins"


def judged(datasets: tuple[str, ...]) -> Overlay:
    """Return an overlay: a judge says yes to eight documents of every query, people no for half of the queries."""
    labels = []
    for name in datasets:
        dataset = load(name)
        documents = [document for document, _ in dataset.corpus][:8]
        order = [query.id for query in dataset.queries]
        for number, query in enumerate(order):
            pairs = [OverlayLabel(dataset=name, query=query, document=d, grade=1, judge="gpt4") for d in documents]
            labels += [pair.model_copy(update={"why": REASON}) for pair in pairs]
            if number < len(order) // 2:
                said = {"judge": "", "reviewer": REVIEWER, "grade": 0}
                labels += [pair.model_copy(update=said) for pair in pairs]
    return Overlay("judged", tuple(labels))


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("overlays") / "judged.jsonl"
    judged(DATASETS).write(path)
    return path


@pytest.fixture(scope="module")
def site(records: Path, overlay: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_board([records], tmp_path_factory.mktemp("site") / "board", overlays=[overlay]).parent


def sets(site: Path) -> dict[str, tuple[int, Any]]:
    return {each["name"]: (number, each) for number, each in enumerate(value(site, "site")["sets"])}


def test_a_group_has_a_set_for_each_kind_of_scores(site: Path, records: Path, overlay: Path) -> None:
    known = sets(site)
    assert list(known) == ["R2MED", "demo", "demo+judged"]
    assert known["demo+judged"][1]["group"] == "demo"
    assert known["demo+judged"][1]["labels"] == "with overlay judged (288 labels, 96 of people)"
    numbers = {each: known[each][0] for each in known}
    row = next(each for each in value(site, "site")["systems"] if each["name"] == "bm25")
    collection = collect(SYSTEMS, records)
    labelled = with_labels(collection, [Overlay.read(overlay)])
    again = [record.mean["nDCG@10"] for record in labelled.records("bm25").values()]
    assert row["averages"][numbers["demo+judged"]]["value"] == pytest.approx(sum(again) / 3, abs=1e-6)
    assert row["averages"][numbers["demo"]]["value"] != row["averages"][numbers["demo+judged"]]["value"]


def test_what_was_run_counts_once(site: Path, records: Path, tmp_path: Path) -> None:
    plain = make_board([records], tmp_path / "plain", texts=False).parent
    for name in ("name", "cost", "failures", "figures"):
        before, after = ([row[name] for row in value(each, "site")["systems"]] for each in (plain, site))
        assert before == ([each[: len(before[0])] for each in after] if name == "figures" else after)
    assert value(site, "site")["foot"] == value(plain, "site")["foot"]
    assert value(site, "system/0")["command"] == value(plain, "system/0")["command"]


def test_a_group_that_is_labelled_in_part_has_no_average(records: Path, tmp_path: Path) -> None:
    judged(DATASETS[:2]).write(tmp_path / "some.jsonl")
    site = make_board([records], tmp_path / "board", texts=False, overlays=[tmp_path / "some.jsonl"]).parent
    number, some = sets(site)["demo+some"]
    assert some["missing"] == [DATASETS[2]]
    for row in value(site, "site")["systems"]:
        assert row["averages"][number] is None and row["marks"][number] is None


def test_no_board_names_a_reviewer_and_one_without_texts_has_no_reasons(
    site: Path, records: Path, overlay: Path, tmp_path: Path
) -> None:
    def content(folder: Path) -> str:
        return "".join(path.read_text() for path in (folder / "data").rglob("*.js"))

    assert REVIEWER not in content(site) and "a person" in content(site) and REASON in content(site)
    bare = make_board([records], tmp_path / "bare", texts=False, overlays=[overlay]).parent
    assert REASON not in content(bare) and "demo+judged" in content(bare)


def test_an_overlay_of_a_lost_dataset_is_one_line(records: Path, tmp_path: Path) -> None:
    lost = OverlayLabel(dataset="lost", query="q", document="d", grade=1, judge="j")
    Overlay("x", (lost,)).write(tmp_path / "x.jsonl")
    with pytest.raises(UserError, match="no record is on them"):
        make_board([records], tmp_path / "board", overlays=[tmp_path / "x.jsonl"])


def test_the_page_switches_between_the_two_and_every_row_says_which_it_is(open_page: Open, site: Path) -> None:
    page = open_page("#/leaderboard?set=demo")
    systems = value(site, "site")["systems"]
    kind, name = "with overlay judged", "demo+judged"
    page.click(f"[aria-label=Labels] button:has-text('{kind}')")
    page.wait_for_selector(f"tr[data-position] .chip:has-text('{kind}')")
    number = sets(site)[name][0]
    shown = dict(zip(names(page), figures(page, "Average"), strict=True))
    expected = {row["name"]: row["averages"][number] for row in systems if row["averages"][number]}
    assert {system: shown[system].split()[0] for system in expected} == {
        system: f"{100 * score['value']:.2f}" for system, score in expected.items()
    }
    assert page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('set')") == name
    page.click(".system-name a")
    page.wait_for_selector("h1 .name")
    assert kind in page.inner_text(".eyebrow")
    page.goto(page.url.split("#")[0] + "#/explorer?data=demo%2FBiology%2Bjudged&a=bm25")
    page.wait_for_selector(".said")
    assert f"gpt4: relevant. {REASON}" in page.eval_on_selector_all(".said", "all => all.map((e) => e.textContent)")

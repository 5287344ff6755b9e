"""A plan: stage by stage, what is stored, to download, to ask and missing, without the data."""

from dataclasses import replace
from pathlib import Path

import pytest

import r2med
from r2med.data.dataset_cards import groups
from r2med.evaluation.running import planning
from r2med.evaluation.running.batch import plan_run
from r2med.evaluation.running.plan_page import Plan, plan_page
from r2med.evaluation.running.planning import planned_run
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.pages.page import Bullets
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store import Store
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.llm.llm_needs import llm_needs

R2MED = groups()["R2MED"]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Runtime(store=Store(tmp_path / "store"))


def planned(systems: list[str], data: list[str], setup: Runtime) -> dict[str, Needs]:
    return {need.stage: need for need in planned_run(plan_run(systems, data, setup=setup)).stages}


def lines(plan: Plan) -> list[str]:
    """Return the lines about the stages."""
    [listed] = plan_page(plan).sections[0].parts
    assert isinstance(listed, Bullets)
    return list(listed.texts)


def test_every_stage_says_what_it_would_need(setup: Runtime) -> None:
    stages = planned(["hyde(o3-mini) → bm25+bge → bge-reranker@10", "minilm"], ["Biology"], setup)
    assert stages["hyde(o3-mini)"].missing == "OPENAI_API_KEY is not set; export it before the run"
    assert stages["bm25"].indexed == 57_359 and (stages["bm25"].seconds or 0) > 1
    assert stages["bge"].fetch == 335e6 * 4 and (stages["bge"].seconds or 0) > 60
    reranker = stages["bge-reranker@10"]
    assert (reranker.fetch or 0) > 1e9 and (reranker.seconds or 0) > 60
    assert reranker.pairs == 1_030
    assert stages["minilm"].fetch == 0  # its weights come with a package


def test_a_model_of_two_encoders_is_as_large_as_both(setup: Runtime) -> None:
    medcpt = planned(["medcpt"], ["Biology"], setup)["medcpt"]
    assert medcpt.fetch == 2 * 110e6 * 4 and medcpt.seconds


def test_datasets_with_the_same_documents_share_what_the_store_has(setup: Runtime) -> None:
    demo = r2med.load("demo/Biology", setup.store)
    both = [replace(demo, name="first"), replace(demo, name="second", queries=demo.queries[:4])]
    r2med.run("bm25", both, out=None, setup=setup)
    [bm25] = planned_run(plan_run(["bm25"], both[:1], setup=setup)).stages
    assert (bm25.indexed, bm25.stored) == (0, len(demo.corpus))


def test_what_the_store_has_is_subtracted(setup: Runtime) -> None:
    r2med.run("bm25", "demo/Biology", out=None, setup=setup)
    plan = planned_run(plan_run(["bm25", "hyde(author) → bm25"], ["demo/Biology"], setup=setup))
    assert lines(plan) == ["bm25: 68 documents are in the store", "hyde(author): reads recorded texts"]


def test_a_plan_writes_nothing_into_the_store(setup: Runtime) -> None:
    plan = planned_run(plan_run(["minilm", "hyde(gpt4) → bm25"], ["demo/Biology"], setup=setup))
    assert plan.prompts and not [path for path in setup.store.root.rglob("*") if path.is_file()]


def test_the_price_of_calls_has_an_estimate_and_a_maximum() -> None:
    card = LLMCard(name="judge", model="judge-1", price={"prompt": 1.0, "completion": 1.0}, max_tokens=1000)
    needs = llm_needs("judge", card, Runtime().setup, 2, 500, (6, 1500))
    assert (needs.calls, needs.most_calls, needs.read, needs.written) == (2, 6, 500, 2 * 400)
    assert (needs.dollars, needs.most_dollars) == (1300 / 1e6, (4 * 1500 + 6 * 1000) / 1e6)
    unknown = llm_needs("agent", card, Runtime().setup, None, 0, (6, 1500))
    assert (unknown.calls, unknown.dollars, unknown.most_dollars) == (None, None, needs.most_dollars)
    unpriced = llm_needs("m", LLMCard(name="m", model="m"), Runtime().setup, 2, 500)
    assert unpriced.dollars is None and (needs + unpriced).dollars is None and (needs + unpriced).calls == 4
    assert llm_needs("m", LLMCard(name="m", model="m", backend="local"), Runtime().setup, 2, 500).dollars == 0


def test_what_has_its_own_index_or_weights_is_not_said_to_be_encoded_or_downloaded(
    setup: Runtime, tmp_path: Path
) -> None:
    run = tmp_path / "found.trec"
    run.write_text("0 Q0 d 1 1.0 x\n")
    for stage in (f"run:{run}", "py:mine:Model"):
        needs, *_ = plan_run([stage], ["Biology"], setup=setup).systems[0].retriever.needs(Size(8, 68), setup)
        assert needs.fetch == 0 and needs.note


@pytest.mark.parametrize("system", ["bge:nonsense", "bm25 → bge-reranker:nonsense@5", "path:nowhere"])
def test_a_name_that_means_no_model_stops_the_plan(setup: Runtime, system: str) -> None:
    with pytest.raises(UserError):
        planned([system], ["demo/Biology"], setup)


def test_the_searches_of_an_expansion_are_part_of_its_plan(setup: Runtime) -> None:
    systems = ["hyde(o3-mini, rounds=1, by=bge) → bm25", "search-r1(o3-mini, by=medcpt) → bm25"]
    stages = planned(systems, ["Biology"], setup)
    assert stages["bge"].encoded and stages["bge"].fetch == 335e6 * 4
    assert stages["medcpt"].encoded
    assert "bge" not in planned(["hyde(author) → bm25"], ["demo/Biology"], setup)


def test_a_stage_that_says_nothing_has_an_unknown_time(setup: Runtime) -> None:
    class Silent(Stage, kind="rerank"):
        name: str = "silent"

        def rerank(self, dataset: object, queries: object, run: object, runtime: object) -> object:
            return run

    plan = plan_run(["bm25"], ["Biology"], setup=setup)
    system = replace(plan.systems[0], rerankers=(Silent(),))
    made = planned_run(replace(plan, systems=(system,)))
    assert [(need.stage, need.seconds is None) for need in made.stages] == [("bm25", False), ("silent", True)]
    assert lines(made)[1] == "silent: does not say what it needs; time unknown"


def test_equal_stages_count_once_and_the_same_reranker_of_other_candidates_counts_again(setup: Runtime) -> None:
    systems = [
        "hyde(gpt4) → bm25",
        "hyde(gpt4) → bm25+minilm",
        "bm25 → listwise(gpt4)@20",
        "minilm → listwise(gpt4)@20",
    ]
    plan = planned_run(plan_run(systems, ["Biology", "MedQA-Diag"], setup=setup))
    assert [need.stage for need in plan.stages] == [
        *("hyde(gpt4)", "bm25", "minilm", "listwise(gpt4)@20", "listwise(gpt4)@20")
    ]
    assert sum(need.calls or 0 for need in plan.stages) == 3 * (103 + 118)
    inside = planned_run(
        plan_run(["[bm25 → listwise(gpt4)@20]+[minilm → listwise(gpt4)@20]"], ["Biology"], setup=setup)
    )
    assert sum(need.calls or 0 for need in inside.stages) == 2 * 103


def test_the_needs_of_the_best_rows_are_known_without_their_data(
    setup: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "load_dataset", lambda *_: pytest.fail("a dataset was loaded"))
    page = plan_page(planned_run(plan_run([], [], suite="top", setup=setup)))
    [table] = page.sections[1].parts
    assert len(table.rows) == 21 and table.rows[-1][0] == "together"
    assert all(cell not in ("", None) for row in table.rows for cell in row)
    rows = {str(row[0]): dict(zip(table.heads[1:], row[1:], strict=True)) for row in table.rows}
    served = rows["diver → grouprank-32b@100"]
    assert served["GPU memory"] == "about 9.6 GB; about 77 GB at the server"
    assert (served["LLM calls"], served["dollars"], served["downloads"]) == (5 * 876, "your server's", "about 8.0 GB")
    assert isinstance(served["hours"], float) and served["hours"] > 0.5
    assert served["tokens"] == f"{876 * (100 * 300 + 5 * 500):,} read, {5 * 876 * 400:,} written"
    paid = rows["bm25 → insertrank(deepseek-r1)@100"]
    assert (paid["GPU memory"], paid["LLM calls"], paid["downloads"]) == ("none", 9 * 876, "none")
    assert 1 < paid["dollars"] < paid["dollars at most"]
    assert (rows["reasonembed:512"]["GPU memory"], rows["reasonembed:512"]["LLM calls"]) == ("about 19 GB", 0)


def test_what_is_not_known_is_said_in_its_cell(setup: Runtime) -> None:
    agents = ["search-r1(qwen-7b) → bm25", "search-o1(gpt4) → bm25"]
    systems = ["hf:someone/model", *agents, "hyde(gpt4, samples=2, rounds=1) → bm25"]
    runtime = setup.with_settings(base_url="http://127.0.0.1:1/v1")
    [table] = plan_page(planned_run(plan_run(systems, R2MED, setup=runtime))).sections[1].parts
    unknown, agent, of_provider, hyde, _ = (dict(zip(table.heads, row, strict=True)) for row in table.rows)
    assert (unknown["GPU memory"], unknown["hours"]) == ("unknown size of hf:someone/model", "unknown")
    assert (agent["LLM calls"], agent["calls at most"], agent["dollars"]) == ("unknown", 5 * 876, "your server's")
    assert (of_provider["dollars"], of_provider["tokens"]) == ("unknown", "unknown")
    assert of_provider["dollars at most"] > 100
    assert (hyde["LLM calls"], hyde["calls at most"]) == (4 * 876, 4 * 876)


def test_a_heap_is_usually_sorted_by_fewer_calls_than_at_most(setup: Runtime) -> None:
    setwise = planned(["bm25 → setwise(gpt4)@100"], ["Biology"], setup)["setwise(gpt4)@100"]
    assert (setwise.calls, setwise.most_calls) == (82 * 103, 85 * 103)

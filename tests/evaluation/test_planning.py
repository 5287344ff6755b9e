"""A plan: stage by stage, what is kept, to fetch and missing."""

from dataclasses import replace
from pathlib import Path

import pytest

import r2med
from r2med.core.errors import UserError
from r2med.core.stage_plan import StagePlan
from r2med.core.stages import Stage
from r2med.crossencoders.pair_scorer import ScoredPair
from r2med.evaluation.batch import plan_run
from r2med.evaluation.planning import asking_seconds, stage_plans
from r2med.llm.chat import ChatRequest, Message, RawAnswer, Sampling
from r2med.llm.costs import CostPreview
from r2med.llm.journal import Journal, journal_file
from r2med.llm.llm_cards import LLMCard
from r2med.rerank.cross import packed
from r2med.runtime.runtime import Runtime
from r2med.runtime.setup import Setup
from r2med.store import Store
from r2med.store.rows import Rows


def planned(systems: list[str], data: list[str], setup: Setup) -> dict[str, StagePlan]:
    plan = plan_run(systems, data, setup=setup)
    return {stage.name: stage for _, stages in stage_plans(plan) for stage in stages}


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Runtime(store=Store(tmp_path / "store"))


def test_every_stage_is_told_with_what_it_would_need(setup: Setup) -> None:
    stages = planned(["hyde(o3-mini) → bm25+bge → bge-reranker@10", "minilm"], ["Biology"], setup)
    assert stages["hyde(o3-mini)"].missing == "OPENAI_API_KEY is not set; export it before the run"
    assert (
        stages["bm25"].work.endswith("documents; 0 of 1 datasets are in the store")
        and (stages["bm25"].seconds or 0) > 1
    )
    assert stages["bge"].fetch == 335e6 * 4 and (stages["bge"].seconds or 0) > 60
    reranker = stages["bge-reranker@10"]
    assert (reranker.fetch or 0) > 1e9 and (reranker.seconds or 0) > 60
    assert reranker.work == "scores 1,030 pairs of queries and documents"
    assert stages["minilm"].fetch == 0  # its weights come with a package


def test_a_model_of_two_encoders_is_as_large_as_both(setup: Setup) -> None:
    medcpt = planned(["medcpt"], ["Biology"], setup)["medcpt"]
    assert medcpt.fetch == 2 * 110e6 * 4 and medcpt.seconds


def test_what_datasets_with_the_same_documents_share_is_not_planned_again(setup: Setup) -> None:
    demo = r2med.load("demo/Biology", setup.store)
    both = [replace(demo, name="first"), replace(demo, name="second", queries=demo.queries[:4])]
    r2med.run("bm25", both, out=None, setup=setup)
    plan = plan_run(["bm25"], both[:1], setup=setup)
    [(_, [stage])] = stage_plans(plan)
    assert stage.work == "indexes 0 documents; 1 of 1 datasets are in the store"


def test_what_is_kept_is_not_planned_again(setup: Setup) -> None:
    r2med.run("bm25", "demo/Biology", out=None, setup=setup)
    stages = planned(["bm25", "hyde(author) → bm25"], ["demo/Biology"], setup)
    assert stages["bm25"].work == "indexes 0 documents; 1 of 1 datasets are in the store"
    assert stages["hyde(author)"].work == "reads recorded texts"


def test_the_time_of_an_llm_is_that_of_its_answers_of_before_or_a_guess(setup: Setup) -> None:
    card = LLMCard(name="judge", model="judge-1")
    asked = tuple(ChatRequest((Message("user", f"question {number}"),), Sampling()) for number in range(32))
    preview = CostPreview(card, asked, asked)
    seconds, answers = asking_seconds(preview, setup)
    assert (seconds > 0, answers) == (True, 0)
    with Journal(journal_file(setup.store)) as journal:
        journal.put(b"1", "judge-1", RawAnswer("yes", seconds=3.0))
        journal.put(b"2", "judge-1", RawAnswer("no", seconds=5.0))
        journal.put(b"3", "another", RawAnswer("no", seconds=500.0))
    assert asking_seconds(preview, setup) == (32 * 4.0 / setup.setup.concurrency, 2)
    assert asking_seconds(preview, setup.with_settings(llm_backend="local")) == (32 * 4.0, 2)


def test_the_time_of_a_reranker_is_that_of_pairs_it_has_scored(setup: Setup) -> None:
    with Rows(setup.store.root / "scores" / "bge-reranker.sqlite", "cache of scores", "scores") as cache:
        cache.put({b"a": packed(ScoredPair(0.5, seconds=0.1)), b"b": packed(ScoredPair(0.5, seconds=0.3))})
    stages = planned(["bm25 → bge-reranker@10"], ["Biology"], setup)
    assert stages["bge-reranker@10"].seconds == pytest.approx(1030 * 0.2)


def test_what_has_its_own_index_or_weights_is_not_said_to_be_encoded_or_downloaded(
    setup: Setup, tmp_path: Path
) -> None:
    run = tmp_path / "found.trec"
    run.write_text("0 Q0 d 1 1.0 x\n")
    systems = [f"run:{run} → py:mine:Model@5", "pyterrier:mine:pipeline", "py:mine:Model"]
    stages = planned(systems, ["demo/Biology"], setup)
    assert all(stage.fetch == 0 for stage in stages.values())
    assert stages[f"run:{run}"].work == "reads an existing run; nothing is indexed or encoded"
    assert stages["pyterrier:mine:pipeline"].work.startswith("runs a pipeline of PyTerrier")
    assert stages["py:mine:Model"].work.endswith("the model loads its weights itself")
    assert stages["py:mine:Model@5"].work.endswith("the model loads its weights itself")


@pytest.mark.parametrize("system", ["bge:nonsense", "bm25 → bge-reranker:nonsense@5", "path:nowhere"])
def test_a_name_that_means_no_model_stops_the_plan(setup: Setup, system: str) -> None:
    with pytest.raises(UserError):
        planned([system], ["demo/Biology"], setup)


def test_the_searches_of_an_expansion_are_part_of_its_plan(setup: Setup) -> None:
    stages = planned(
        ["hyde(o3-mini, rounds=1, by=bge) → bm25", "search-r1(o3-mini, by=medcpt) → bm25"], ["Biology"], setup
    )
    assert stages["bge"].work.startswith("encodes ") and stages["bge"].fetch == 335e6 * 4
    assert stages["medcpt"].work.startswith("encodes ")
    assert "bge" not in planned(["hyde(author) → bm25"], ["Biology"], setup)


def test_a_stage_that_does_not_plan_itself_has_an_unknown_time(setup: Setup) -> None:
    class Silent(Stage, kind="rerank"):
        name: str = "silent"

    plan = plan_run(["bm25"], ["Biology"], setup=setup)
    system = replace(plan.systems[0], rerankers=(Silent(),))
    [(_, stages)] = stage_plans(replace(plan, systems=(system,)))
    assert [(stage.name, stage.seconds is None) for stage in stages] == [("bm25", False), ("silent", True)]

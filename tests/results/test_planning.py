"""A plan: stage by stage, what is kept, to fetch and missing."""

from pathlib import Path

import pytest

import r2med
from r2med.results.batch import plan_run
from r2med.results.planning import StagePlan, stage_plans
from r2med.setup import Setup
from r2med.store import Store


def planned(systems: list[str], data: list[str], setup: Setup) -> dict[str, StagePlan]:
    plan = plan_run(systems, data, setup=setup)
    return {stage.name: stage for _, stages in stage_plans(plan) for stage in stages}


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Setup(store=Store(tmp_path / "store"))


def test_every_stage_is_told_with_what_it_would_need(setup: Setup) -> None:
    stages = planned(["hyde(o3-mini) → bm25+bge → bge-reranker@10", "minilm"], ["Biology"], setup)
    assert stages["hyde(o3-mini)"].missing == "OPENAI_API_KEY is not set: export it before the run"
    assert stages["bm25"].work.endswith("documents; 0 of 1 datasets are kept") and (stages["bm25"].seconds or 0) > 1
    assert stages["bge"].fetch == 335e6 * 4 and (stages["bge"].seconds or 0) > 60
    assert (stages["bge-reranker@10"].fetch or 0) > 1e9
    assert stages["minilm"].fetch == 0  # its weights come with a package


def test_what_is_kept_is_not_planned_again(setup: Setup) -> None:
    r2med.run("bm25", "demo/Biology", out=None, setup=setup)
    stages = planned(["bm25", "hyde(author) → bm25"], ["demo/Biology"], setup)
    assert stages["bm25"].work == "indexes 0 documents; 1 of 1 datasets are kept"
    assert stages["hyde(author)"].work == "reads recorded texts"

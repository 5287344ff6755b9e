"""What a leaderboard says of systems."""

from pathlib import Path

import pytest

import r2med
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.lock_file import Lock
from r2med.publication.leaderboard.published import published
from r2med.publication.site.leaderboard import site_value
from r2med.publication.site.system_facts import judged_by_kin, parts_of_published, parts_of_record
from support.datasets import random_folder
from support.records import record


@pytest.mark.parametrize(("llm", "flagged"), [("qwq-32b", True), ("gpt4", False), ("", False)])
def test_a_system_whose_llm_is_kin_of_the_judge_is_flagged(llm, flagged):
    plain = record("hyde → bm25", "mine", [0.5])
    judged = plain.dataset.model_copy(update={"judges": ("qwen",)})
    ran = plain.model_copy(
        update={"dataset": judged, "settings": {"expand": {"stage": "hyde", "llm": llm}, "rerank": []}}
    )
    assert judged_by_kin(ran) is flagged
    assert not judged_by_kin(ran.model_copy(update={"dataset": plain.dataset}))


def test_a_trained_rewriter_s_own_model_is_the_llm_of_a_system():
    own = {"stage": "tongsearch-qr-7b", "llm": "", "model": {"model": "TongSearch/TongSearch-QR-7B"}}
    settings = {"expand": own, "retrieve": {"stage": "bm25"}, "rerank": []}
    parts = parts_of_record(record("tongsearch-qr-7b → bm25", "mine", [0.5]).model_copy(update={"settings": settings}))
    assert (parts["llm"], parts["size"]) == ("TongSearch/TongSearch-QR-7B", 7.0)


def test_the_size_of_a_system_is_that_of_its_largest_model_by_its_card():
    sizes = {
        row.retriever: parts_of_published(row)["size"] for row in published() if not (row.expansion or row.reranker)
    }
    assert sizes["medcpt"] == 0.22 and sizes["bge"] == 0.335 and sizes["bm25"] == 0


SYSTEMS = ["bm25", "bm25(k1=1.2)", "bm25(b=0.9)"]


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "mini", documents=30)


@pytest.fixture
def plan(mini: Path, tmp_path: Path) -> Path:
    r2med.lock(SYSTEMS, mini, tmp_path / "plan.lock", k=20, measure="MRR", baseline="bm25")
    return tmp_path / "plan.lock"


def test_the_board_marks_rows_that_were_locked(plan: Path, mini: Path, tmp_path: Path) -> None:
    r2med.run(["bm25(k1=2)"], mini, out=tmp_path / "out", k=20)
    r2med.run(["bm25"], mini, out=tmp_path / "out", lock=plan)
    rows = site_value(collect([tmp_path / "out"]))["systems"]
    assert {row["name"]: row["lock"] for row in rows} == {"bm25": Lock.read(plan).digest, "bm25(k1=2)": ""}

"""What a leaderboard says of systems."""

import pytest

from r2med.publication.leaderboard.published import published
from r2med.publication.site.system_facts import judged_by_kin, parts_of_published, parts_of_record
from support.records import record


@pytest.mark.parametrize(("llm", "flagged"), [("qwq-32b", True), ("gpt4", False), ("", False)])
def test_a_system_whose_llm_is_kin_of_the_judge_is_flagged(llm, flagged):
    plain = record("hyde → bm25", "mine", [0.5])
    judged = plain.dataset.model_copy(update={"judges": ("qwen",)})
    ran = plain.model_copy(update={"dataset": judged, "settings": {"expand": {"llm": llm}, "rerank": []}})
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

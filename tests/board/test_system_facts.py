"""What a leaderboard says of systems."""

import pytest

from r2med.board.system_facts import judged_by_kin
from support.records import record


@pytest.mark.parametrize(("llm", "flagged"), [("qwq-32b", True), ("gpt4", False), ("", False)])
def test_a_system_whose_llm_is_kin_of_the_judge_is_flagged(llm, flagged):
    plain = record("hyde → bm25", "mine", [0.5])
    judged = plain.dataset.model_copy(update={"judges": ("qwen",)})
    ran = plain.model_copy(update={"dataset": judged, "settings": {"expand": {"llm": llm}, "rerank": []}})
    assert judged_by_kin(ran) is flagged
    assert not judged_by_kin(ran.model_copy(update={"dataset": plain.dataset}))

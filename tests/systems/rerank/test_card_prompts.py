"""Prompts of rerankers by card: the wording of ours, of the authors, and of a plugin's own card."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import encoded
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.chat import ChatRequest
from r2med.systems.rerank.llm_reranker import OWN_PROMPT, LLMRerankerStage
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS
from support.facts import states
from support.llm_rerankers import graded, permutation, places, rerank
from support.ready import Ready, ready_reranker

DATA, _ = graded(permutation(3))


def reranker_of(spec: str, home: Path, prompts: str = "") -> Ready:
    return ready_reranker(spec, Runtime(store=Store(home), base_url="http://127.0.0.1:9/v1", prompts=prompts))


def whose_prompt(reranker: Ready) -> str:
    assert isinstance(reranker.stage, LLMRerankerStage)
    return reranker.stage.whose_prompt(reranker.stage.opened(reranker.runtime).prompts)


def test_the_authors_wording_is_a_file_with_the_name_of_the_card_s_prompt(tmp_path: Path, home: Path) -> None:
    assert (LLM_RERANKERS["rank1-7b"].template, LLM_RERANKERS["rankgpt"].template) == ("rank1", "rankgpt")
    folder = tmp_path / "authors"
    folder.mkdir()
    (folder / "rank1.txt").write_text("<<completion>>\nTheir words. Query: {query}\nPassage: {passages}\n<think>\n")
    ours, theirs = reranker_of("rank1-7b", home), reranker_of(f"rank1-7b(prompts={encoded(str(folder))})", home)
    theirs.check([DATA])
    assert theirs.key(DATA)["templates"] != ours.key(DATA)["templates"]
    assert theirs.example(DATA).prompt.startswith("Their words. Query: ")
    (folder / "rank1-7b.txt").write_text("{query} {passages}")
    with pytest.raises(UserError, match=r"rank1-7b\.txt: no template has this name"):
        theirs.check([DATA])


def of_set(folder: Path, name: str) -> Path:
    """Write a set of prompts of the user with one template."""
    folder.mkdir()
    (folder / f"{name}.txt").write_text("Mine: {query} {passages}")
    return folder


@pytest.mark.parametrize(("spec", "prompt"), [("reasonrank-7b", "reasonrank"), ("erank-4b", "erank")])
def test_a_reranker_reads_the_set_of_its_name_or_of_the_run(spec: str, prompt: str, tmp_path: Path, home: Path) -> None:
    mine, others = of_set(tmp_path / "mine", prompt), of_set(tmp_path / "others", "listwise")
    for reranker in (
        reranker_of(spec, home, str(mine)),
        reranker_of(f"{spec}(prompts={encoded(str(mine))})", home, str(others)),
    ):
        assert reranker.example(DATA).messages[-1].content.startswith("Mine: ")
        assert whose_prompt(reranker) == "prompt of the set mine"
    plain, unchanged = reranker_of(spec, home), reranker_of(spec, home, str(others))
    assert unchanged.example(DATA) == plain.example(DATA)
    assert whose_prompt(unchanged) == whose_prompt(plain) == OWN_PROMPT
    assert whose_prompt(reranker_of("listwise(gpt4)", home, str(others))) == ""  # nobody published another one


def test_a_trained_reranker_with_our_prompt_says_so_in_one_line(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "r2med")
    for spec, fact in (("reasonrank-7b", "ReasonRank"), ("erank-4b", "figure 5")):
        reranker_of(spec, home).check([DATA])
        states(caplog.messages[-1], spec, "our prompt", "not comparable", fact)


def test_a_card_and_a_prompt_of_a_plugin_make_a_reranker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("llm-rerankers", "prompts"):
        (tmp_path / "mine" / folder).mkdir(parents=True)
    card = 'form = "listwise"\nanswer = "order"\ntag = "best"\npassage = "({number}) {text}"\n'
    (tmp_path / "mine/llm-rerankers/orderer.toml").write_text(card + "[settings]\nwindow = 4\nstep = 2\n")
    (tmp_path / "mine/prompts/orderer.txt").write_text("<<system>>\nOrder them.\n<<user>>\n{query}\n{passages}\n")
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "mine"))
    asked: list[ChatRequest] = []

    def reply(request: ChatRequest) -> str:
        asked.append(request)
        return "[1] is not an answer <best>[4] > [3] > [2] > [1]</best>"

    reranked, _ = rerank("orderer(ranker)", reply, graded(permutation(4)), tmp_path)
    assert places(reranked.run) == [3, 2, 1, 0]
    assert [message.role for message in asked[0].messages] == ["system", "user"]
    assert "(1) document 0 of query 0" in asked[0].messages[1].content

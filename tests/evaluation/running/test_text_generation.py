"""`r2med.generate`: an LLM's texts for every query, as files that a run searches with."""

import json
from pathlib import Path

import pytest

import r2med
from r2med import Dataset
from r2med.foundation.core.errors import UserError
from support.chat_server import Server, answer


def test_texts_are_written_and_searched_without_the_llm(chat_server: Server, tmp_path: Path) -> None:
    out = tmp_path / "texts"
    [made] = r2med.generate("hyde(org/m)", "demo/Biology", out=out, base_url=chat_server.address)
    assert (made.dataset, made.answered, made.queries, made.problem) == ("demo/Biology", 8, 8, "")
    assert made.file == out / "demo/Biology/hyde/org--m/query_with_hydoc.jsonl"
    assert all(json.loads(line)["hy_doc"] for line in made.file.read_text().splitlines())
    asked = len(chat_server.requests)
    r2med.run("hyde(org/m) → bm25", "demo/Biology", out=None, generations=out)
    assert len(chat_server.requests) == asked == 8


def test_a_trained_rewriter_needs_no_llm_and_lists_are_read_back_as_queries(
    chat_server: Server, tmp_path: Path
) -> None:
    chat_server.otherwise = answer('["rods", "cones"]')
    for method, llm in (("inf-query-aligner", "inf-query-aligner"), ("queries(m, n=2)", "m")):
        [made] = r2med.generate(method, "demo/Biology", out=tmp_path, base_url=chat_server.address)
        name = method.partition("(")[0]
        assert made.file == tmp_path / "demo/Biology" / name / llm / "query_with_hydoc.jsonl"
    assert json.loads(made.file.read_text().splitlines()[0])["hy_doc"] == ["rods", "cones"]
    asked = len(chat_server.requests)
    systems = ["inf-query-aligner → bm25", "queries(m) → bm25"]
    assert len(r2med.run(systems, "demo/Biology", out=None, generations=tmp_path, recorded=True).records) == 2
    assert len(chat_server.requests) == asked == 16


def test_fewer_texts_do_not_replace_more(chat_server: Server, tmp_path: Path) -> None:
    settings = {"llm": "org/m", "out": tmp_path, "setup": r2med.Setup(base_url=chat_server.address)}
    r2med.generate("hyde(samples=2)", "demo/Biology", **settings)  # type: ignore[arg-type]
    [made] = r2med.generate("hyde", "demo/Biology", **settings)  # type: ignore[arg-type]
    assert made.file is None
    assert "has 16 texts and there are 8 now" in made.problem


def test_names_that_differ_only_in_capital_letters_do_not_share_files(chat_server: Server, tmp_path: Path) -> None:
    r2med.generate("hyde(org/m)", "demo/Biology", out=tmp_path, base_url=chat_server.address)
    with pytest.raises(UserError, match=r"org--m exists, and .*org--M differs from it only in capital letters"):
        r2med.generate("hyde(org/M)", "demo/Biology", out=tmp_path, base_url=chat_server.address)
    assert len(chat_server.requests) == 8, "nothing is paid for what cannot be written"
    both = [Dataset.of({"q": "why"}, {"d": name}, {"q": {"d": 1}}, name=name) for name in ("Notes", "notes")]
    with pytest.raises(UserError, match="2 datasets are named Notes and notes, so they would share a folder"):
        r2med.generate("hyde(org/m)", both, out=tmp_path, base_url=chat_server.address)
    r2med.run("bm25", both, out=tmp_path / "results")
    files = [str(path).casefold() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert len(files) == len(set(files)) == 4, "the key in their names keeps records apart"


def test_a_method_that_asks_no_llm_is_refused() -> None:
    with pytest.raises(UserError, match="rm3 asks no LLM for texts"):
        r2med.generate("rm3", "demo/Biology")

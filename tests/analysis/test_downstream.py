"""Whether what an LLM reads helps its answers."""

from pathlib import Path

from r2med.analysis.analysis import analyse
from r2med.analysis.downstream import options_of
from r2med.data import Query, load
from r2med.store import Store
from support.scripted_llm import scripted

DIAG = "demo/MedQA-Diag"


def test_gold_passages_help_an_llm_that_reads_and_faithfulness_is_seen(
    tmp_path: Path, store: Store, results: Path
) -> None:
    query = load(DIAG, store).queries[0]
    letter = "ABCD"[options_of(query, load(DIAG, store).queries).index(query.answer)]
    wrong = "B" if letter == "A" else "A"
    setup = scripted(
        tmp_path,
        store,
        (["Do the passages support"], {"supported": True}),
        (["Expected answer", query.answer, f"Text:\n{query.answer}"], {"final_answer": "it", "verdict": "right"}),
        (["Expected answer"], {"final_answer": "x", "verdict": "wrong"}),
        (["choosing one option", "FGF23"], {"choice": letter}),
        (["choosing one option"], {"choice": f"{wrong}."}),
        (["name of one entity", "FGF23"], {"answer": query.answer}),
        (["name of one entity"], {"answer": "gout"}),
    )
    done = analyse(
        "downstream", setup=setup, results=results, data=[DIAG], queries=1, depths=(1, 3), out=tmp_path / "o"
    )
    rows = {(row[0], row[1]): row for row in done.sections[0].tables[0].rows}
    assert set(rows) == {
        ("no passages", 0),
        ("relevant passages", None),
        ("random passages", 3),
        ("hyde(author) → bm25", 1),
        ("hyde(author) → bm25", 3),
    }
    assert [figure.value for figure in rows["relevant passages", None][3:5]] == [1.0, 1.0]
    assert [figure.value for figure in rows["no passages", 0][3:5]] == [0.0, 0.0]
    assert rows["relevant passages", None][6].value == 1.0
    assert rows["random passages", 3][5].value == 0.0  # gout stands nowhere in what was read


def test_options_hold_the_right_answer_once_and_depend_on_the_query_alone() -> None:
    queries = [Query(str(n), "?", f"answer {n}") for n in range(9)]
    options = options_of(queries[3], queries)
    assert len(options) == 4
    assert options.count("answer 3") == 1
    assert options == options_of(queries[3], queries[::-1])

"""What retrieval is worth to answers, as an analysis of answer records."""

from pathlib import Path

import pytest

from r2med.analysis.analysis import rehearse, run_analyses
from r2med.data import load
from r2med.foundation.core.errors import UserError
from support.answer_records import answer_record, answered
from support.synthetic_answers import write

DIAG = "demo/MedQA-Diag"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answer records of three systems. Relevant passages give right answers, and no passages only wrong ones."""
    folder, dataset = tmp_path_factory.mktemp("results"), load(DIAG)
    asked = [query.id for query in dataset.queries]
    for number, system in enumerate(("bm25", "dense", "rerank")):
        answers = answered(dataset, {"retrieved": asked[: 2 * number + 1], "relevant": asked})
        ndcg = {query: 0.2 + 0.2 * number + 0.01 * n for n, query in enumerate(asked)}
        write(answer_record(answers, dataset, system, retrieval=ndcg), folder, answers)
    return folder


def test_the_worth_of_retrieval_is_read_from_answer_records(results: Path, tmp_path: Path) -> None:
    done = run_analyses("downstream", results=results, data=[DIAG], out=tmp_path)
    (section,) = done.sections
    tables = {table.name: table for table in section.tables}
    rows = {row[0]: row for row in tables["worth"].rows}
    best = rows["rerank · smollm2"]
    assert best[1:3] == [DIAG, 8]
    assert [figure.value for figure in best[3:7]] == [0.0, 62.5, 100.0, 0.0]
    assert (best[7].value, best[9].value) == (62.5, 0.625)
    ((reader, systems, questions, observed, _),) = tables["worth-correlation"].rows
    assert (reader, systems, questions) == ("smollm2", 3, 8)
    assert observed == pytest.approx(1.0)
    assert section.lead.startswith("The passages of rerank · smollm2 change accuracy by +62.5 points")
    assert (tmp_path / "worth.csv").is_file()


def test_without_answer_records_the_command_that_makes_them_is_named(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="r2med answer bm25 --reader LLM"):
        run_analyses("downstream", results=tmp_path, out=tmp_path / "o")
    assert rehearse(results=tmp_path) == {}  # a plan of all analyses does not need answers
    with pytest.raises(UserError, match="there are no answer records of demo/Biology"):
        run_analyses("downstream", results=results, data=["demo/Biology"], out=tmp_path / "o")

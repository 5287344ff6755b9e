"""Python as people type it first: tables, misspelt settings, measures by name, short reprs, named models."""

import inspect
from pathlib import Path

import pandas as pd
import pytest

import r2med
from r2med.foundation.core.errors import UserError

QRELS = pd.DataFrame({"qid": ["1"], "docno": ["d"], "label": [1]})
RUN = pd.DataFrame({"qid": ["1"], "docno": ["d"], "score": [1.0]})
TEXTS = pd.DataFrame({"id": ["1"], "text": ["a"]})


@pytest.mark.parametrize(
    "call",
    [
        lambda: r2med.score(QRELS, {"1": {"d": 1.0}}),
        lambda: r2med.score({"1": {"d": 1}}, RUN),
        lambda: r2med.Run.of(RUN),
        lambda: r2med.Dataset.of(TEXTS, {"d": "a"}),
        lambda: r2med.Dataset.of({"1": "a"}, TEXTS),
        lambda: r2med.Dataset.of({"1": "a"}, {"d": "a"}, QRELS),
        lambda: r2med.load(TEXTS),
        lambda: r2med.run("bm25", TEXTS),
        lambda: r2med.evaluate("bm25", TEXTS),
    ],
)
def test_a_dataframe_is_refused_in_one_line_that_says_how_to_turn_it_into_what_is_wanted(call):
    with pytest.raises(UserError, match=r"is a DataFrame, but must be .*dict\(zip\(frame\.id, frame\.text\)\)"):
        call()


def test_the_conversion_in_that_line_works():
    frame = RUN
    run = {q: dict(zip(g.docno, g.score)) for q, g in frame.astype({"qid": str, "docno": str}).groupby("qid")}  # noqa: B905
    assert r2med.score({"1": {"d": 1}}, run)["MRR"] == 1


def test_a_misspelt_setting_is_one_line_with_the_right_one():
    with pytest.raises(UserError, match=r"no setting 'devise' \(did you mean device\?\)"):
        r2med.Setup(devise="cpu")
    with pytest.raises(UserError, match="did you mean device"):
        r2med.run("bm25", "demo/Biology", devise="cpu", out=None)
    assert r2med.Setup(device="cpu", dtype="float32").device == "cpu"


def test_a_mean_is_found_by_the_name_of_its_measure():
    scores = r2med.score({"1": {"d": 1}}, {"1": {"d": 1.0}}, ["nDCG@10", "MRR"])
    assert scores.mean["nDCG@10"] == scores.mean["ndcg@10"] == scores["nDCG@10"] == 1
    assert scores.per_query["1"]["MRR"] == 1
    with pytest.raises(UserError, match=r"P@3 was not computed: add it in score.*nDCG@10, MRR"):
        scores.mean["P@3"]
    with pytest.raises(UserError, match="did you mean"):
        scores.mean["nDGC@10"]


def test_a_comparison_prints_as_one_short_line(tmp_path: Path):
    results = r2med.run(["bm25", "hyde(author) → bm25"], "demo/Biology", out=None)
    shown = repr(results.compare())
    assert shown.startswith("Comparison(nDCG@10 × 100, 2 systems, 1 dataset, 1 pair; best: hyde(author) → bm25 92.81")
    assert len(shown) < 200


class Lengths:
    revision = "1"

    def __init__(self, name: object = None) -> None:
        self.name = name

    def encode(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]


def test_a_model_object_is_called_by_its_own_name():
    results = r2med.run([Lengths("tuned-bge"), Lengths()], "demo/Biology", out=None)
    assert [name.rpartition(":")[2] for name in results.systems] == ["tuned-bge", "Lengths"]
    with pytest.raises(UserError, match="a model's attribute name is 'a b'"):
        r2med.run(Lengths("a b"), "demo/Biology", out=None)


FUNCTIONS = [name for name in r2med.__all__ if inspect.isfunction(getattr(r2med, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_types_and_a_docstring(name: str):
    function = getattr(r2med, name)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(each.annotation is not inspect.Parameter.empty for each in signature.parameters.values())
    assert (inspect.getdoc(function) or "").partition("\n")[0].endswith(".")


def test_tables_become_a_dataset_and_records_a_board(tmp_path: Path):
    (tmp_path / "notes.csv").write_text("id,text\na,gout hurts\nb,flu passes\n")
    (tmp_path / "asked.csv").write_text("query,relevant\nwhat hurts?,a\n")
    r2med.import_data([tmp_path / "notes.csv", tmp_path / "asked.csv"], tmp_path / "mine")
    mine = r2med.load(tmp_path / "mine")
    assert (len(mine.corpus), len(mine.queries), mine.qrels.positives) == (2, 1, 1)
    r2med.run("bm25", mine, out=tmp_path / "results")
    page = r2med.board([tmp_path / "results"], tmp_path / "site", [str(tmp_path / "mine")])
    assert page == tmp_path / "site" / "index.html" and page.is_file()

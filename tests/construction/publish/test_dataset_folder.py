"""What a build leaves: a dataset that is evaluated, metadata that validate, and nothing half-written."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from r2med.assessment.review.reviews import Review
from r2med.construction.publish.build_outcome import origin
from r2med.construction.publish.dataset_folder import lacks_reviews, write_output
from r2med.construction.publish.datasheet import query_origins
from r2med.data import load
from r2med.data.check import check
from r2med.data.dataset_word import DatasetWord
from r2med.data.layouts.hub_listing import config_files
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.store.files import sha256
from support.written_builds import given, small_build

HOSTILE = "<script>window.harmed = 1</script> | `a` \u202e [x](javascript:alert(1))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = small_build(tmp_path_factory.mktemp("build"), hostile=HOSTILE, licence="CC-BY-4.0", task="clinical evidence")
    written = write_output(made, Runtime(store=Store(tmp_path_factory.mktemp("store"))))
    assert written
    return written


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_folder_has_no_flaw_and_is_evaluated_under_its_own_name(folder, store, tmp_path):
    assert DatasetWord.parse(folder).name == "small"
    problems = check(folder, store)
    assert (problems.flaws, problems.notices) == ([], ["the card says about its labels: judge not tested"])
    record = evaluate("bm25", folder, tmp_path / "results", store=store)
    assert record.dataset.name == "small"
    assert record.dataset.judges == ("qwen",)
    assert record.dataset.judged_queries == 11
    assert record.mean["nDCG@10"] > 0.5


def test_positives_are_the_qrels_and_controls_are_not(folder, store):
    qrels = load(folder, store).qrels
    assert {query: list(grades) for query, grades in qrels.items()} == {f"q{n}": [f"gold-{n}"] for n in range(1, 12)}


def test_individual_labels_and_what_was_left_out_are_published(folder):
    labels = rows(folder / "labels.jsonl")
    assert len(labels) == 47
    assert sum(row["control"] == "stuffed" and row["text"] == "words" for row in labels) == 12
    reasons = {row["key"]: row["reason"] for row in rows(folder / "rejected.jsonl")}
    assert reasons == {"q99": "Too Simple", "q0": "no positive"}
    label = next(row for row in rows(folder / "candidates.jsonl") if row["p_id"] == "near-3")
    assert (label["label"], label["by"], label["relevance"]) == ("discarded", "judges", 3.0)
    assert json.loads(label["proposed"])[0]["member"] == "bm25"


def test_the_readme_is_a_card_of_the_hub(folder):
    head = yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1])
    assert head["license"] == "cc-by-4.0"
    assert head["size_categories"] == ["n<1K"]
    for config in head["configs"]:
        assert (folder / config["data_files"][0]["path"]).is_file()
        assert config_files(folder, config["config_name"])
    assert {"query", "corpus", "qrels", "labels"} <= {config["config_name"] for config in head["configs"]}


def test_the_datasheet_counts_queries_with_the_text_of_an_earlier_one(folder, tmp_path, store):
    """Two cases may end in one question with different answers: they stay, and readers know of them."""
    assert "No query occurs twice." in (folder / "README.md").read_text("utf-8")
    made = small_build(tmp_path / "build", texts={3: "What causes it?", 5: "What causes it?"})
    written = write_output(made, Runtime(store=store))
    assert written
    for name in ("README.md", "datasheet.html"):
        assert "1 query has the text of an earlier one (" in (written / name).read_text("utf-8")


def test_the_datasheet_shows_the_overlap_beside_known_datasets(folder):
    sheet = (folder / "README.md").read_text("utf-8")
    table = sheet.partition("**Side by side: coverage**")[2].strip().splitlines()
    assert "median" in table[0]
    assert [row.split(" | ")[0] for row in table[2:4]] == ["| small", "| SciFact"]
    assert "overlap-by-" not in (folder / "datasheet.html").read_text("utf-8")  # no links to files of a report


@pytest.mark.parametrize(
    ("step", "origin"),
    [
        ("read-cases(cases.jsonl)", "start from diagnoses"),
        ("read-cases(cases.jsonl, group=diagnosis)", "start from diagnoses"),
        ("read-cases(cases.jsonl, group=article)", "not chosen by diagnoses"),
        ("read-stackexchange(Posts.xml)", "not by diagnoses"),
    ],
)
def test_the_datasheet_says_if_queries_start_from_diagnoses(step, origin):
    [sentence] = query_origins([step, "reason", step])
    assert origin in sentence


@pytest.mark.parametrize("reviewed", [1, 15])
def test_a_share_of_few_or_many_reviews_has_its_interval(reviewed, tmp_path, store, monkeypatch):
    made = small_build(tmp_path / "build", queries=20)
    said = [Review(question=f"q{n}", chunk=f"gold-{n}", annotator="Ann", verdict="accept") for n in range(1, 20)]
    monkeypatch.setattr("r2med.construction.publish.dataset_folder.read_reviews", lambda folder: said[:reviewed])
    written = write_output(made, Runtime(store=store))
    assert written
    for name in ("README.md", "datasheet.html"):
        text = (written / name).read_text("utf-8")
        assert f"of {reviewed} decided candidate" in text and "95 % interval" in text
        assert not {"nan", "None"} & set(re.findall(r"\w+", text))


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph")
def test_croissant_validates_and_its_rows_are_those_of_the_files(folder, monkeypatch, tmp_path):
    import mlcroissant

    monkeypatch.chdir(tmp_path)
    dataset = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    for name in ("query", "corpus", "qrels", "labels", "candidates", "rejected", "provenance"):
        records = list(dataset.records(name))
        assert len(records) == len(rows(folder / f"{name}.jsonl"))
    first = next(iter(dataset.records("corpus")))
    assert first["corpus/id"] in (b"gold-0", "gold-0")


def test_croissant_has_the_rai_fields_and_the_hash_of_every_file(folder):
    described = json.loads((folder / "croissant.json").read_text("utf-8"))
    wanted = "dataLimitations dataBiases personalSensitiveInformation dataUseCases dataSocialImpact"
    wanted += " dataAnnotationProtocol dataAnnotationAnalysis"
    for field in wanted.split():
        assert described[f"rai:{field}"]
    assert described["rai:hasSyntheticData"] is True
    assert {each["name"] for each in described["prov:wasDerivedFrom"]} == {"forum.csv", "example.org"}
    agents = described["prov:wasGeneratedBy"][-1]["prov:wasAssociatedWith"]
    assert "Qwen/QwQ-32B" in [agent["name"] for agent in agents]
    files = {each["name"]: each["sha256"] for each in described["distribution"]}
    assert files == {p.name: sha256(p) for p in folder.iterdir() if p.name != "croissant.json"}


def test_nothing_of_the_data_is_markup(folder):
    page = (folder / "datasheet.html").read_text("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;window.harmed" in page
    assert re.search(r"default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'", page)
    assert not re.search(r"""\s(?:on\w+=|style=|src=|href="(?!#))""", page.partition("</style>")[2])
    sheet = (folder / "README.md").read_text("utf-8").split("---\n", 2)[2]
    assert r"\<script\>" in sheet
    assert "\n# A small set \\<script" in sheet


def test_the_same_build_gives_the_same_bytes(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = small_build(folder.parent.parent, hostile=HOSTILE, licence="CC-BY-4.0", task="clinical evidence")
    write_output(again, Runtime())
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert tomllib.loads(before["card.toml"].decode())["counts"]["documents"] == 36


def test_a_folder_of_somebody_else_is_not_overwritten(tmp_path):
    made = small_build(tmp_path)
    made.dataset.mkdir()
    (made.dataset / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="is not a dataset"):
        write_output(made, Runtime())


def test_without_judgements_nothing_is_written(tmp_path, monkeypatch):
    made = small_build(tmp_path)
    steps = (*made.plan.steps[:3], given("judgements", []))
    object.__setattr__(made.plan, "steps", steps)
    made.run(Runtime())
    assert write_output(made, Runtime()) is None


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("forum.csv:12", "forum.csv"),
        ("https://example.org:80/a/b?c", "example.org:80"),
        ("notes/2024/a.txt", "notes"),
        ("notes", "notes"),
        ("", ""),
    ],
)
def test_sources_are_counted_without_their_lines(source, told):
    assert origin(source) == told


def test_a_text_that_people_corrected_is_published_and_the_original_is_kept(tmp_path, store, monkeypatch):
    made = small_build(tmp_path / "build", queries=4)
    before = {question.id: question for question in made.streams().questions()}

    def about(question: str, annotator: str, correction: str) -> Review:
        fields = {"kind": "reasoning", "verdict": "accept", "correction": correction}
        return Review(question=question, annotator=annotator, **fields)

    said = [about("q1", "Ann", "New path."), about("q2", "Ann", "Mine."), about("q2", "Bo", "")]
    monkeypatch.setattr("r2med.construction.publish.dataset_folder.read_reviews", lambda folder: said)
    written = write_output(made, Runtime(store=store))
    queries = {row["id"]: row["reasoning"] for row in rows(written / "query.jsonl")}
    assert queries == {"q1": "New path.", "q2": before["q2"].reasoning, "q3": before["q3"].reasoning}
    [corrected] = rows(written / "corrections.jsonl")
    assert corrected == {
        **{"q_id": "q1", "kind": "reasoning", "field": "reasoning"},
        **{"before": before["q1"].reasoning, "after": "New path."},
    }
    sheet = (written / "README.md").read_text("utf-8")
    assert "corrected 1 text of queries (1 by the review of kind reasoning)" in sheet
    assert "did not decide about corrections of 1 text" in sheet
    opinions = {row["q_id"]: row["correction"] for row in rows(written / "labels.jsonl") if row["by"] == "person 1"}
    assert opinions == {"q1": "New path.", "q2": "Mine."}
    described = json.loads((written / "croissant.json").read_text("utf-8"))
    assert "corrections" in {each["name"] for each in described["recordSet"]}
    assert not lacks_reviews(made)
    said.append(about("q3", "Ann", "Third."))
    assert lacks_reviews(made)


def test_questions_that_most_people_reject_are_left_out_with_the_reason(tmp_path, store, monkeypatch):
    """An LLM wrote the texts of a question, and people come before it. What they say of inference is published."""
    made = small_build(tmp_path / "build", queries=6, reviewers="Three physicians.")
    fine = {"answerable": "yes", "self_contained": "yes", "needs_inference": "no", "words_mislead": "yes"}

    def about(number: int, annotator: str, **answers: str) -> Review:
        return Review(question=f"q{number}", annotator=annotator, kind="question", answers={**fine, **answers})

    people = ("Ann", "Bo", "Cy")
    said = [about(2, name, self_contained=reply) for name, reply in zip(people, ("no", "no", "yes"), strict=True)]
    said += [about(3, name, answerable=reply) for name, reply in zip(people, ("no", "yes", "yes"), strict=True)]
    said += [about(4, "Ann", needs_inference="unsure")]
    said += [Review(question="q5", annotator="Bo", kind="reasoning", verdict="reject")]
    monkeypatch.setattr("r2med.construction.publish.dataset_folder.read_reviews", lambda folder: said)
    (made.out / "guideline.md").write_text("Read <b>twice</b>.")
    written = write_output(made, Runtime(store=store))
    assert written
    sheet = (written / "README.md").read_text("utf-8")
    assert "3 people reviewed." in sheet and "Three physicians." in sheet
    described = json.loads((written / "croissant.json").read_text("utf-8"))
    assert described["rai:annotatorDemographics"] == "Three physicians."
    assert re.search(r"self-contained, .*\|\s*67.*\|\s*2\s*\|\s*1\s*\|\s*0", sheet)
    assert "Read &lt;b&gt;twice" in (written / "datasheet.html").read_text("utf-8")
    queries = {row["id"]: (row["needs_inference"], row["words_mislead"]) for row in rows(written / "query.jsonl")}
    assert queries == {"q1": ("", ""), "q3": ("no", "yes"), "q4": ("unsure", "yes")}
    assert {query.id: query.needs_inference for query in load(written, store).queries}["q3"] == "no"
    reasons = {row["key"]: (row["step"], row["reason"]) for row in rows(written / "rejected.jsonl")}
    assert reasons["q2"] == ("review", "not self-contained")
    assert reasons["q5"] == ("review", "unsound reasoning")
    assert "1 not self-contained, 1 unsound reasoning" in (written / "README.md").read_text("utf-8")
    opinions = [row for row in rows(written / "labels.jsonl") if row["kind"] == "question" and row["q_id"] == "q2"]
    assert {(row["by"], row["point"], row["verdict"]) for row in opinions} >= {("person 1", "self_contained", "no")}
    assert "Ann" not in (written / "labels.jsonl").read_text("utf-8")

"""Folders of the benchmark's own layout and of BEIR's read alike, whichever form their qrels have."""

from pathlib import Path

import pytest

import r2med
from r2med.data import Query, load, names
from r2med.data.dataset_cards import ANY_DATASET, groups
from r2med.data.qrels_file import read_qrels
from support.datasets import DOCUMENTS, GRADES, QRELS, QUERIES, beir_folder, r2med_folder, write_jsonl
from support.facts import each_states, error_states, some_states

TREC = "".join(f"{row['q_id']} 0 {row['p_id']} {row['score']}\n" for row in QRELS)
TSV = "".join(f"{row['q_id']}\t{row['p_id']}\t{row['score']}\n" for row in QRELS)


def test_an_r2med_folder_has_queries_documents_and_grades(tmp_path: Path) -> None:
    dataset = r2med.load(r2med_folder(tmp_path / "Mine"))
    assert dataset.name == "Mine"
    assert dataset.card is None
    assert dataset.queries == (
        Query("0", "Tired after bread?", "Coeliac disease", "Digestive"),
        Query("1", "Why is she pale?", "Iron deficiency", "Other / NA", excluded=("0",)),
    )
    assert list(dataset.corpus) == [(row["id"], row["text"]) for row in DOCUMENTS]
    assert dataset.qrels == GRADES
    assert dataset.qrels.positives == 2
    assert dataset.notices == ()


@pytest.mark.parametrize("name", ["qrels.jsonl", "qrels.txt", "qrels.tsv", "qrels.trec"])
@pytest.mark.parametrize(
    "content",
    [TREC, TSV, "query-id\tcorpus-id\tscore\n" + TSV, TREC.replace(" ", "\t"), TREC.replace(" ", "   ")],
    ids=["trec", "tsv", "tsv with header", "trec with tabs", "trec with many spaces"],
)
def test_qrels_are_told_by_their_content(tmp_path: Path, name: str, content: str) -> None:
    folder = r2med_folder(tmp_path / "set")
    (folder / "qrels.jsonl").unlink()
    (folder / name).write_text(content)
    assert load(folder).qrels == GRADES


def test_json_lines_may_be_called_txt(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set")
    (folder / "qrels.jsonl").rename(folder / "qrels.txt")
    assert load(folder).qrels == GRADES


def test_a_first_grade_that_is_no_whole_number_is_not_taken_for_a_header(tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text("q1\td1\t1.5\nq1\td2\t1\n")
    with error_states("qrels.tsv:1", "grade '1.5'", "whole number"):
        read_qrels(path)


@pytest.mark.parametrize("grade", ["1x", "x", "yes", "O", "l", "score"])
def test_a_first_line_without_names_of_columns_is_not_taken_for_a_header(tmp_path: Path, grade: str) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text(f"q1\td1\t{grade}\nq1\td2\t1\n")
    with error_states("qrels.tsv:1", f"grade '{grade}'", "whole number"):
        read_qrels(path)


@pytest.mark.parametrize("head", ["query-id corpus-id score", "q_id\tp_id\tscore", "qid docid rel", "Query Doc Label"])
def test_a_first_line_of_names_is_a_header_and_a_later_one_is_not(tmp_path: Path, head: str) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text(f"{head}\nq1\td1\t1\n")
    assert read_qrels(path) == {"q1": {"d1": 1}}
    path.write_text(f"q1\td1\t1\n{head}\n")
    with error_states("qrels.tsv:2", "whole number"):
        read_qrels(path)


def test_ids_in_tsv_may_hold_spaces(tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text("query one\tdocument one\t1\n")
    assert read_qrels(path) == {"query one": {"document one": 1}}


def test_repeated_judgements_are_merged_with_a_notice(tmp_path: Path) -> None:
    dataset = load(r2med_folder(tmp_path / "set", qrels=[*QRELS, QRELS[0]]))
    assert dataset.qrels == GRADES
    some_states(dataset.notices, "1 repeated judgements")


def test_a_pair_judged_twice_differently_names_both_lines(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set", qrels=[*QRELS, {"q_id": "0", "p_id": "0", "score": 0}])
    with error_states("qrels.jsonl:4", "query '0'", "document '0'", 2, "line 1"):
        load(folder)


def test_a_document_judged_relevant_is_never_excluded(tmp_path: Path) -> None:
    queries = [{"id": "0", "text": "?", "excluded_ids": ["d2", "d2", "0"]}]
    dataset = load(r2med_folder(tmp_path / "set", queries=queries, qrels=QRELS[:2]))
    assert dataset.queries[0].excluded == ("d2",)


@pytest.mark.parametrize("doc_id", ["d2", ["d2"], [8], {"d2": 1}, None])
def test_doc_id_excludes_nothing(tmp_path: Path, doc_id: object) -> None:
    queries = [{"id": "0", "text": "?", "doc_id": doc_id}]
    dataset = load(r2med_folder(tmp_path / "set", queries=queries, qrels=QRELS[:2]))
    assert dataset.queries[0].excluded == ()


def test_an_r2med_folder_joins_each_title_to_its_text_and_leaves_other_texts_alone(tmp_path: Path) -> None:
    documents = [
        {"id": "a", "title": "Anaemia", "text": "has many causes."},
        {"id": "b", "title": " ", "text": " as it is "},
        {"id": "c", "text": " as it is "},
        {"id": "d", "title": None, "text": "Null."},
    ]
    folder = r2med_folder(tmp_path / "set", documents, qrels=[{"q_id": "0", "p_id": "a", "score": 1}])
    assert [text for _, text in load(folder).corpus] == [
        "Anaemia has many causes.",
        " as it is ",
        " as it is ",
        "Null.",
    ]


def test_beir_joins_each_title_to_its_text(tmp_path: Path) -> None:
    documents = [
        {"id": "a", "title": "Anaemia", "text": "has many causes."},
        {"id": "b", "title": "", "text": "No title."},
        {"id": "c", "text": "None at all."},
        {"id": "d", "title": None, "text": "Null."},
        {"id": "e", "title": "Only a title", "text": ""},
    ]
    folder = beir_folder(tmp_path / "set", documents, qrels=[{"q_id": "0", "p_id": "a", "score": 1}])
    texts = ["Anaemia has many causes.", "No title.", "None at all.", "Null.", "Only a title"]
    assert [text for _, text in load(folder).corpus] == texts


def test_beir_queries_of_other_splits_are_left_out(tmp_path: Path) -> None:
    dataset = load(beir_folder(tmp_path / "set", qrels=QRELS[:2]))
    assert [query.id for query in dataset.queries] == ["0"]
    assert dataset.qrels == {"0": GRADES["0"]}
    some_states(dataset.notices, "1 queries", "splits")


def test_layout_does_not_change_the_fingerprint_of_the_corpus(tmp_path: Path) -> None:
    ours, beir = load(r2med_folder(tmp_path / "a")), load(beir_folder(tmp_path / "b"))
    assert ours.corpus.fingerprint == beir.corpus.fingerprint
    assert ours.qrels.fingerprint == beir.qrels.fingerprint


def test_fingerprint_depends_on_contents_and_not_on_place(tmp_path: Path) -> None:
    here, there = load(r2med_folder(tmp_path / "here")), load(r2med_folder(tmp_path / "there"))
    other = load(r2med_folder(tmp_path / "other", queries=[*QUERIES[:1], {**QUERIES[1], "text": "Why so pale?"}]))
    assert here.fingerprint == there.fingerprint != other.fingerprint


@pytest.mark.parametrize(("before", "newline"), [(b"\xef\xbb\xbf", b"\n"), (b"", b"\r\n"), (b"\xef\xbb\xbf", b"\r\n")])
def test_a_byte_order_mark_and_dos_line_ends_change_nothing(tmp_path: Path, before: bytes, newline: bytes) -> None:
    plain = load(r2med_folder(tmp_path / "plain"))
    odd = r2med_folder(tmp_path / "odd")
    for path in odd.iterdir():
        path.write_bytes(before + path.read_bytes().replace(b"\n", newline))
    assert load(odd).fingerprint == plain.fingerprint
    (odd / "qrels.jsonl").unlink()
    (odd / "qrels.tsv").write_bytes(before + ("query-id\tcorpus-id\tscore\n" + TSV).encode().replace(b"\n", newline))
    assert load(odd).fingerprint == plain.fingerprint


def test_blank_lines_and_a_missing_last_newline_change_nothing(tmp_path: Path) -> None:
    plain = load(r2med_folder(tmp_path / "plain"))
    odd = r2med_folder(tmp_path / "odd")
    for path in odd.iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\n\n  \n").rstrip())
    assert load(odd).fingerprint == plain.fingerprint


def test_documents_of_fifty_thousand_characters_are_read_whole(tmp_path: Path) -> None:
    long = "κλινική " * 6250
    dataset = load(r2med_folder(tmp_path / "set", [*DOCUMENTS, {"id": "long", "text": long}]))
    row = dataset.corpus.row("long")
    assert row is not None
    assert len(long) == 50_000
    assert dataset.corpus.text(row) == long


def test_escaped_control_characters_are_kept(tmp_path: Path) -> None:
    odd = "a\x00b\x07c\x1bd\x7f\x85"
    dataset = load(r2med_folder(tmp_path / "set", [*DOCUMENTS, {"id": "\x01", "text": odd}]))
    assert dict(dataset.corpus)["\x01"] == odd


def test_of_queries_with_one_id_the_last_counts_with_a_notice(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set", queries=[*QUERIES, {"id": "0", "text": "another"}])
    dataset = load(folder)
    assert [(query.id, query.text) for query in dataset.queries] == [("0", "another"), ("1", "Why is she pale?")]
    facts = [f"{folder}/query.jsonl", "1 repeated", "1 ids", "last", "'0'", "line 1", "query.jsonl:3"]
    each_states(dataset.notices, facts)


@pytest.mark.parametrize(
    "grade", ["9" * 5000, "-" + "9" * 5000, "9223372036854775808", "2147483649", "-2147483649", "00009999999999999"]
)
def test_a_grade_out_of_range_is_one_line(tmp_path: Path, grade: str) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text(f"q1\td1\t{grade}\n")
    with error_states("qrels.tsv:1", f"grade '{grade[:40]}'", "out of range") as error:
        read_qrels(path)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("score", ["9" * 5000, "9" * 4000, "9223372036854775808", "1e300", "-1e300", "NaN", "1e999"])
def test_a_score_out_of_range_is_one_line(tmp_path: Path, score: str) -> None:
    folder = r2med_folder(tmp_path / "set")
    (folder / "qrels.jsonl").write_text(f'{{"q_id": "0", "p_id": "0", "score": {score}}}\n')
    with error_states("qrels.jsonl:1") as error:
        load(folder)
    assert "score" in str(error.value) or "JSON" in str(error.value)
    assert len(str(error.value)) < 300


def test_leading_zeros_change_no_grade(tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text("q1\td1\t" + "0" * 20 + "2\n")
    assert read_qrels(path) == {"q1": {"d1": 2}}


def test_what_is_printed_of_a_dataset_is_short(tmp_path: Path) -> None:
    dataset = load(r2med_folder(tmp_path / "set"))
    assert repr(dataset) == "Dataset(set: 2 queries, 3 documents, Qrels(2 queries, 2 positives))"
    assert repr(dataset.corpus) == "Corpus(3 documents)"


def test_a_dataset_without_queries_or_judgements_is_not_scored(tmp_path: Path) -> None:
    load(r2med_folder(tmp_path / "set")).require_scorable()
    with error_states("a", "no queries", "scored"):
        load(r2med_folder(tmp_path / "a", queries=[], qrels=[])).require_scorable()
    with error_states("b", "no judgements", "scored"):
        load(r2med_folder(tmp_path / "b", qrels=[])).require_scorable()


def test_a_dataset_without_a_card_has_the_instruction_of_any(tmp_path: Path) -> None:
    assert load(r2med_folder(tmp_path / "set")).instruction == ANY_DATASET
    assert load("demo/Biology").instruction.kind == "Biology post"


def test_repeated_identical_queries_are_merged_with_a_notice(tmp_path: Path) -> None:
    dataset = load(r2med_folder(tmp_path / "set", queries=[*QUERIES, QUERIES[0]]))
    assert [query.id for query in dataset.queries] == ["0", "1"]
    some_states(dataset.notices, "query.jsonl", "1 repeated")


def test_a_folder_of_folders_means_the_datasets_in_it_in_the_order_of_the_benchmark(tmp_path: Path) -> None:
    for name in ("Own", "PMC-Clinical", "Biology"):
        r2med_folder(tmp_path / "all" / name)
    (tmp_path / "all" / "notes").mkdir()
    expected = [str(tmp_path / "all" / name) for name in ("Biology", "PMC-Clinical", "Own")]
    assert names(tmp_path / "all") == expected
    assert names(expected[0]) == expected[:1]


def test_a_folder_called_as_a_dataset_gets_its_card(tmp_path: Path) -> None:
    card = load(r2med_folder(tmp_path / "Biology")).card
    assert card is not None
    assert card.name == "Biology"


def test_a_path_is_read_although_a_dataset_bears_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r2med_folder(tmp_path / "Biology")
    monkeypatch.chdir(tmp_path)
    assert len(load(Path("Biology")).corpus) == 3
    assert len(load("./Biology").corpus) == 3


# What cannot be a dataset is one line.


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("../x", ["'../x'", "no dataset"]),
        ("demo/../x", ["'demo/../x'", "no dataset"]),
        ("Biologie", ["'Biologie'", "Biology?"]),
        ("demo/biology", ["'demo/biology'", "demo/Biology?"]),
        ("medqa-diag", ["'medqa-diag'", "MedQA-Diag?"]),
        ("", ["dataset folder"]),
        ("x" * 5000, ["no dataset"]),
        ("~nobody-of-this-name/x", ["no dataset"]),
        ("\0", ["no dataset"]),
        ("\ud800", ["no dataset"]),
        ("R2MED", ["R2MED", "8 datasets", "Biology"]),
        ("demo", ["demo", "8 datasets", "demo/Biology"]),
    ],
    ids=lambda value: ascii(value[:30]),
)
def test_an_unknown_name_gives_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, facts: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with error_states(*facts):
        load(name)
    assert names(name) == list(groups().get(name, [name]))


def test_a_path_above_the_current_folder_is_read_if_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r2med_folder(tmp_path / "x")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert load("../x").name == "x"


def test_a_file_is_no_dataset(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "corpus.jsonl", DOCUMENTS)
    with error_states("corpus.jsonl", "folder"):
        load(path)


def test_a_folder_without_a_corpus_is_told_what_it_needs(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "set" / "documents.jsonl", DOCUMENTS)
    with error_states("dataset folder", "query.jsonl", "corpus.jsonl", "qrels.jsonl"):
        load(tmp_path / "set")


@pytest.mark.parametrize(
    ("builder", "gone", "kept"),
    [
        (r2med_folder, ["corpus.jsonl"], "qrels.jsonl"),
        (beir_folder, ["corpus.jsonl", "qrels/test.tsv"], "queries.jsonl"),
        (beir_folder, ["qrels/test.tsv"], "corpus.jsonl"),
    ],
)
def test_every_missing_file_is_named(tmp_path: Path, builder, gone: list[str], kept: str) -> None:
    folder = builder(tmp_path / "set")
    for name in gone:
        (folder / name).unlink()
    with error_states(*gone, "missing") as error:
        load(folder)
    assert kept not in str(error.value)


def test_a_load_names_the_first_problem_and_how_to_see_the_others(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set", documents=[{"id": 1, "text": "a"}, {"id": 2, "text": "b"}])
    with error_states(f"{folder}/corpus.jsonl:1", "'id'", "number 1", "1 more", f"r2med data check {folder}"):
        load(folder)


def test_a_table_is_refused_with_the_command_that_imports_it(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("id,text\n1,Iron is low.\n")
    with error_states("notes.csv", "r2med data import", "--out notes"):
        load(tmp_path / "notes.csv")


@pytest.mark.parametrize(
    "name, command", [("Biology.zip", "unzip"), ("Biology.tar.gz", "tar -xf"), ("x.TGZ", "tar -xf")]
)
def test_an_archive_is_refused_with_the_command_that_unpacks_it(tmp_path: Path, name: str, command: str) -> None:
    archive = tmp_path / name
    archive.write_bytes(b"PK")
    for source in (archive, tmp_path):
        with error_states(archive, "archive", command):
            load(source)

"""A clone of a hub repository reads as the folder does, as Parquet or JSON Lines, with or without a card."""

from pathlib import Path

import pytest

from r2med.data import load
from r2med.data.check import check
from r2med.data.layouts.hub_listing import config_files
from support.datasets import DOCUMENTS, GRADES, QRELS, QUERIES, hub_files, r2med_folder, write_jsonl, write_parquet
from support.facts import each_states, error_states, states

README = """---
license: cc-by-4.0
configs:
- config_name: corpus
  data_files:
  - split: corpus
    path: corpus/corpus-*
- config_name: query
  data_files:
  - split: query
    path: query/query-*
- config_name: qrels
  data_files:
  - split: qrels
    path: qrels/qrels-*
- config_name: hyde
  data_files:
  - split: gpt4
    path: hyde/gpt4-*
  - split: qwen_7b
    path: hyde/qwen_7b-*
---
# A dataset
"""


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
@pytest.mark.parametrize(
    "readme",
    [None, "# Prose only\n", README, "---\nlicense: [unclosed\n---\n", "---\nconfigs: 3\n---\n"],
    ids=["no card", "prose", "configs", "broken YAML", "odd configs"],
)
def test_a_clone_equals_the_folder_it_was_made_from(tmp_path: Path, suffix: str, readme: str | None) -> None:
    clone = hub_files(tmp_path / "clone", suffix)
    if readme is not None:
        (clone / "README.md").write_text(readme)
    dataset = load(clone)
    assert dataset.fingerprint == load(r2med_folder(tmp_path / "folder")).fingerprint
    assert dataset.qrels == GRADES


def test_the_card_decides_which_files_make_up_a_config(tmp_path: Path) -> None:
    clone = hub_files(tmp_path / "clone")
    (clone / "corpus" / "corpus-00000-of-00001.parquet").rename(clone / "unusual.parquet")
    write_parquet(clone / "corpus" / "corpus-old.parquet", [{"id": "stale", "text": "of an older version"}])
    card = "---\nconfigs:\n- config_name: corpus\n  data_files:\n  - split: corpus\n    path: unusual.parquet\n---\n"
    (clone / "README.md").write_text(card)
    assert [identifier for identifier, _ in load(clone).corpus] == [row["id"] for row in DOCUMENTS]


@pytest.mark.parametrize(
    "data_files",
    ['"part-*.jsonl"', "[part-b.jsonl, part-a.jsonl]", "[{split: corpus, path: [part-b.jsonl, part-a.jsonl]}]"],
)
def test_every_file_the_card_lists_is_read(tmp_path: Path, data_files: str) -> None:
    clone = hub_files(tmp_path / "clone")
    write_jsonl(clone / "part-a.jsonl", DOCUMENTS[:1])
    write_jsonl(clone / "part-b.jsonl", DOCUMENTS[1:])
    (clone / "README.md").write_text(f"---\nconfigs:\n- config_name: corpus\n  data_files: {data_files}\n---\n")
    assert dict(load(clone).corpus) == {row["id"]: row["text"] for row in DOCUMENTS}
    assert {path.name for path in config_files(clone, "corpus")} == {"part-a.jsonl", "part-b.jsonl"}


@pytest.mark.parametrize(
    "data_files",
    ["3", "[3, [4], null]", "{split: corpus}", "[{path: 3, split: corpus}]", "[{path: {a: b}, split: corpus}]", '"a**"',
     '"**/../x"', '"//x"', '"\\0"', '"' + "x" * 5000 + '"', '""', "null", "true", "[{split: [corpus], path: x}]"],
)  # fmt: skip
def test_odd_lists_of_files_in_a_card_are_prose(tmp_path: Path, data_files: str) -> None:
    clone = hub_files(tmp_path / "clone")
    (clone / "README.md").write_text(f"---\nconfigs:\n- config_name: corpus\n  data_files: {data_files}\n---\n")
    assert config_files(clone, "corpus") == [clone / "corpus" / "corpus-00000-of-00001.parquet"]


def test_ids_that_repeat_across_shards_are_told_by_file(tmp_path: Path) -> None:
    clone = in_shards(tmp_path / "clone", DOCUMENTS, [{"id": "0", "text": "another text"}])
    (notice,) = load(clone).notices
    states(notice, "'0'", "corpus-00000-of-00002.parquet:1", "corpus-00001-of-00002.parquet:1")


def test_a_card_cannot_name_files_outside_its_repository(tmp_path: Path) -> None:
    clone = hub_files(tmp_path / "clone")
    secret = write_jsonl(tmp_path / "secret.jsonl", DOCUMENTS)
    for path in ("../secret.jsonl", str(secret)):
        (clone / "README.md").write_text(
            f"---\nconfigs:\n- config_name: corpus\n  data_files: {path}\n---\n", encoding="utf-8"
        )
        assert config_files(clone, "corpus") == [clone / "corpus" / "corpus-00000-of-00001.parquet"]


def test_splits_of_a_config_are_told_apart(tmp_path: Path) -> None:
    clone = hub_files(tmp_path / "clone")
    for llm in ("gpt4", "qwen_7b"):
        write_parquet(clone / "hyde" / f"{llm}-00000-of-00001.parquet", [{"id": "0", "hy_doc": llm}])
    for readme in ("", README):
        (clone / "README.md").write_text(readme)
        assert [path.name for path in config_files(clone, "hyde", "gpt4")] == ["gpt4-00000-of-00001.parquet"]


@pytest.mark.parametrize("data", [True, False], ids=["under data/", "at the top"])
def test_files_may_lie_flat(tmp_path: Path, data: bool) -> None:
    clone = tmp_path / "clone" / "data" if data else tmp_path / "clone"
    for config, rows in (("corpus", DOCUMENTS), ("query", QUERIES), ("qrels", QRELS)):
        write_parquet(clone / f"{config}-00000-of-00001.parquet", rows)
    assert load(tmp_path / "clone").qrels == GRADES


def test_a_corpus_in_shards_is_read_in_order(tmp_path: Path) -> None:
    clone = in_shards(tmp_path / "clone", DOCUMENTS[:2], DOCUMENTS[2:])
    assert [identifier for identifier, _ in load(clone).corpus] == ["0", "d-ü", "d2"]


def test_a_missing_shard_is_noticed(tmp_path: Path) -> None:
    clone = in_shards(tmp_path / "clone", DOCUMENTS[:2], DOCUMENTS[2:])
    (clone / "corpus" / "corpus-00001-of-00002.parquet").unlink()
    with error_states("1 of 2", "config 'corpus'", "split 'corpus'", "download"):
        load(clone)


def test_problems_name_the_shard_they_are_in(tmp_path: Path) -> None:
    clone = in_shards(tmp_path / "clone", DOCUMENTS, [{"id": "e", "text": " "}, {"id": "", "text": "x"}])
    write_parquet(clone / "qrels" / "qrels-00000-of-00002.parquet", QRELS)
    write_parquet(clone / "qrels" / "qrels-00001-of-00002.parquet", [{"q_id": "9", "p_id": "0", "score": 1}])
    (clone / "qrels" / "qrels-00000-of-00001.parquet").unlink()
    found = check(clone)
    second = clone / "corpus" / "corpus-00001-of-00002.parquet"
    each_states(
        (*found.problems, *found.flaws),
        [f"{second}:2", "empty id"],
        [f"{second}:1", "'e'", "empty text"],
        [f"{clone}/qrels/qrels-00001-of-00002.parquet:1", "query '9'"],
    )


def test_wrong_types_in_parquet_are_reported_by_row(tmp_path: Path) -> None:
    clone = hub_files(tmp_path / "clone")
    write_parquet(clone / "corpus" / "corpus-00000-of-00001.parquet", [{"id": 7.5, "text": "a"}])
    write_parquet(
        clone / "query" / "query-00000-of-00001.parquet", [*QUERIES, {"id": None, "text": "x"}, {"id": "3", "text": ""}]
    )
    each_states(
        check(clone).problems,
        [f"{clone}/query/query-00000-of-00001.parquet:3", "'id'", "string", "null"],
        [f"{clone}/corpus/corpus-00000-of-00001.parquet:1", "'id'", "string", "number 7.5"],
    )


def test_a_missing_column_is_reported(tmp_path: Path) -> None:
    clone = hub_files(tmp_path / "clone")
    write_parquet(clone / "qrels" / "qrels-00000-of-00001.parquet", [{"q_id": "0", "p_id": "0"}])
    with error_states("qrels-00000-of-00001.parquet", "q_id, p_id", "score"):
        check(clone)


def test_a_query_without_judgements_and_aspects_beside_a_clone_are_read(tmp_path: Path) -> None:
    clone = hub_files(tmp_path / "clone")
    more = [{"needs_inference": "yes", **row} for row in (*QUERIES, {"id": "2", "text": "Unjudged?"})]
    write_parquet(clone / "query" / "query-00000-of-00001.parquet", more)
    write_jsonl(clone / "aspects.jsonl", [{"query": "0", "aspect": "cause", "documents": ["0"]}])
    dataset = load(clone)
    assert [query.id for query in dataset.queries] == ["0", "1", "2"]
    assert list(dataset.aspects) == ["0"]


def test_a_pointer_in_place_of_a_large_file_is_reported(tmp_path: Path) -> None:
    clone = hub_files(tmp_path / "clone")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (clone / "corpus" / "corpus-00000-of-00001.parquet").write_text(pointer)
    with error_states("corpus-00000-of-00001.parquet", "Parquet"):
        load(clone)


def test_an_unfinished_clone_is_one_line(tmp_path: Path) -> None:
    clone = hub_files(tmp_path / "clone")
    (clone / "corpus" / "corpus-00000-of-00001.parquet").unlink()
    with error_states("no files", "config 'corpus'", "split 'corpus'", "download"):
        load(clone)


def in_shards(clone: Path, *shards) -> Path:
    hub_files(clone)
    (clone / "corpus" / "corpus-00000-of-00001.parquet").unlink()
    for number, rows in enumerate(shards):
        write_parquet(clone / "corpus" / f"corpus-{number:05}-of-{len(shards):05}.parquet", rows)
    return clone

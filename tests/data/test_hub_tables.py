"""Datasets of the hub by `hub:ORG/NAME`: every known layout in the hub's own form, fetched once, read offline."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from r2med.data import Dataset, Query, load
from r2med.data.check import check
from r2med.data.dataset import QueryAspect
from r2med.data.dataset_word import DatasetWord, parse_hub_word
from r2med.data.layouts.hub_listing import tables
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from support.datasets import Row, hub_files, write_jsonl, write_parquet
from support.facts import error_states, some_states, states
from support.hub import Hub, reachable, serve

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NOBODY = "http://127.0.0.1:9"

ODD = "econ/Why don't we 'tax' it.txt"
"""An id with a slash, quotes and blanks, as in BRIGHT."""

DOCUMENTS = [{"_id": "d1", "title": "Anaemia", "text": "has causes."}, {"_id": ODD, "title": "", "text": "Iron."}]
QUERIES = [{"_id": "q1", "text": "Why pale?"}, {"_id": "q2", "text": "Of another split?"}]
QRELS = [{"query-id": "q1", "corpus-id": ODD, "score": 2}, {"query-id": "q1", "corpus-id": "d1", "score": 0}]
GRADES = {"q1": {ODD: 2, "d1": 0}}


@pytest.fixture
def fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> Callable[[str, Path], Dataset]:
    """Return a function that loads a word from a hub on loopback that serves a folder."""

    def load_from(word: str, root: Path) -> Dataset:
        hub = parse_hub_word(word) if word.startswith("hub:") else None
        assert hub is not None
        with online(root, hub.repository, tmp_path / "cache", monkeypatch):
            return load(word, store)

    return load_from


@contextmanager
def online(root: Path, repository: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve(root, repository, COMMIT) as hub, reachable(hub, cache, monkeypatch):
        yield hub


@contextmanager
def out_of_reach(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with reachable(Hub("", "", {}, address=NOBODY), cache, monkeypatch):
        yield


def readme(root: Path, configs: Mapping[str, Mapping[str, str]], licence: str = "cc-by-4.0") -> None:
    lines = [f"---\nlicense: {licence}\nconfigs:"]
    for config, files in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        for split, path in files.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    (root / "README.md").write_text("\n".join([*lines, "---", "# A dataset"]))


def mteb(root: Path, write: Callable[[Path, Sequence[Row]], Path] = write_jsonl) -> Path:
    """Write mteb/nfcorpus's form: configs default, corpus and queries, the qrels in a split each."""
    write(root / "corpus.jsonl", DOCUMENTS)
    write(root / "queries.jsonl", QUERIES)
    write(root / "qrels" / "test.jsonl", QRELS)
    write(root / "qrels" / "train.jsonl", [{"query-id": "q2", "corpus-id": "d1", "score": 1}])
    default = {"train": "qrels/train.jsonl", "test": "qrels/test.jsonl"}
    readme(root, {"default": default, "corpus": {"corpus": "corpus.jsonl"}, "queries": {"queries": "queries.jsonl"}})
    return root


def test_a_word_names_repository_revision_config_and_split() -> None:
    full = parse_hub_word(f"hub:clinia/CUREv1@{COMMIT}/en:all")
    assert (full.repository, full.revision, full.config, full.split) == ("clinia/CUREv1", COMMIT, "en", "all")
    plain = parse_hub_word("hub:mteb/trec-covid")
    assert (plain.repository, plain.revision, plain.config, plain.split) == ("mteb/trec-covid", "", "", "")
    assert (
        DatasetWord.parse("hub:a/b@main/en:dev").name == DatasetWord.parse("hub:a/b/en:dev").record_name == "a/b/en/dev"
    )
    assert DatasetWord.parse("hub:R2MED/Biology").name == "Biology"
    for word in ("hub:", "hub:scifact", "hub:a/b@", "hub:a/b:", "hub:a b/c", "hub:../x/y@", "hub:a/b/"):
        with error_states(word, "hub:ORG/NAME"):
            parse_hub_word(word)


def test_mtebs_configs_are_read_and_one_line_says_what_was_taken_for_what(fetch, tmp_path: Path) -> None:
    dataset = fetch("hub:mteb/small", mteb(tmp_path / "repository"))
    assert dataset.qrels == GRADES
    assert dataset.queries == (Query("q1", "Why pale?"),)
    assert dict(dataset.corpus) == {"d1": "Anaemia has causes.", ODD: "Iron."}
    assert (dataset.name, dataset.source) == ("mteb/small", f"mteb/small@{COMMIT}")
    assert dataset.card is not None
    assert dataset.card.licence == "cc-by-4.0"
    documents, queries = "corpus (_id, text, title)", "queries (_id, text)"
    judgements = "default, split test (query-id, corpus-id, score)"
    states(dataset.notices[0], "mteb/small@0123456", documents, queries, judgements)


def test_only_the_files_of_the_split_are_fetched_once_and_then_no_network_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    cache = tmp_path / "cache"
    with online(mteb(tmp_path / "repository"), "mteb/small", cache, monkeypatch) as hub:
        first = load("hub:mteb/small:train", store)
        assert "qrels/test.jsonl" not in hub.sent
        assert len(hub.sent) == 4
    with out_of_reach(cache, monkeypatch):
        assert load("hub:mteb/small:train", store).fingerprint == first.fingerprint
        assert check("hub:mteb/small:train", store).problems == []
        with error_states("mteb/other", "hub"):
            load("hub:mteb/other", store)
        with pytest.raises(UserError, match="mteb/small"):
            load("hub:mteb/small:test", store)
    with online(mteb(tmp_path / "repository"), "mteb/small", tmp_path / "emptied", monkeypatch) as hub:
        assert load("hub:mteb/small:train", store).fingerprint == first.fingerprint
        assert len(hub.sent) == 4


def test_the_revision_is_looked_up_once_and_a_branch_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    root, later = mteb(tmp_path / "repository"), "f" * 40
    with online(root, "mteb/small", tmp_path / "cache", monkeypatch):
        load("hub:mteb/small", store)
    with serve(root, "mteb/small", later) as hub, reachable(hub, tmp_path / "cache", monkeypatch):
        assert load("hub:mteb/small", store).source == f"mteb/small@{COMMIT}"
        assert load("hub:mteb/small@main", store).source == f"mteb/small@{later}"
    with out_of_reach(tmp_path / "cache", monkeypatch):
        assert load("hub:mteb/small@main", store).source == f"mteb/small@{later}"
        assert load(f"hub:mteb/small@{later}", store).source == f"mteb/small@{later}"


def test_a_cache_given_by_hand_is_read_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    repository = tmp_path / "cache" / "datasets--mteb--small"
    mteb(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    with out_of_reach(tmp_path / "cache", monkeypatch):
        dataset = load("hub:mteb/small", store)
    assert (dataset.qrels, dataset.source) == (GRADES, f"mteb/small@{COMMIT}")


def test_parquet_files_with_the_judgements_under_data_are_read(fetch, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write_parquet(root / "corpus" / "corpus-00000-of-00002.parquet", DOCUMENTS[:1])
    write_parquet(root / "corpus" / "corpus-00001-of-00002.parquet", DOCUMENTS[1:])
    write_parquet(root / "queries" / "queries-00000-of-00001.parquet", QUERIES)
    write_parquet(root / "data" / "test-00000-of-00001.parquet", QRELS)
    dataset = fetch("hub:mteb/small", root)
    assert (dataset.qrels, len(dataset.corpus)) == (GRADES, 2)


def test_all_tables_may_have_one_split_of_any_name_and_ids_may_be_numbers(fetch, tmp_path: Path) -> None:
    root = tmp_path / "repository"  # as in mteb/NanoNFCorpusRetrieval
    write_parquet(root / "corpus" / "train-00000-of-00001.parquet", [{"_id": 7, "title": "", "text": "Iron."}])
    write_parquet(root / "queries" / "train-00000-of-00001.parquet", [{"_id": 3, "text": "Pale?"}])
    write_parquet(root / "qrels" / "train-00000-of-00001.parquet", [{"query-id": 3, "corpus-id": 7, "score": 1.0}])
    assert fetch("hub:mteb/Nano:train", root).qrels == {"3": {"7": 1}}


def test_splits_may_be_datasets_as_in_nanor2med(fetch, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    for split in ("NanoR2MEDBiology", "NanoR2MEDMedQADiag"):
        file = f"{split}-00000-of-00001.parquet"
        write_parquet(root / "corpus" / file, [{"_id": "d1", "text": split}])
        write_parquet(root / "queries" / file, QUERIES[:1])
        write_parquet(root / "qrels" / file, [{"query-id": "q1", "corpus-id": "d1", "score": 1}])
        write_parquet(root / "bm25" / file, [{"query-id": "q1", "corpus-ids": ["d1"]}])
    assert dict(fetch("hub:hakari-bench/Nano:NanoR2MEDMedQADiag", root).corpus) == {"d1": "NanoR2MEDMedQADiag"}
    with error_states("hub:hakari-bench/Nano:NanoR2MEDBiology"):
        fetch("hub:hakari-bench/Nano", root)
    with error_states("'NanoR2MEDBiolgy'", "NanoR2MEDBiology?"):
        fetch("hub:hakari-bench/Nano:NanoR2MEDBiolgy", root)


def cure(root: Path) -> Path:
    """Write CUREv1's form: a folder for each discipline, queries in three languages."""
    write_jsonl(root / "all" / "corpus.jsonl", DOCUMENTS)
    write_jsonl(root / "all" / "qrels.jsonl", QRELS)
    write_jsonl(root / "dentistry" / "corpus.jsonl", DOCUMENTS[1:])
    write_jsonl(root / "dentistry" / "qrels.jsonl", QRELS[:1])
    for language, text in (("en", "Why pale?"), ("es", "¿Por qué pálida?"), ("fr", "Pourquoi pâle ?")):
        for discipline in ("all", "dentistry"):
            write_jsonl(root / discipline / f"queries-{language}.jsonl", [{"_id": "q1", "text": text}])
    return root


@pytest.mark.parametrize("with_card", [True, False])
def test_a_config_may_be_a_language_of_the_queries(fetch, tmp_path: Path, with_card: bool) -> None:
    root = cure(tmp_path / "repository")
    configs = ("corpus", "queries-en", "queries-es", "queries-fr", "qrels")
    if with_card:
        readme(root, {name: {each: f"{each}/{name}.jsonl" for each in ("all", "dentistry")} for name in configs})
    dataset = fetch("hub:clinia/Small/es:all", root)
    assert (dataset.queries[0].text, dataset.qrels, len(dataset.corpus)) == ("¿Por qué pálida?", GRADES, 2)
    assert len(fetch("hub:clinia/Small/fr:dentistry", root).corpus) == 1
    with error_states("'de'", "en, es, fr"):
        fetch("hub:clinia/Small/de:all", root)


def test_an_mteb_set_of_several_languages_is_read_by_its_prefix(fetch, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    for language, text in (("de", "Eisen."), ("fr", "Fer.")):
        file = "test-00000-of-00001.parquet"
        write_parquet(root / f"{language}-corpus" / file, [{"_id": "d1", "text": text}])
        write_parquet(root / f"{language}-queries" / file, QUERIES[:1])
        write_parquet(root / f"{language}-qrels" / file, [{"query-id": "q1", "corpus-id": "d1", "score": 1}])
    assert dict(fetch("hub:mteb/Several/fr", root).corpus) == {"d1": "Fer."}


def bright(root: Path, **columns: Any) -> Path:
    """Write BRIGHT's form: configs documents, long_documents, examples and rewritten queries, splits as domains."""
    file = "economics-00000-of-00001.parquet"
    write_parquet(root / "documents" / file, [{"id": name, "content": f"About {name}."} for name in (ODD, "x", "y")])
    write_parquet(root / "documents" / "biology-00000-of-00001.parquet", [{"id": "b", "content": "Cells."}])
    write_parquet(root / "long_documents" / file, [{"id": "long", "content": "A" * 300}])
    row = {"id": "0", "query": "Tax?", "reasoning": "r", "gold_answer": "Yes", "gold_ids": [ODD]}
    row |= {"gold_ids_long": ["long"], "excluded_ids": ["x"]}
    none = {**row, "id": "1", "query": "Rent?", "excluded_ids": ["N/A"]}
    write_parquet(root / "examples" / file, [row, none])
    write_parquet(root / "gpt4_reason" / file, [{**row, "query": "Let us think about tax."}])
    return root


def test_brights_tables_are_read_with_what_is_excluded(fetch, tmp_path: Path) -> None:
    dataset = fetch("hub:xlangai/Small:economics", bright(tmp_path / "repository"))
    assert dataset.queries == (Query("0", "Tax?", "Yes", excluded=("x",)), Query("1", "Rent?", "Yes"))
    assert dataset.qrels == {"0": {ODD: 1}, "1": {ODD: 1}}
    assert dict(dataset.corpus)[ODD] == f"About {ODD}."
    states(dataset.notices[0], "examples", "economics", "gold_ids")


@pytest.mark.parametrize("form", [list, lambda texts: dict(zip("ABCDE", texts, strict=False))])
def test_options_of_a_multiple_choice_question_are_a_column(fetch, tmp_path: Path, form: Callable[..., Any]) -> None:
    root, file = tmp_path / "repository", "test-00000-of-00001.parquet"
    rows = [
        {"_id": "q1", "text": "Which?", "answer": "gout", "options": form(["flu", "gout", "mumps", None])},
        {"_id": "q2", "text": "Which one?", "answer": "B", "options": form(["flu", "gout", None, None])},
    ]
    write_parquet(root / "corpus" / file, DOCUMENTS)
    write_parquet(root / "queries" / file, rows)
    write_parquet(root / "qrels" / file, [{"query-id": row["_id"], "corpus-id": "d1", "score": 1} for row in rows])
    dataset = fetch("hub:some/exam", root)
    assert [query.options for query in dataset.queries] == [("flu", "gout", "mumps"), ()]
    states(dataset.notices[0], "queries", "test", "_id", "options")


def test_brights_long_documents_and_rewritten_queries_are_configs(fetch, tmp_path: Path) -> None:
    root = bright(tmp_path / "repository")
    long = fetch("hub:xlangai/Small/long_documents:economics", root)
    assert (long.qrels["0"], len(long.corpus)) == ({"long": 1}, 1)
    reasoned = fetch("hub:xlangai/Small/gpt4_reason:economics", root)
    assert (reasoned.queries[0].text, len(reasoned.corpus)) == ("Let us think about tax.", 3)
    with error_states("config 'documents'", "biology, economics"):
        fetch("hub:xlangai/Small", root)


@pytest.mark.parametrize("with_gold_ids", [True, False])
def test_bright_pros_aspects_have_weights_and_documents(fetch, tmp_path: Path, with_gold_ids: bool) -> None:
    root, file = tmp_path / "repository", "biology-00000-of-00001.parquet"
    write_parquet(root / "documents" / file, [{"id": name, "content": name} for name in ("a", "b", "c")])
    gold = {"gold_ids": ["a", "b", "c"]} if with_gold_ids else {}
    write_parquet(root / "examples" / file, [{"id": "bio-1", "query": "Why?", **gold}])
    aspects = [
        {"id": "bio-1-a1", "weight": 3, "supporting_docs": ["a", "b"]},
        {"id": "bio-1-aspect-2", "weight": 1, "supporting_docs": ["c"]},
    ]
    write_parquet(root / "aspects" / file, aspects)
    dataset = fetch("hub:yale-nlp/Small:biology", root)
    expected = {"bio-1-a1": QueryAspect(3.0, ("a", "b")), "bio-1-aspect-2": QueryAspect(1.0, ("c",))}
    assert dataset.aspects == {"bio-1": expected}
    assert dataset.qrels == {"bio-1": {"a": 1, "b": 1, "c": 1}}
    assert dataset.only(["none"]).aspects == {}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_pairs_of_questions_and_answers_become_queries_and_documents(fetch, tmp_path: Path, suffix: str) -> None:
    root = tmp_path / "repository"  # as in xhluca/publichealth-qa
    rows = [{"question": "What is it?", "answer": "A virus, perhaps."}, {"question": "How long?", "answer": "A week."}]
    for language in ("english", "french"):
        if suffix == "parquet":
            empty = {"question": None, "answer": None}
            write_parquet(root / language / "test-00000-of-00001.parquet", [rows[0], empty, rows[1]])
        else:
            lines = ["question,answer", *(f'{row["question"]},"{row["answer"]}"' for row in rows)]
            (root / language).mkdir(parents=True)
            (root / language / "test.csv").write_text("\n".join(lines) + "\n")
    dataset = fetch("hub:xhluca/small/english:test", root)
    assert [query.text for query in dataset.queries] == ["What is it?", "How long?"]
    assert dict(dataset.corpus) == {"d0": "A virus, perhaps.", "d1": "A week."}
    assert dataset.qrels == {"q0": {"d0": 1}, "q1": {"d1": 1}}
    if suffix == "parquet":
        some_states(dataset.notices, "1 pairs", "left out")
    with error_states("hub:xhluca/small/english", "english, french"):
        fetch("hub:xhluca/small", root)


def test_r2meds_own_layout_is_known_too(fetch, tmp_path: Path) -> None:
    assert fetch("hub:someone/Like-R2MED", hub_files(tmp_path / "repository")).qrels["0"]["0"] == 2


def test_unknown_columns_are_one_line_with_the_command_that_asks_for_them(fetch, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write_parquet(root / "data" / "train-00000-of-00001.parquet", [{"note_no": "n1", "note": "A cough."}])
    with error_states("train-00000-of-00001.parquet", "note_no, note", "question", "r2med data import", "--out"):
        fetch("hub:someone/notes", root)


def test_a_repository_without_tables_is_one_line(fetch, tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "weights.bin").write_bytes(b"0")
    with error_states("someone/x", "no tables", ".parquet"):
        fetch("hub:someone/x", tmp_path / "repository")


def test_a_missing_shard_is_noticed(fetch, tmp_path: Path) -> None:
    root = mteb(tmp_path / "repository")
    (root / "corpus.jsonl").unlink()
    (root / "README.md").unlink()
    write_parquet(root / "corpus" / "corpus-00000-of-00002.parquet", DOCUMENTS)
    with error_states("1 of 2", "config 'corpus'", "split 'corpus'", "download"):
        fetch("hub:mteb/small", root)


@pytest.mark.parametrize("configs", [[3], [{"config_name": 3, "data_files": "x"}], [{"config_name": "a"}], [{}]])
def test_odd_configs_of_a_repository_card_are_ignored(configs) -> None:
    assert tables(["corpus.jsonl"], [each for each in configs if isinstance(each, dict)]) == {
        "corpus": {"corpus": ("corpus.jsonl",)}
    }

"""Cards of other benchmarks: what they name is found in the hub's own form, and read as the benchmark's code does."""

from pathlib import Path

import pytest

import r2med
from data.test_hub_tables import ODD, bright, cure, online
from r2med.data import load
from r2med.data.dataset_cards import cards
from r2med.evaluation.records.collection import checked
from r2med.evaluation.records.local_datasets import local_datasets
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.store import Store
from support.datasets import r2med_folder, write_jsonl
from support.facts import error_states, some_states
from support.hub import reachable, serve


def test_a_card_of_bright_is_read_at_its_revision_and_a_word_means_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    revision = cards()["BRIGHT-economics"].hub.revision  # type: ignore[union-attr]
    root = bright(tmp_path / "repository")
    with serve(root, "xlangai/BRIGHT", revision) as hub, reachable(hub, tmp_path / "cache", monkeypatch):
        dataset = load("BRIGHT-economics", store)
        again = load("hub:xlangai/BRIGHT:economics", store)
        long = load("BRIGHT-long-economics", store)
    assert (dataset.name, dataset.source) == ("BRIGHT-economics", f"xlangai/BRIGHT@{revision}")
    assert dataset.instruction.kind == "Economics post"
    assert (again.name, again.fingerprint, again.source) == (dataset.name, dataset.fingerprint, dataset.source)
    assert long.qrels["0"] == {"long": 1}


def test_excluded_documents_are_dropped_before_the_first_k_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    with online(bright(tmp_path / "repository"), "xlangai/Small", tmp_path / "cache", monkeypatch):
        dataset = load("hub:xlangai/Small:economics", store)
    # "x" is excluded for query 0 only, and k is as large as what is left.
    dataset = r2med.Dataset.of(
        [r2med.Query("0", "about x", excluded=("x",)), r2med.Query("1", "about x")], dataset.corpus, dataset.qrels
    )
    for system in ("bm25", "bm25 + bm25(scorer=lucene)", "rm3 → bm25"):
        run = r2med.run(system, data=dataset, k=2, out=tmp_path / system[:4]).records[0]
        path = next((tmp_path / system[:4]).rglob("*.trec.gz"))
        found = r2med.Run.read(path, encoded=True)
        assert run.dataset.queries == 2
        assert "x" not in dict(found.top("0", 5))
        assert len(found.top("0", 5)) == 2
        assert "x" in dict(found.top("1", 5))


def test_documents_are_cut_where_the_card_says_and_the_cuts_are_counted(tmp_path: Path, store: Store) -> None:
    folder = r2med_folder(tmp_path / "set", [{"id": "0", "text": "x" * 30}, {"id": "d2", "text": "short"}])
    whole = load(folder, store)
    (folder / "card.toml").write_text("characters = 10\n")
    dataset = load(folder, store)
    assert dict(dataset.corpus) == {"0": "x" * 10, "d2": "short"}
    some_states(dataset.notices, "1 document", 10, "card")
    assert load(folder, store).notices == dataset.notices  # also when the corpus is in the store
    (folder / "card.toml").unlink()
    assert load(folder, store).fingerprint == whole.fingerprint != dataset.fingerprint


def test_a_card_may_name_corrected_judgements(tmp_path: Path, store: Store) -> None:
    folder = r2med_folder(tmp_path / "set")
    (tmp_path / "fixed.txt").write_text("0 0 d2 1\n")
    (folder / "card.toml").write_text('qrels = "../fixed.txt"\n')
    dataset = load(folder, store)
    assert dataset.qrels == {"0": {"d2": 1}}
    some_states(dataset.notices, "fixed.txt", "card of set")
    (folder / "card.toml").write_text('qrels = "../lost.txt"\n')
    with error_states("card of set", "qrels", "lost.txt"):
        load(folder, store)


def test_corrected_judgements_of_bright_are_a_card_of_your_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    folder = tmp_path / "plugin" / "datasets"
    folder.mkdir(parents=True)
    (folder / "BRIGHT-fixed.toml").write_text(
        'like = "BRIGHT-economics"\nqrels = "fixed.tsv"\n[hub]\nrepository = "xlangai/BRIGHT"\nsplit = "economics"\n'
    )
    (folder / "fixed.tsv").write_text(f"0\t{ODD}\t0\n0\ty\t1\n1\t{ODD}\t1\n")
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "plugin"))
    with online(bright(tmp_path / "repository"), "xlangai/BRIGHT", tmp_path / "cache", monkeypatch):
        dataset = load("BRIGHT-fixed", store)
    assert dataset.qrels == {"0": {ODD: 0, "y": 1}, "1": {ODD: 1}}
    assert dataset.queries[0].excluded == ("x",)


def test_the_three_languages_of_cure_search_one_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    revision = cards()["CUREv1-en"].hub.revision  # type: ignore[union-attr]
    root = cure(tmp_path / "repository")
    with serve(root, "clinia/CUREv1", revision) as hub, reachable(hub, tmp_path / "cache", monkeypatch):
        datasets = [load(f"CUREv1-{language}", store) for language in ("en", "es", "fr")]
    assert [each.queries[0].text for each in datasets] == ["Why pale?", "¿Por qué pálida?", "Pourquoi pâle ?"]
    assert len({each.corpus.fingerprint for each in datasets}) == 1


def test_pmc_patients_is_read_by_the_names_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    root = tmp_path / "repository"
    write_jsonl(root / "PPR" / "corpus.jsonl", [{"_id": "p-1", "title": "", "text": "A man."}])
    for split in ("train", "dev", "test"):
        write_jsonl(root / "queries" / f"{split}_queries.jsonl", [{"_id": f"q-{split}", "text": split}])
        (root / "PPR" / f"qrels_{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\nq-{split}\tp-1\t2\n")
    with online(root, "zhengyun21/PMC-Patients-ReCDS", tmp_path / "cache", monkeypatch) as hub:
        dataset = load("PMC-Patients", store)
        assert "PPR/qrels_train.tsv" not in hub.sent
    assert ([query.id for query in dataset.queries], dataset.qrels) == (["q-test"], {"q-test": {"p-1": 2}})


def test_a_dataset_that_must_be_fetched_by_hand_says_from_where_and_where_to_put_it(store: Store) -> None:
    with error_states("BioASQ", "bioasq.org", f"{store.root}/by-hand/BioASQ"):
        load("BioASQ", store)
    r2med_folder(store.root / "by-hand" / "BioASQ")
    assert load("BioASQ", store).name == "own/BioASQ"  # nobody can see where it came from


def test_a_board_never_fetches_a_dataset_of_a_card(tmp_path: Path) -> None:
    record = r2med.run("bm25", data="demo/Biology", out=tmp_path).records[0]
    facts = record.dataset.model_copy(
        update={"name": "BRIGHT-Pro-biology", "source": "yale-nlp/Bright-Pro@" + "0" * 40}
    )
    collection = checked([StoredRecord(record.model_copy(update={"dataset": facts}), tmp_path / "x.json")])
    assert local_datasets(collection, []) == {}

"""The corpus: made once, memory-mapped after, found by id, whatever the ids and texts are."""

import json
import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from r2med.data import Corpus, load
from r2med.data.check import check
from r2med.data.corpus import BATCH_ROWS
from r2med.data.layouts.detect import BeirFolder, R2medFolder
from r2med.data.layouts.hub_tables import HubTables
from r2med.data.problems import Problems
from support.datasets import DOCUMENTS, QRELS, QUERIES, beir_folder, hub_files, r2med_folder, write_jsonl
from support.facts import each_states, states
from support.processes import python

# Past the basic plane UTF-16 sorts differently from code points: U+FFFD is below U+10000 here.
ODD_IDS = ["b", "a", "B", "ä", "\ufffd", "\U00010000", "a b", "", "10", "9", "é", "e\u0301"]


def many(count: int) -> list[tuple[str, str]]:
    pairs = [(f"{number}-é", f"text {number} 漢") for number in range(count)]
    random.Random(7).shuffle(pairs)
    return pairs


def in_memory(pairs: list[tuple[str, str]], _: Path) -> Corpus:
    return Corpus.of(pairs)


def on_disk(pairs: list[tuple[str, str]], root: Path) -> Corpus:
    return load(r2med_folder(root / "set", [{"id": i, "text": t} for i, t in pairs])).corpus


@pytest.fixture(params=[in_memory, on_disk])
def make(request: pytest.FixtureRequest, tmp_path: Path):
    return lambda pairs: request.param(pairs, tmp_path)


@pytest.mark.parametrize("count", [1, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 3 * BATCH_ROWS + 5])
def test_rows_ids_and_texts_lead_back_to_each_other(make, count: int) -> None:
    pairs = many(count)
    corpus = make(pairs)
    ids, texts = [i for i, _ in pairs], [t for _, t in pairs]
    assert len(corpus) == count
    assert list(corpus) == pairs
    assert corpus.rows(ids).tolist() == list(range(count))
    assert corpus.ids(range(count)) == ids
    assert corpus.texts(range(count)) == texts
    for row in {0, count // 2, count - 1}:
        assert corpus.row(ids[row]) == row
        assert (corpus.id(row), corpus.text(row)) == pairs[row]


def test_many_rows_come_in_the_order_asked_for(make) -> None:
    pairs = many(3 * BATCH_ROWS)
    wanted = [2500, 3, 1024, 3, 1023]
    assert make(pairs).ids(wanted) == [pairs[row][0] for row in wanted]
    assert make(pairs).texts(np.array(wanted)) == [pairs[row][1] for row in wanted]
    assert make(pairs).ids([]) == []


def test_unknown_ids_have_no_row(make) -> None:
    corpus = make(many(3 * BATCH_ROWS))
    known = corpus.id(5)
    assert corpus.row("absent") is None
    for asked in (["absent", known, ""], ["absent", known, ""] * BATCH_ROWS):
        assert corpus.rows(asked).tolist() == [-1, 5, -1] * (len(asked) // 3)


def test_ids_are_ordered_by_code_point(make) -> None:
    pairs = [(identifier or "empty", "text") for identifier in ODD_IDS]
    corpus = make(pairs)
    ascending = np.argsort(corpus.id_ranks())
    assert corpus.ids(ascending) == sorted(i for i, _ in pairs)
    assert [corpus.row(i) for i, _ in pairs] == list(range(len(pairs)))


def test_batches_of_a_stretch_are_its_rows(make) -> None:
    pairs = many(3 * BATCH_ROWS)
    corpus = make(pairs)
    stretch = [(row, ids.to_pylist(), texts.to_pylist()) for row, ids, texts in corpus.batches(1000, 2100)]
    assert [row for row, _, _ in stretch] == [1000, 1024, 2048]
    found = [pair for _, ids, texts in stretch for pair in zip(ids, texts, strict=True)]
    assert found == pairs[1000:2100]


def test_stretches_hold_so_many_bytes_and_documents_at_most_and_one_document_at_least(make) -> None:
    corpus = make([(str(i), text) for i, text in enumerate(["abc", "é", "", "x" * 20, "d", "e", "f"])])
    assert list(corpus.stretches(5)) == [(0, 3), (3, 4), (4, 7)]
    assert list(corpus.stretches(5, 2)) == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7)]
    assert list(corpus.stretches(100, 2, start=3, stop=6)) == [(3, 5), (5, 6)]


def test_a_part_reads_as_the_whole_does_and_can_be_sent_to_another_process(make) -> None:
    pairs = many(3 * BATCH_ROWS)
    for start, stop in ((0, 10), (1000, 2100), (3000, 9999)):
        part = pickle.loads(pickle.dumps(make(pairs).part(start, stop)))  # noqa: S301 - as Ray sends it
        assert list(part) == pairs[start:stop]
        assert part.texts([0, len(part) - 1]) == [pairs[start:stop][0][1], pairs[start:stop][-1][1]]
        assert next(row for row, _, _ in part.batches()) == 0


def test_many_ids_are_found_as_few_are(make) -> None:
    pairs = many(3 * BATCH_ROWS)
    corpus = make(pairs)
    asked = [pairs[2000][0], "absent", pairs[7][0], pairs[2000][0], pairs[9][0]]
    assert corpus.rows(asked[:2]).tolist() == [2000, -1]  # by binary search
    assert corpus.rows(asked).tolist() == [2000, -1, 7, 2000, 9]  # all ids are compared


def test_an_empty_corpus_has_nothing(make) -> None:
    corpus = make([])
    assert len(corpus) == 0
    assert list(corpus) == []
    assert corpus.row("a") is None
    assert corpus.rows(["a"]).tolist() == [-1]


def test_the_same_documents_have_the_same_fingerprint_on_disk_and_in_memory(tmp_path: Path) -> None:
    pairs = many(2 * BATCH_ROWS)
    assert on_disk(pairs, tmp_path).fingerprint == Corpus.of(pairs).fingerprint


def test_fingerprints_tell_where_an_id_ends(tmp_path: Path) -> None:
    assert Corpus.of([("ab", "c")]).fingerprint != Corpus.of([("a", "bc")]).fingerprint
    assert Corpus.of([("a", "b"), ("c", "d")]).fingerprint != Corpus.of([("c", "d"), ("a", "b")]).fingerprint


def test_ids_in_memory_must_be_distinct() -> None:
    with pytest.raises(ValueError, match="distinct"):
        Corpus.of([("a", "x"), ("b", "y"), ("a", "x")])


# Made once.


@pytest.mark.parametrize(
    ("builder", "layout"), [(r2med_folder, R2medFolder), (beir_folder, BeirFolder), (hub_files, HubTables)]
)
def test_a_corpus_opened_again_is_not_read_from_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder, layout
) -> None:
    folder = builder(tmp_path / "set")
    first = load(folder)
    forbid_reading(monkeypatch, layout)
    again = load(folder)
    assert list(again.corpus) == list(first.corpus)
    assert again.fingerprint == first.fingerprint


def test_flaws_and_notices_are_told_again_without_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = r2med_folder(tmp_path / "set", [*DOCUMENTS, DOCUMENTS[0], {"id": "blank", "text": " "}])
    first = check(folder)
    forbid_reading(monkeypatch, R2medFolder)
    again = check(folder)
    each_states(again.flaws, [f"{folder}/corpus.jsonl:5", "'blank'", "empty"])
    assert (again.flaws, again.notices) == (first.flaws, first.notices)
    each_states(again.notices, [f"{folder}/corpus.jsonl", "1 repeated"])


def test_problems_are_told_every_time(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set", [*DOCUMENTS, {"id": 2, "text": "another"}])
    assert check(folder).problems == check(folder).problems != []


def test_a_changed_source_of_the_same_size_is_noticed(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set")
    before = load(folder).corpus
    path = folder / "corpus.jsonl"
    times = path.stat()
    path.write_text(path.read_text().replace("Gluten", "Glutin"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # even under its old date
    after = load(folder).corpus
    assert path.stat().st_size == times.st_size
    assert after.text(0) == "Glutin harms the small bowel in coeliac disease."
    assert after.fingerprint != before.fingerprint


def test_nothing_is_left_in_progress(tmp_path: Path, home: Path) -> None:
    load(r2med_folder(tmp_path / "set"))
    assert list((home / "scratch").iterdir()) == []


@pytest.mark.slow
def test_a_large_corpus_opens_again_at_once_and_in_little_memory(tmp_path: Path, home: Path) -> None:
    count, filler = 200_000, "a few words that fill the memory if all of them were read " * 3
    documents = ({"id": f"d{number}", "text": f"{number} {filler}"} for number in range(count))
    folder = r2med_folder(tmp_path / "large", documents, QUERIES[:1], [{"q_id": "0", "p_id": "d7", "score": 1}])
    assert len(load(folder).corpus) == count
    (stored,) = home.glob("corpus/*/documents.arrow")
    assert stored.stat().st_size > 35e6
    opened = python(
        """
import json, pathlib, re, sys, time
import r2med

def own_memory():  # the kernel takes back the pages of files when it must
    return int(re.search(r"RssAnon:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])

r2med.load("demo/Biology")  # imports are paid for
before = own_memory()
started = time.process_time()  # the processor's, which no busy neighbour can take
corpus = r2med.load(sys.argv[1]).corpus
row = corpus.row("d199999")
seconds = time.process_time() - started
grown = own_memory() - before
print(json.dumps([len(corpus), row, seconds, grown]))
""",
        folder,
    )
    assert opened.stderr == ""
    length, row, seconds, kilobytes = json.loads(opened.stdout)
    assert (length, row) == (count, count - 1)
    assert seconds < 0.5
    assert kilobytes < 20_000


# Repeated and clashing ids.


def test_query_ids_may_equal_document_ids(tmp_path: Path) -> None:
    dataset = load(r2med_folder(tmp_path / "set"))
    assert dataset.queries[0].id == dataset.corpus.id(0) == "0"
    assert check(tmp_path / "set").flaws == []


def test_repeated_identical_rows_are_merged_with_a_notice(tmp_path: Path) -> None:
    rows = [{"id": f"{number % 2000}", "text": f"text {number % 2000}"} for number in range(5000)]
    folder = r2med_folder(tmp_path / "set", rows, QUERIES[:1], QRELS[:1])
    dataset = load(folder)
    assert list(dataset.corpus) == [(row["id"], row["text"]) for row in rows[:2000]]
    assert dataset.corpus.rows(["0", "1999", "1024"]).tolist() == [0, 1999, 1024]
    each_states(dataset.notices, [f"{folder}/corpus.jsonl", 3000])
    assert load(folder).notices == dataset.notices


def test_of_rows_with_one_id_the_last_counts_where_the_first_stood(tmp_path: Path) -> None:
    rows = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "2"), ("a", "5")]
    folder = r2med_folder(tmp_path / "set", [{"id": i, "text": t} for i, t in rows], QUERIES[:1], QRELS[:1])
    for _ in range(2):
        dataset = load(folder)
        assert list(dataset.corpus) == [("a", "5"), ("b", "2"), ("c", "4")]
        assert dataset.corpus.rows(["c", "b", "a"]).tolist() == [2, 1, 0]
        assert dataset.corpus.repeats is not None
        assert list(dataset.corpus.repeats) == [("a", "1"), ("b", "2"), ("a", "3")]
        facts = f"{folder}/corpus.jsonl", "3 repeated", "1 ids", "last", "'a'", "line 1", "corpus.jsonl:6"
        states(dataset.notices[0], *facts)


def test_many_repeats_over_many_batches_are_merged_as_a_dictionary_would(tmp_path: Path) -> None:
    chance = random.Random(3)
    rows = [(f"d{chance.randrange(2000)}", f"text {number}") for number in range(5 * BATCH_ROWS)]
    corpus = on_disk(rows, tmp_path)
    last = dict(rows)
    assert list(corpus) == list(last.items())
    assert corpus.rows(list(last)).tolist() == list(range(len(last)))
    assert [corpus.row(identifier) for identifier in list(last)[:50]] == list(range(50))
    assert corpus.repeats is not None
    assert sorted([*corpus, *corpus.repeats]) == sorted(rows)


def test_a_corpus_without_repeats_has_none(make) -> None:
    assert make(many(10)).repeats is None


def test_what_repeats_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    once = on_disk([("a", "x"), ("b", "y")], tmp_path / "once")
    again = on_disk([("a", "x"), ("b", "y"), ("a", "x")], tmp_path / "again")
    other = on_disk([("a", "z"), ("b", "y"), ("a", "x")], tmp_path / "other")
    assert list(once) == list(again) == list(other)
    assert len({once.fingerprint, again.fingerprint, other.fingerprint}) == 3


def test_equal_texts_under_several_ids_stay_apart(tmp_path: Path) -> None:
    rows = [{"id": "0", "text": "same"}, {"id": "d2", "text": "same"}]
    assert len(load(r2med_folder(tmp_path / "set", rows)).corpus) == 2


def test_datasets_may_share_ids(tmp_path: Path) -> None:
    one = load(r2med_folder(tmp_path / "one"))
    write_jsonl(r2med_folder(tmp_path / "two") / "corpus.jsonl", [{**row, "text": "other"} for row in DOCUMENTS])
    two = load(tmp_path / "two")
    assert one.corpus.text(0) != two.corpus.text(0) == "other"


def forbid_reading(monkeypatch: pytest.MonkeyPatch, layout: type) -> None:
    def documents(self: object, problems: Problems) -> Iterator[None]:
        raise AssertionError("the source was read again")

    monkeypatch.setattr(layout, "documents", documents)


def test_repeated_rows_are_named_by_their_lines_and_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "repeats")
    rows = ('{"id": "a", "text": "one"}', "", "", '{"id": "b", "text": "two"}', '{"id": "a", "text": "other"}')
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    dataset = load(folder)
    states(dataset.notices[0], "1 repeated rows", "'a'", "line 1", "corpus.jsonl:5")
    assert dataset.corpus.fingerprint == "b6ce26514ac212ceb1a235640720a0ef"  # records and packs name it
    assert dataset.corpus.fingerprint != Corpus.of([("a", "other"), ("b", "two")]).fingerprint

"""Of texts that repeat each other the first stays; exact copies are told from near ones."""

import numpy as np
import pytest

from r2med.construction.items import PageChunk, Rejected
from r2med.construction.step import StepWork, Streams
from r2med.construction.steps.duplicates import DropDuplicates
from r2med.foundation.runtime.runtime import Runtime

RANDOM = np.random.default_rng(3)
TEXTS = [" ".join(RANDOM.choice([f"word{n}" for n in range(3000)], 100)) for _ in range(50)]


@pytest.fixture
def outcome(tmp_path, store):
    def run(chunks, files=1, **settings):
        paths = tuple(tmp_path / f"{number}.jsonl" for number in range(files))
        for number, path in enumerate(paths):
            path.write_text("".join(f"{chunk.model_dump_json()}\n" for chunk in chunks[number::files]))
        step = DropDuplicates(**settings)
        items = list(step.run(Streams({"chunks": paths}, tmp_path), StepWork(Runtime(store=store))))
        kept = {each.id: each for each in items if isinstance(each, PageChunk)}
        return kept, {each.key: each for each in items if isinstance(each, Rejected)}

    return run


def chunk(name, text):
    return PageChunk(id=name, text=text, page=f"page-{name}")


def test_the_first_stays_and_knows_the_pages_of_its_copies(outcome):
    near = TEXTS[0].rsplit(" ", 2)[0] + " another end"
    chunks = [
        chunk("a", TEXTS[0]),
        chunk("b", TEXTS[1]),
        chunk("c", near),
        chunk("d", f" {TEXTS[0]}\n"),
        chunk("e", near),
    ]
    kept, rejected = outcome(chunks)
    assert list(kept) == ["a", "b"]
    assert kept["a"].copies == ("page-c", "page-d", "page-e")
    assert {key: each.reason for key, each in rejected.items()} == {
        "c": "near duplicate",
        "d": "exact duplicate",
        "e": "near duplicate",
    }
    assert rejected["d"].note == "of a"
    assert rejected["c"].note.startswith("of a, 0.9")


def test_all_copies_go_and_nothing_else_does(outcome):
    chunks = [chunk(f"{number}-{copy}", text) for copy in range(3) for number, text in enumerate(TEXTS)]
    kept, rejected = outcome(chunks, files=2)
    assert sorted(each.text for each in kept.values()) == sorted(TEXTS)
    assert {each.reason for each in rejected.values()} == {"exact duplicate"}


def test_what_is_like_a_chunk_that_went_but_not_like_the_one_that_stays_is_kept(outcome):
    words = TEXTS[0].split()
    middle = [*words[:95], *(f"new{n}" for n in range(5))]
    far = [*(f"far{n}" for n in range(8)), *middle[8:]]
    kept, _ = outcome([chunk("a", " ".join(words)), chunk("b", " ".join(middle)), chunk("c", " ".join(far))])
    assert list(kept) == ["a", "c"]


def test_the_threshold_is_a_setting(outcome):
    words = TEXTS[0].split()
    pair = [chunk("a", TEXTS[0]), chunk("b", " ".join([*words[:70], *(f"new{n}" for n in range(30))]))]
    assert list(outcome(pair)[0]) == ["a", "b"]
    assert list(outcome(pair, threshold=0.4)[0]) == ["a"]
    assert list(outcome([])[0]) == []

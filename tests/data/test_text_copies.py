"""Copies of texts are found whatever their kind, and texts that only share phrases are not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from r2med.data import text_copies
from r2med.data.corpus import Corpus
from r2med.data.text_copies import (
    CopyKind,
    Form,
    ListedTexts,
    TextCopy,
    as_written,
    find_copies,
    plain_words,
    spaced,
)

ALL: tuple[CopyKind, ...] = ("equal", "near", "contained", "half")
RANDOM = random.Random(11)
VOCABULARY = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def words(count: int) -> list[str]:
    return RANDOM.choices(VOCABULARY, k=count)


def joined(*parts: Sequence[str]) -> str:
    return " ".join(word for part in parts for word in part)


TEXT = words(100)
ORIGINAL = joined(TEXT)


def kinds_of(*copies: str, kinds: Sequence[CopyKind] = ALL) -> list[str]:
    """Return the kind of each copy of `ORIGINAL`, among other texts; "" if it is not a copy."""
    listed = [joined(words(100)) for _ in range(20)]
    found = find_copies(ListedTexts([*listed, ORIGINAL, *copies]), [20], kinds=kinds).of(20)
    known = {copy.row: copy.kind for copy in found}
    assert not any(row < 20 for row in known)
    return [known.get(21 + number, "") for number in range(len(copies))]


@pytest.mark.parametrize(
    ("copy", "kind"),
    [
        (ORIGINAL, "equal"),
        (ORIGINAL.upper().replace(" ", "\n\t "), "equal"),
        (ORIGINAL.translate(str.maketrans("aeo", "аео")), "equal"),  # Cyrillic letters
        (ORIGINAL.replace("fi", "\ufb01"), "equal"),  # a ligature
        (joined(TEXT[:50], ["altered"], TEXT[51:]), "near"),
        (joined(TEXT, words(3)), "near"),
        (joined(words(300), TEXT, words(200)), "contained"),
        (joined(TEXT[20:60]), "contained"),
        (joined(words(50), TEXT[10:60]), "half"),
        (joined(TEXT[:50], words(400)), "half"),
        (joined(TEXT[50:], words(60)), "half"),
        (joined(words(100), TEXT[:30]), ""),
        (joined(TEXT[:15]), ""),  # a phrase
        (joined(sorted(TEXT)), ""),
        ("", ""),
        ("...", ""),
    ],
)
def test_each_kind_of_copy_is_found_and_named(copy: str, kind: str) -> None:
    assert kinds_of(copy) == [kind]


def test_only_the_chosen_kinds_are_found() -> None:
    copies = (ORIGINAL, joined(TEXT, words(3)), joined(TEXT[20:60]), joined(words(50), TEXT[10:60]))
    for number, kind in enumerate(ALL):
        expected = [kind if place == number else "" for place in range(4)]
        if kind != "equal":  # equal texts are hashed in any case
            expected[0] = "equal"
        assert kinds_of(*copies, kinds=[kind]) == expected


@pytest.mark.parametrize(
    ("form", "equal"),
    [(as_written, [1]), (spaced, [1, 2]), (plain_words, [1, 2, 3, 4])],
)
def test_the_form_decides_what_is_equal(form: Form, equal: list[int]) -> None:
    texts = [
        "Acute renal failure",
        "Acute renal failure",
        " Acute  renal\nfailure",
        "ACUTE RENAL FAILURE",
        "Асute renal failure",
    ]
    assert find_copies(ListedTexts(texts), form=form).first == dict.fromkeys(equal, 0)
    assert [copy.row for copy in find_copies(ListedTexts(texts), [0], form=form).of(0)] == equal


def test_without_originals_the_first_text_of_each_group_is_the_original() -> None:
    near = joined(TEXT, words(2))
    texts = ["other words here", ORIGINAL, near, ORIGINAL, f"{near} again", near]
    found = find_copies(ListedTexts(texts), kinds=("equal", "near")).found
    assert {copy.row: (copy.original, copy.kind) for copy in found} == {
        2: (1, "near"),
        3: (1, "equal"),
        4: (1, "near"),
        5: (1, "near"),
    }


def test_a_text_like_a_copy_but_unlike_its_original_is_no_copy() -> None:
    middle = [*TEXT[:95], *words(5)]
    texts = [ORIGINAL, joined(middle), joined(words(8), middle[8:])]
    assert [copy.row for copy in find_copies(ListedTexts(texts), kinds=("near",)).found] == [1]


def test_equal_originals_are_copies_of_each_other() -> None:
    found = find_copies(ListedTexts([ORIGINAL, "x", ORIGINAL, ORIGINAL]), [2, 3])
    assert [copy.row for copy in found.of(2)] == [0, 3]
    assert sorted(copy.row for copy in found.of(3)) == [0, 2]
    assert list(found.of(1)) == []


def test_a_phrase_that_many_originals_share_is_no_half() -> None:
    template = words(60)
    texts = [joined(template, words(60)) for _ in range(60)]
    assert not find_copies(ListedTexts(texts), range(60), kinds=ALL).found
    assert find_copies(ListedTexts(texts), range(2), kinds=ALL).found


def test_work_and_memory_are_bounded_on_texts_that_are_all_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_copies, "MAX_COPIES", 5)
    monkeypatch.setattr(text_copies, "MAX_CANDIDATES", 10)
    equal = find_copies(ListedTexts([ORIGINAL] * 20), [0])
    assert len(equal.found) == 5 and equal.unread == 0
    near = find_copies(ListedTexts([f"{ORIGINAL} {number}" for number in range(20)]), range(20), kinds=("near",))
    assert len(near.found) <= 10 and near.unread > 0


def test_a_corpus_and_texts_in_memory_have_the_same_copies() -> None:
    texts = [ORIGINAL, *(joined(words(80)) for _ in range(50)), ORIGINAL.upper(), joined(TEXT[:60])]
    corpus = Corpus.of((str(row), text) for row, text in enumerate(texts))
    assert find_copies(corpus, [0], kinds=ALL) == find_copies(ListedTexts(texts), [0], kinds=ALL)
    assert find_copies(corpus, [0], kinds=ALL).found[0] == TextCopy(51, 0)


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["a"]])
def test_few_and_empty_texts_are_no_trouble(texts: list[str]) -> None:
    found = find_copies(ListedTexts(texts), kinds=ALL).found
    assert len(found) == max(0, len(texts) - 1)
    assert find_copies(ListedTexts(texts), [], kinds=ALL).found == []

"""`r2med audit --against` on made-up data: seconds, peak memory, recall of planted overlaps and false alarms.

    python benchmarks/containment.py                     # 10,000 texts of a dataset in 100,000 rows of about 100 words
    python benchmarks/containment.py --rows 1000000
    python benchmarks/containment.py --altered           # passages of the demo with every 10th word changed, and so on

A twentieth of the dataset's texts are planted into rows, in four ways: equal, in capitals and without punctuation, with
every 20th word changed, and with 20 of their words inside another text. All other rows are other words, but a tenth of
them share a sentence of 12 words with a text of the dataset, which is no overlap. Words are as frequent as in a real
text.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bm25 import make_texts

from r2med import Dataset, load
from r2med.assessment.audit.containment import OtherText, known_texts, shared_texts
from r2med.assessment.audit.text_columns import texts_of
from r2med.data.dataset_cards import demo_cards
from r2med.foundation.store.files import json_line

WORDS, RUN, SHORT = 100, 20, 12
KINDS = ("equal", "other form", "near", "run")


def planted(text: str, kind: str, other: str) -> str:
    words = text.split()
    match kind:
        case "equal":
            return text
        case "other form":
            return ", ".join(words).upper()
        case "near":
            return " ".join("altered" if number % 20 == 7 else word for number, word in enumerate(words))
        case _:
            half = other.split()
            return " ".join([*half[:40], *words[30 : 30 + RUN], *half[40:]])


def rows(texts: list[str], count: int) -> Iterator[dict[str, object]]:
    """Yield rows of a training file. The first ones hold planted texts."""
    others = make_texts(count, WORDS, 999)
    for number, other in enumerate(others):
        text = other
        if number < len(texts) // 20:
            text = planted(texts[number], KINDS[number % len(KINDS)], other)
        elif number % 10 == 0:
            words = texts[-1 - number // 10 % (len(texts) // 2)].split()
            text = " ".join([*other.split()[:50], "alone", *words[40 : 40 + SHORT], "alone", *other.split()[50:]])
        yield {"id": number, "anchor": other[:60], "positive": text}


def altered() -> None:
    """Print how many of 200 passages of the demo are found if every n-th word is changed."""
    corpora = (dict(load(name).corpus).values() for name in demo_cards())
    texts = sorted({text for corpus in corpora for text in corpus if len(text.split()) >= WORDS // 2})
    texts = random.Random(0).sample(texts, 200)
    corpus = {str(number): text for number, text in enumerate(texts)}
    dataset = Dataset.of({"q": "what is it"}, corpus, {"q": dict.fromkeys(corpus, 1)})
    for every in (20, 14, 12, 10, 8, 5):
        others = (
            " ".join("altered" if number % every == every - 1 else word for number, word in enumerate(text.split()))
            for text in texts
        )
        found = shared_texts(known_texts(dataset), [OtherText("", other) for other in others], [dataset]).found
        print(
            f"one word of {every} changed: {sum(each.known.kind == 'passage' for each in found)} of {len(texts)} found"
        )


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--texts", type=int, default=10_000)
    words.add_argument("--rows", type=int, default=100_000)
    words.add_argument("--altered", action="store_true", help="print what is missed in altered passages of the demo")
    given = words.parse_args()
    if given.altered:
        altered()
        return
    texts = list(make_texts(given.texts, WORDS, 1))
    corpus = {str(number): text for number, text in enumerate(texts)}
    dataset = Dataset.of({"q": "what is it"}, corpus, {"q": dict.fromkeys(corpus, 1)})
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "rows.jsonl"
        with file.open("wb") as out:
            out.writelines(map(json_line, rows(texts, given.rows)))
        begun, before = time.perf_counter(), time.process_time()
        found = shared_texts(known_texts(dataset), texts_of(file), [dataset]).found
        wall, cpu = time.perf_counter() - begun, time.process_time() - before
    names = {int(each.known.id) for each in found if each.known.kind == "passage"}
    hidden = given.texts // 20
    for place, kind in enumerate(KINDS):
        mine = range(place, hidden, len(KINDS))
        print(f"{kind}: {sum(number in names for number in mine):,} of {len(mine):,} found")
    print(f"false alarms: {sum(number >= hidden for number in names):,} of {given.texts - hidden:,} texts")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{given.texts:,} × {given.rows:,}: {wall:.1f} s, {cpu:.1f} CPU s, peak {peak:,.0f} MiB")


if __name__ == "__main__":
    main()

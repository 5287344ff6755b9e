"""Measure the rules of `deidentify` on planted personal data: recall and precision of each kind, with 95 % intervals.

    python benchmarks/deidentify.py                 # all sentences, and those that the rules were not written with
    python benchmarks/deidentify.py --misses        # errors in the sentences that the rules were written with
    python benchmarks/deidentify.py --library presidio
    python benchmarks/deidentify.py --seconds       # seconds of a core for texts up to 1 MB, ordinary and hostile

A planted span counts as found if all its letters and digits are covered. A marked span counts as right if it touches a
planted one. Intervals are Wilson's. One person wrote the sentences and the rules, so real texts give lower numbers.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from r2med.construction.steps.personal_data import PERSONAL_KINDS, PersonalSpan, personal_spans, separated
from r2med.evaluation.measure.intervals import wilson

PLANTED = Path(__file__).parents[1] / "tests" / "construction" / "steps" / "planted_personal_data.txt"
_MARK = re.compile(r"\{([A-Z]+):(.*?)\}", re.DOTALL)


@dataclass(frozen=True)
class Sentence:
    """A sentence and its planted personal data, as kind, start and end."""

    number: int
    text: str
    planted: tuple[tuple[str, int, int], ...]


def sentences() -> Iterator[Sentence]:
    """Yield the sentences of the planted set."""
    lines = [line for line in PLANTED.read_text("utf-8").splitlines() if not line.startswith("#")]
    for number, line in enumerate(lines, 1):
        marked = line.replace("\\n", "\n").replace("\\u200b", "\u200b")
        parts, planted, done, size = [], [], 0, 0
        for match in _MARK.finditer(marked):
            parts += [marked[done : match.start()], match[2]]
            size += match.start() - done
            planted.append((match[1], size, size + len(match[2])))
            size += len(match[2])
            done = match.end()
        yield Sentence(number, "".join([*parts, marked[done:]]), tuple(planted))


def covered(text: str, start: int, end: int, spans: Sequence[PersonalSpan]) -> bool:
    """Return True if spans cover every letter and digit of a part of a text."""
    return all(
        not text[place].isalnum() or any(span.start <= place < span.end for span in spans)
        for place in range(start, end)
    )


def measure(chosen: Sequence[Sentence], find: Callable[[str], list[PersonalSpan]]) -> list[list[str]]:
    """Return a row for each kind: planted, found, recall, marked, right, precision."""
    planted, hit, marked, right = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for each in chosen:
        spans = find(each.text)
        for kind, start, end in each.planted:
            planted[kind] += 1
            hit[kind] += covered(each.text, start, end, spans)
        for span in spans:
            marked[span.kind] += 1
            right[span.kind] += any(start < span.end and span.start < end for _, start, end in each.planted)
    rows = [[kind, planted[kind], hit[kind], marked[kind], right[kind]] for kind in PERSONAL_KINDS]
    rows.append(["all", planted.total(), hit.total(), marked.total(), right.total()])
    return [
        [kind, str(there), share(found, there), str(called), share(good, called)]
        for kind, there, found, called, good in rows
    ]


def share(part: int, whole: int) -> str:
    """Return a share with its interval, in per cent."""
    if not whole:
        return "–"
    low, high = wilson(np.array([part / whole]), np.array([float(whole)]))[:, 0]
    return f"{part / whole:.0%} ({low:.0%} to {high:.0%})"


def misses(chosen: Sequence[Sentence], find: Callable[[str], list[PersonalSpan]]) -> None:
    """Print what was missed or wrongly marked."""
    for each in chosen:
        spans = find(each.text)
        missed = [each.text[a:b] for _, a, b in each.planted if not covered(each.text, a, b, spans)]
        wrong = [
            (each.text[span.start : span.end], span.kind, span.rule)
            for span in spans
            if not any(a < span.end and span.start < b for _, a, b in each.planted)
        ]
        if missed or wrong:
            print(f"{each.number}: {each.text!r}\n   missed {missed}   wrong {wrong}")


def seconds() -> None:
    """Print the seconds for growing texts. A time that doubles with the size is linear."""
    ordinary = " ".join(each.text for each in sentences())
    makers = {
        "sentences": ordinary,
        "capital words": "Abc ",
        "given names": "John ",
        "letters": "a",
        "capitals": "A",
        "digits": "1",
        "digits and dashes": "12-",
        "initials": "A.B.",
        "entities": "&#74;",
        "placeholders": "[NAME-1] ",
        "spaces": " ",
        "at signs": "a@",
        "streets": "12 Abc Abc ",
    }
    print("text | 0.25 MB | 0.5 MB | 1 MB")
    for name, part in makers.items():
        times = []
        for size in (250_000, 500_000, 1_000_000):
            text = (part * (size // len(part) + 1))[:size]
            began = time.process_time()
            personal_spans(text)
            times.append(f"{time.process_time() - began:.2f}")
        print(name, *times, sep=" | ", flush=True)


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--misses", action="store_true")
    options.add_argument("--seconds", action="store_true")
    options.add_argument("--library", default="")
    given = options.parse_args()
    if given.seconds:
        return seconds()
    find: Callable[[str], list[PersonalSpan]] = personal_spans
    if given.library:
        from r2med.construction.steps.presidio_spans import PresidioSpans

        library = PresidioSpans.open()
        find = lambda text: separated([*personal_spans(text), *library.spans(text)], text)  # noqa: E731
    every = list(sentences())
    if given.misses:
        return misses([each for each in every if each.number % 2], find)
    for title, chosen in (("All", every), ("Not used for the rules", [each for each in every if each.number % 2 == 0])):
        clean = sum(not each.planted for each in chosen)
        print(f"\n{title}: {len(chosen)} sentences, {clean} of them clean\n")
        print("| kind | planted | recall | marked | precision |\n|---|---|---|---|---|")
        for row in measure(chosen, find):
            print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main()

"""Measure what the checks of translations find in hand-made Chinese and English pairs, and their false alarms.

The rules were tuned on the first set of pairs. The second set and two whole records were written afterwards. All are
part of the tests. Then one number, unit or negation after the other is changed in every good pair. Prints the
numbers of docs/build-corpus.md, as they are with the present rules: python benchmarks/translation_checks.py
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from r2med.construction.translation.languages import language
from r2med.construction.translation.translation_checks import TranslationChecks

PAIRS = Path(__file__).parents[1] / "tests" / "construction" / "translation"
SETS, RECORDS = ("tuned", "heldout"), ("record", "fresh")


def rows(name: str) -> list[list[str]]:
    """Return the rows of a table: kind of fault (only of faulty pairs), source, translation, translation back."""
    with (PAIRS / f"{name}_pairs.tsv").open(encoding="utf-8") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def checks() -> TranslationChecks:
    """Return the checks from Chinese into English with a table of drugs and the default similarity."""
    with (PAIRS / "drugs.csv").open(encoding="utf-8") as lines:
        drugs = {row["source"]: tuple(row["translation"].split("|")) for row in csv.DictReader(lines)}
    return TranslationChecks(language("Chinese"), language("English"), drugs, 30)


def report(name: str) -> None:
    """Print what is found in one set."""
    check, planted, caught, alone = checks(), Counter[str](), Counter[str](), Counter[str]()
    for kind, source, target, back in rows(f"{name}_faulty"):
        planted[kind] += 1
        faults = check.faults(source, target, back)
        caught[kind] += bool(faults)
        alone[kind] += bool(check.faults(source, target))
        print(f"  {kind}: {source} → {target}: {'; '.join(faults) or 'MISSED'}")
    for kind, count in planted.items():
        print(f"{name}, {kind}: {caught[kind]} of {count} found, {alone[kind]} without the translation back")
    good = rows(f"{name}_good")
    alarms = [(row[0], faults) for row in good if (faults := check.faults(*row))]
    print(f"{name}: false alarms in {len(alarms)} of {len(good)} good pairs", *alarms)
    print(f"{name}: lowest chrF of a good pair {min(check.likeness(row[0], row[2]) for row in good):.0f}")


def mutations(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind of a change and the changed text, for each number, unit and negation of an English text."""
    for match in re.finditer(r"(?<![A-Za-z\d.,-])\d+", text):
        digit = str((int(match[0][-1]) + 3) % 10)
        yield "number", text[: match.end() - 1] + digit + text[match.end() :]
    units = {
        "mg": "g",
        "g": "mg",
        "µmol": "mmol",
        "mmol": "mol",
        "mL": "L",
        "cm": "mm",
        "days": "weeks",
        "hours": "days",
    }
    for match in re.finditer(r"(?<=\d )(mg|g|µmol|mmol|mL|cm|days|hours)\b", text):
        yield "unit", text[: match.start()] + units[match[0]] + text[match.end() :]
    positive = {"no": "a", "without": "with", "denies": "has", "not": "", "negative": "positive"}
    for match in re.finditer(r"\b(?:no|without|denies|not|negative)\b", text, re.IGNORECASE):
        yield "negation", text[: match.start()] + positive[match[0].lower()] + text[match.end() :]


def report_mutations() -> None:
    """Print how many changes of good pairs are found without the translation back."""
    check, made, found = checks(), Counter[str](), Counter[str]()
    for name in (*SETS, *RECORDS):
        for source, target, _ in rows(f"{name}_good"):
            for kind, changed in mutations(target):
                made[kind] += 1
                found[kind] += bool(check.faults(source, changed))
                if not check.faults(source, changed):
                    print(f"  not found: {kind}: {source} → {changed}")
    for kind, count in made.items():
        print(f"changed {kind}: {found[kind]} of {count} found without the translation back")


if __name__ == "__main__":
    for each in SETS:
        report(each)
    for each in RECORDS:
        found = [row for row in rows(f"{each}_good") if checks().faults(*row)]
        print(f"{each}: false alarms in {len(found)} of {len(rows(f'{each}_good'))} sentences", *found)
    report_mutations()

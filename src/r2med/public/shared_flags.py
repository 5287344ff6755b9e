"""Declarations of parameters that several public functions have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from r2med.evaluation.records.answer_words import CONDITIONS
from r2med.foundation.core.flags import DATA, Argument, Flag
from r2med.foundation.core.spec import joined_words


def choices(words: Iterable[str]) -> str:
    """Return the words of a closed set for a help text: a, 'b c' or d."""
    *others, last = (f"'{word}'" if " " in word else word for word in words)
    return f"{', '.join(others)} or {last}" if others else last


def comma_separated(given: Iterable[str]) -> list[str]:
    """Return the names of a flag that may be repeated and may hold several with commas. A path may contain commas."""
    entries = [[entry] if entry and Path(entry).exists() else entry.split(",") for entry in given]
    return [name.strip() for entry in entries for name in entry if name.strip()]


COMPARED_SYSTEMS = Argument(
    "Names of systems, record files or folders of them. Default: all of --results.",
    metavar="SYSTEM|RECORD|FOLDER",
    kind=str,
    read=joined_words,
)
COMPARED_DATA = Flag(
    "Only these datasets or groups (R2MED, demo, …), several with commas or repeated. "
    "Default: all that the systems share, without the demo if there are others.",
    DATA,
    metavar="NAME",
    completion="datasets",
    read=comma_separated,
)
OVERLAYS = Flag(
    "Score with the labels of this overlay too. May be repeated: later labels replace earlier ones.",
    names=("--overlay",),
    metavar="FILE",
)
RESULTS = Flag("Folder with the records of systems.")
BASELINE = Flag("Compare each system with this one only.", metavar="SYSTEM")
LOCK = Flag(
    "Do what this file of r2med lock decided, and refuse anything else. Records carry its digest.", metavar="FILE"
)
ANSWERS = Flag("Use the records of `r2med answer`: each system with each reader, by accuracy or --measure.")
ANSWER_CONDITION = Flag(
    f"With --answers: what was read. {choices(CONDITIONS)}. Default: retrieved.", metavar="NAME", names=("--condition",)
)
RESAMPLES = Flag("Number of random sign flips and of bootstrap samples.", low=1)
MAX_FAILURES = Flag(
    "Largest share of failed calls or queries, from 0 to 1. Other records are left out with a note.", low=0, high=1
)

"""Declarations of parameters that several public functions have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from r2med.evaluation.records.answer_words import CONDITIONS
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.flags import DATA, LLMS, WHAT, Argument, Flag
from r2med.foundation.core.spec import joined_words


def choices(words: Iterable[str]) -> str:
    """Return the words of a closed set for a help text: a, 'b c' or d."""
    *others, last = (f"'{word}'" if " " in word else word for word in words)
    return f"{', '.join(others)} or {last}" if others else last


def comma_separated(given: Iterable[str]) -> list[str]:
    """Return the names of a flag that may be repeated and may hold several with commas. A path may contain commas."""
    entries = [[entry] if entry and Path(entry).exists() else entry.split(",") for entry in given]
    return [name.strip() for entry in entries for name in entry if name.strip()]


def dataset_words(given: Iterable[str]) -> list[str]:
    """Return the datasets that --data names. Commas separate several, unless a path contains them."""
    if words := comma_separated(given):
        return words
    raise UserError("--data names no dataset: r2med list datasets shows all")


WEIGHTS = ("device", "dtype", "backend", "model_paths", "trust_remote_code", "offline")
"""Fields of Setup about models."""
LLM_SETTINGS = ("base_url", "llm_backend", "prompts")
"""Fields of Setup about LLMs that a result depends on."""
QUESTIONS = ("base_url", "llm_backend", "budget", "concurrency", "ask_again")
"""Fields of Setup about questions to LLMs with prompts that the settings do not choose."""
ASKING = (*QUESTIONS, "prompts", "deadline")
"""Fields of Setup about LLMs in the stages of systems."""
SEARCHING = (*WEIGHTS, "memory", *LLM_SETTINGS, "llm", "budget", "recorded", "generations")
"""Fields of Setup about questions of a person to a system, one at a time. The system names the depth: NAME@DEPTH."""

DATASETS = Flag(
    "A dataset, a group (R2MED, demo, …) or a folder. May be repeated, or hold several with commas.",
    DATA,
    metavar="NAME",
    completion="datasets",
    read=dataset_words,
)
RERANKERS = Flag(
    "Rerank the retrieved documents with bge-reranker, groupwise, …. May be repeated.",
    WHAT,
    metavar="NAME",
    completion="rerankers",
)
EXPANSIONS = Flag(
    "Expand queries first with hyde, query2doc, lamer, rm3, …. May be repeated.",
    WHAT,
    metavar="METHOD",
    completion="expansions",
)
SUITE = Flag(
    "Many systems at once: paper, rerank, records, top or a TOML file.",
    WHAT,
    metavar="NAME|FILE",
    completion="suites",
)
DEPTH = Flag("Documents returned for each query. Default: 1000, or that of the lock.", WHAT, ("-k", "--k"))
_REPEATS_HELP = "Number of runs of each system that varies. Each run asks LLMs and shuffles anew."
RUN_REPEATS = Flag(_REPEATS_HELP, WHAT, low=1, high=1000)
REPEATS = Flag(f"{_REPEATS_HELP} Default: 1, or that of the lock.", WHAT, low=1, high=1000)
ASKED_REPEATS = Flag(
    "Number of times that every LLM is asked anew. Each time has its own records.", WHAT, low=1, high=1000
)
LLM_NAMES = Flag(
    "The LLM of stages that need one. May be repeated.", LLMS, ("--llm",), metavar="NAME", completion="llms"
)
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
RESULTS = Flag("Folder with the records of systems.", metavar="DIR")
BASELINE = Flag("Compare each system with this one only.", metavar="SYSTEM")
LOCK = Flag(
    "Do what this file of r2med lock decided, and refuse anything else. Records carry its digest.", metavar="FILE"
)
ANSWERS = Flag("Use the records of `r2med answer`: each system with each reader, by accuracy or --measure.")
ANSWER_CONDITION = Flag(
    f"With --answers: what was read. {choices(CONDITIONS)}. Default: retrieved.", metavar="NAME", names=("--condition",)
)
RESAMPLES = Flag("Number of random sign flips.", low=1, is_rare=True)
MAX_FAILURES = Flag(
    "Largest share of failed calls or queries, from 0 to 1. Other records are left out with a note.",
    low=0,
    high=1,
    is_rare=True,
)

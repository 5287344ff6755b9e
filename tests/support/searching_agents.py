"""Agents that search and answer by a script: what each does turn by turn, on a corpus made for it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.assessment.answers.answer_controls import WORDINGS
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.datasets import r2med_folder

WORDS = ("alpha", "beta", "gamma")
SCRIPTS: Mapping[str, Sequence[str]] = {
    # Finds all three, opens two, cites two of them, keeps all.
    "finder": (
        '<search k="3">finder evidence</search>',
        "<get_document>d1</get_document>",
        '<find id="d2">evidence</find>',
        '<answer confidence="90" ids="d1, d2, d3">Illness finder [d1][d2].</answer>',
    ),
    # Finds all three and drops them.
    "dropper": ('<search k="3">dropper evidence</search>', '<answer confidence="40" ids="">Illness dropper.</answer>'),
    # Never opens, and cites what it was shown.
    "skimmer": (
        '<search k="1">skimmer alpha</search>',
        '<search k="5">skimmer chatter</search>',
        '<answer confidence="100" ids="d1">Illness skimmer, it seems [d1]. [d2]</answer>',
    ),
    # Names the reference before any document shows it.
    "guesser": (
        "<search>illness guesser alpha</search>",
        '<answer confidence="80%" ids="d2">Illness guesser [d2].</answer>',
    ),
    # A document shows the name, then a search has it.
    "reader": (
        '<search k="1">reader teller</search>',
        '<search k="2">illness reader beta</search>',
        '<answer confidence="70" ids="d2">Illness reader [d2].</answer>',
    ),
    "abstainer": (
        "<search>abstainer evidence</search>",
        '<answer confidence="0" ids="">There is not enough information to answer.</answer>',
    ),
    # Searches the same for ever.
    "looper": ('<search k="1">looper alpha</search>', *['<search k="1">Looper  alpha</search>'] * 9),
    "inventor": (
        "<search>inventor chatter noise</search>",
        '<answer confidence="60" ids="d77">Illness inventor [d99][d88].</answer>',
    ),
    # Writes its answer into a search, then a note, and never answers.
    "whisperer": (
        "<search>The answer is illness whisperer</search>",
        *["I said it: illness whisperer."] * 3,
    ),
    "quitter": ("<search>quitter alpha</search>", *["I have nothing to say."] * 3),
    "nobody": (*["I do not search."] * 3,),
}
QUESTION = "What ails the {} of this village?"


def documents(name: str) -> list[dict[str, str]]:
    teller = [{"id": f"{name}-t", "text": f"{name} teller says: illness {name} it is."}] if name == "reader" else []
    return [
        *({"id": f"{name}-{word}", "text": f"{name} evidence {word} of the village"} for word in WORDS),
        *({"id": f"{name}-n{number}", "text": f"{name} chatter noise {number}"} for number in range(2)),
        *teller,
    ]


def village(place: Path, names: Sequence[str] = tuple(SCRIPTS)) -> Path:
    """Write a dataset with a question for each agent, three relevant documents and two others."""
    rows = [row for name in names for row in documents(name)]
    queries = [{"id": name, "text": QUESTION.format(name), "answer": f"Illness {name}"} for name in names]
    qrels = [{"q_id": name, "p_id": f"{name}-{word}", "score": 1} for name in names for word in WORDS]
    r2med_folder(place, rows, queries, qrels)
    return place


def rules(scripts: Mapping[str, Sequence[str]] = SCRIPTS) -> list[dict[str, Any]]:
    """Return the rules of a scripted LLM: the last turns first, each after the mark of the turn before it."""
    closed = [{"when": ["Reply with"], "answer": json.dumps({"answer": "Illness of no name."})}]
    turns = []
    for name, script in scripts.items():
        asked = QUESTION.format(name)
        marks = [f"({name} {number}) " for number in range(len(script))]
        for number in reversed(range(len(script))):
            when = [asked, marks[number - 1]] if number else [asked]
            turns.append({"when": when, "answer": marks[number] + script[number]})
    return closed + turns


def scripted_runtime(place: Path, scripts: Mapping[str, Sequence[str]] = SCRIPTS, **settings: Any) -> Runtime:
    """Return a runtime whose LLM `script` follows the scripts, and whose LLM `judge` knows the references."""
    place.mkdir(parents=True, exist_ok=True)
    paths = {"script": place / "script.jsonl", "judge": place / "judge.jsonl"}
    for name, rows in (("script", rules(scripts)), ("judge", verdicts(scripts))):
        paths[name].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Runtime(store=Store(place / "store"), model_paths=paths, **settings)


def verdicts(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the rules of a judge: an answer that begins with the reference, in any wording, is right."""
    right = [
        {
            "when": [QUESTION.format(name), "Reference answer", f"\nAnswer:\n<<<\n{wording.format(f'Illness {name}')}"],
            "answer": json.dumps({"why": "the same", "grade": "right"}),
        }
        for name in names
        for wording in (*WORDINGS, "{}")
    ]
    abstaining = {
        "when": ["Reference answer", "\nAnswer:\n<<<\nThere is not enough information"],
        "answer": json.dumps({"why": "it settles on nothing", "grade": "nothing"}),
    }
    wrong = {"when": ["Reference answer"], "answer": json.dumps({"why": "something else", "grade": "wrong"})}
    unsupported = {"when": ["Sentence:"], "answer": json.dumps({"why": "not there", "supported": False})}
    return [*right, abstaining, wrong, unsupported]

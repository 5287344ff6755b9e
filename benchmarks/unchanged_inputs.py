"""The inputs of `unchanged.py`: a made-up dataset of 6,000 documents, tables for import, and tiny models.

python benchmarks/unchanged_inputs.py TREE FOLDER    # the demo and the models are those of the tests in TREE
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

DOCUMENTS, QUERIES, VOCABULARY = 6_000, 40, 20_000
ENDINGS = ("", "", "s", "ing", "ed", "ation", "ies", "ly", "'s")
"""Endings of made-up words, for the stemmer."""

JUDGED_PLAN = """\
name = "judged-exam"
title = "An exam with two judges"
description = "The questions of the example, with labels of two judges."
task = "clinical evidence"
scenario = "diagnosis"
kind = "exam"
licence = "CC0"
creators = ["nobody"]
llm = "fixed/llm"
limits = ["Made up."]
sensitive = "None."
uses = "None."
impact = "None."
steps = [
  "read-exam(exam.jsonl, licence=CC0)",
  "read-textbook(textbook.jsonl, licence=CC0)",
  "chunk(characters=1000)",
  "drop-duplicates",
  "mine(committee=bm25, depth=6)",
  "judge(judges=fixed/llm:fixed/second, untested=yes)",
]
"""
"""A plan whose judges are two models of the LLM of `unchanged.py`."""

WARD_NOTES = """\
Ward 7,,,
Export of 2026-01-05,,,
Nr,Title,Note,Date
1,Fall,"Swollen knee after a fall, ""no"" fracture.",2024-01-02
2,Cough,Cough and fever since three days.,2024-01-03
,,,
3,Cough,Cough without fever.,2024-01-04
"""
WARD_QUESTIONS = """\
id,question,answer,relevant
q1,Who fell?,knee,1
q2,Who coughs?,cough,2;3
"""


def make_inputs(tree: Path, folder: Path) -> None:
    """Write all inputs into a folder."""
    shutil.copytree(tree / "src/r2med/data/demo", folder / "demo")
    write_large_dataset(folder / "data/large")
    ward = folder / "data/ward"
    ward.mkdir()
    (ward / "notes.csv").write_text(WARD_NOTES, encoding="utf-8")
    (ward / "questions.csv").write_text(WARD_QUESTIONS, encoding="utf-8")
    shutil.copytree(tree / "src/r2med/construction/examples/exam", folder / "data/judged-plan")
    (folder / "data/judged-plan/plan.toml").write_text(JUDGED_PLAN, encoding="utf-8")
    sys.path[:0] = [str(tree / "src"), str(tree / "tests")]
    from support import docs_models  # type: ignore[import-not-found]

    for name in ("medcpt/query", "medcpt/document", "bge-reranker", "monobert", "reason-moderncolbert", "splade-v3"):
        docs_models.MODELS[name](folder / "models" / name)


def write_large_dataset(folder: Path) -> None:
    """Write a dataset whose words follow Zipf's law. It has copies, empty texts, very long texts, and a run."""
    chance = random.Random(52)
    letters = "bcdfghklmnprstvz"
    stems = ["".join(chance.choice(letters) + chance.choice("aeiou") for _ in range(3)) for _ in range(VOCABULARY)]
    words = [stem + chance.choice(ENDINGS) for stem in stems]
    weights = [1 / rank for rank in range(1, VOCABULARY + 1)]

    def text(length: int) -> str:
        drawn = chance.choices(words, weights, k=length)
        sentences = (" ".join(drawn[start : start + 12]).capitalize() for start in range(0, length, 12))
        return ". ".join(sentences) + "."

    documents: list[str] = []
    for number in range(DOCUMENTS):
        if number % 50 == 49:
            documents.append(documents[number - 7])
        elif number % 500 == 0:
            documents.append("" if number % 1000 else text(5_000))
        else:
            documents.append(text(chance.randint(5, 160)))
    names = [f"d{number}" for number in range(DOCUMENTS)]
    queries, qrels, run = [], [], []
    for number in range(QUERIES):
        relevant = chance.sample(names, chance.randint(1, 4))
        known = documents[int(relevant[0][1:])].split()[:8]
        queries.append({"id": f"q{number}", "text": " ".join([*known, text(20)]), "answer": text(3)})
        qrels += [{"q_id": f"q{number}", "p_id": name, "score": place % 2 + 1} for place, name in enumerate(relevant)]
        ranked = chance.sample(sorted({*relevant, *chance.sample(names, 50)}), 50)
        run += [f"q{number} Q0 {name} {rank} {51 - rank} made-up" for rank, name in enumerate(ranked, start=1)]
    folder.mkdir(parents=True)
    _write_rows(
        folder / "corpus.jsonl",
        ({"id": name, "text": document} for name, document in zip(names, documents, strict=True)),
    )
    _write_rows(folder / "query.jsonl", queries)
    _write_rows(folder / "qrels.jsonl", qrels)
    (folder.parent / "made-up.trec").write_text("\n".join(run) + "\n", encoding="utf-8")


def _write_rows(file: Path, rows: Iterable[Mapping[str, object]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    make_inputs(Path(sys.argv[1]), Path(sys.argv[2]))

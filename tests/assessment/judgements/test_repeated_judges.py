"""A judge that is asked several times: its labels."""

from __future__ import annotations

import json
from pathlib import Path

import r2med
from r2med import Dataset
from r2med.data.dataset import Query
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support import chat_server as chat
from support.chat_server import Exchange, Server

TOPICS = (
    "liver heart kidney lung spleen brain skin bone eye ear nose tooth tongue thyroid pancreas stomach bladder nerve "
    "muscle tendon artery vein retina cornea"
).split()


def said(document: str, *grades: int) -> list[OverlayLabel]:
    return [
        OverlayLabel(
            dataset="d", query="q", document=document, grade=int(each > 1), said=str(each), judge="j", repeat=n
        )
        for n, each in enumerate(grades)
    ]


def test_grades_of_repeats_become_their_lower_median() -> None:
    overlay = Overlay("o", tuple(said("a", 3, 0, 3)))
    assert overlay.grades("d") == {"q": {"a": 1}}


async def moody(exchange: Exchange) -> None:
    """Say yes to text a of the topic, and to text b in repeat 0 only."""
    prompt, first = exchange.request.question, exchange.request.body["seed"] == 42
    yes = any(
        f"ails the {topic}" in prompt
        and (f"text a about {topic}" in prompt or (f"text b about {topic}" in prompt and first))
        for topic in TOPICS
    )
    await chat.answer(json.dumps({"why": "because", "grade": 3 if yes else 0}))(exchange)


def test_a_judge_is_asked_anew_in_each_repeat_and_all_its_labels_are_written(
    chat_server: Server, tmp_path: Path
) -> None:
    queries = [Query(f"q{n}", f"what ails the {topic} today", f"{topic} disease") for n, topic in enumerate(TOPICS)]
    corpus = {
        f"d{n}{part}": f"The {topic} suffers, says text {part} about {topic} {topic}. True for the {topic}."
        for n, topic in enumerate(TOPICS)
        for part in "abc"
    } | {f"x{n}": f"A letter about harbour number {n} and its boats." for n in range(40)}
    data = Dataset.of(queries, corpus, {f"q{n}": {f"d{n}a": 1} for n in range(len(TOPICS))}, name="small")
    chat_server.otherwise = moody
    out = tmp_path / "overlays" / "judged.jsonl"
    with Runtime(base_url=chat_server.address, store=Store(tmp_path / "store"), offline=False) as runtime:
        r2med.run("bm25", data, out=tmp_path / "results", setup=runtime)
        judging = {"llms": "m", "data": data, "results": tmp_path / "results", "depth": 3, "out": out, "setup": runtime}
        judged = r2med.judge("bm25", repeats=3, **judging)
        asked = len(chat_server.requests)
        r2med.judge("bm25", repeats=3, **judging)
    assert len(chat_server.requests) == asked, "the journal has every repeat"
    written = Overlay.read(out)
    assert {label.repeat for label in written.labels} == {0, 1, 2}
    assert len(written.labels) == len(judged.overlay.labels)
    said = {label.repeat: label.said for label in written.labels if label.document == "d0b"}
    assert said == {0: "3", 1: "0", 2: "0"}, "a mood of the first run"
    assert written.grades("small")["q0"]["d0b"] == 0

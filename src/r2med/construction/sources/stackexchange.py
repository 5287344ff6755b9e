"""Read questions from StackExchange: `Posts.xml` of a dump, or the JSON of its API.

A question is kept if an answer that was accepted or has enough votes links to a page outside StackExchange.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from r2med.construction.items import Rejected, SourceQuestion, StreamItem
from r2med.construction.sources.safe_xml import xml_elements
from r2med.construction.sources.source_files import SourceError, SourceFile, SourceStep, unreadable
from r2med.construction.step import StepWork, Streams

_OWN_SITES = (
    "stackexchange.com stackoverflow.com superuser.com serverfault.com askubuntu.com mathoverflow.net stackapps.com "
    "stack.imgur.com i.sstatic.net"
).split()
LICENCE = "CC BY-SA 4.0"


@dataclass(frozen=True)
class Post:
    """A question or an answer, from the dump or the API."""

    id: str
    parent: str
    """Id of the question that an answer belongs to; empty for a question."""
    accepted: str
    """Id of the accepted answer of a question, if any."""
    score: int
    title: str
    body: str
    link: str
    licence: str
    where: str


class ReadStackExchange(SourceStep, kind="build"):
    """Read StackExchange questions whose answers link to other sites, from Posts.xml of a dump or the API's JSON."""

    writes = "questions"
    expects = "Stack Exchange's Posts.xml, or its archive"
    endings = ("posts.xml", ".json", ".jsonl")

    name: str = "read-stackexchange"
    votes: int = Field(5, ge=0, le=1_000_000, description="Minimum votes of an answer that was not accepted.")
    score: int = Field(0, ge=-1000, le=1_000_000, description="Minimum votes of a question.")
    site: str = Field("", description="Host of links to the posts, such as biology.stackexchange.com.")

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Yield questions with their best answer. The source is read three times to keep only answers with links."""
        accepted = {post.accepted for post in self.parts(streams, _posts) if isinstance(post, Post)}
        answered: set[str] = set()
        best: dict[str, _Answer] = {}
        for post in self.parts(streams, _posts):
            if isinstance(post, Post) and post.parent and (post.id in accepted or post.score >= self.votes):
                answered.add(post.parent)
                answer = _Answer((post.id in accepted, post.score), *read_post(post.body))
                if answer.outside and (post.parent not in best or answer.rank > best[post.parent].rank):
                    best[post.parent] = answer
        for post in self.parts(streams, _posts):
            if isinstance(post, Rejected):
                yield post
            elif not post.parent:
                yield self._question(post, best.get(post.id), post.id in answered)

    def _question(self, post: Post, answer: _Answer | None, answered: bool) -> SourceQuestion | Rejected:
        text, _ = read_post(post.body)
        question = SourceQuestion(
            id=self.prefix + post.id,
            text=f"{html.unescape(post.title)}\n{text}".strip(),
            answer=answer.text if answer else "",
            links=answer.outside if answer else (),
            source=post.link or (f"https://{self.site}/questions/{post.id}" if self.site else post.where),
            licence=self.licence or post.licence,
        )
        if post.score < self.score:
            return Rejected.of(question, "few votes", f"{post.score}")
        if answer is None:
            reason = "no link to a page outside" if answered else "no accepted or upvoted answer"
            return Rejected.of(question, reason)
        return question


@dataclass(frozen=True)
class _Answer:
    rank: tuple[bool, int]
    """Sort key: the accepted answer first, then by votes. The first of equal answers wins."""
    text: str
    links: tuple[str, ...]

    @property
    def outside(self) -> tuple[str, ...]:
        """Links to pages outside StackExchange."""
        return tuple(link for link in self.links if not _is_own(link))


def _is_own(link: str) -> bool:
    try:
        host = urlsplit(link).hostname or ""
    except ValueError:
        return True
    return any(host == site or host.endswith(f".{site}") for site in _OWN_SITES)


def _posts(file: SourceFile) -> Iterator[Post | Rejected]:
    return _of_dump(file) if ".xml" in file.name.lower() else _of_api(file)


def _of_dump(file: SourceFile) -> Iterator[Post]:
    for line, row in xml_elements(file, "row"):
        if row.get("PostTypeId") in ("1", "2"):
            yield Post(
                id=row.get("Id", ""),
                parent=row.get("ParentId", "") if row.get("PostTypeId") == "2" else "",
                accepted=row.get("AcceptedAnswerId", ""),
                score=_whole(row.get("Score")),
                title=row.get("Title", ""),
                body=row.get("Body", ""),
                link="",
                licence=row.get("ContentLicense", LICENCE),
                where=f"{file.name}:{line}",
            )


def _of_api(file: SourceFile) -> Iterator[Post | Rejected]:
    """Yield the posts in responses of the API: one object with `items`, or one such object per line."""
    if ".jsonl" in file.name.lower():
        for line, row in file.rows():
            if isinstance(row, SourceError):
                yield unreadable(f"{file.where}:{line}", str(row))
            else:
                yield from _of_items(row, f"{file.name}:{line}")
        return
    try:
        yield from _of_items(json.loads(file.read()), file.name)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"not valid JSON: {error}") from None


def _of_items(body: Any, where: str) -> Iterator[Post]:
    items = body.get("items", [body]) if isinstance(body, dict) else body
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict) or not ("question_id" in item or "answer_id" in item):
            continue
        is_answer = "answer_id" in item
        answers = [answer for answer in item.get("answers") or () if isinstance(answer, dict)]
        accepted = next((answer.get("answer_id") for answer in answers if answer.get("is_accepted")), "")
        yield Post(
            id=str(item["answer_id"] if is_answer else item["question_id"]),
            parent=str(item.get("question_id", "")) if is_answer else "",
            accepted=str(item.get("accepted_answer_id") or accepted or ""),
            score=_whole(item.get("score")),
            title=str(item.get("title") or ""),
            body=str(item.get("body") or ""),
            link=str(item.get("link") or ""),
            licence=str(item.get("content_license") or LICENCE),
            where=where,
        )
        yield from _of_items([{"question_id": item.get("question_id"), **answer} for answer in answers], where)


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


_BLOCKS = frozenset("p div br li ul ol pre blockquote h1 h2 h3 h4 h5 h6 tr table hr".split())


class _Post(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")
        link = dict(attrs).get("href") if tag == "a" else None
        if link and link.strip().lower().startswith(("http://", "https://")):
            self.links.append(link.strip())

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def read_post(body: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a post, with one line per paragraph, and the addresses that it links to."""
    post = _Post()
    post.feed(body)
    post.close()
    lines = (" ".join(line.split()) for line in re.split(r"\n+", "".join(post.parts)))
    return "\n".join(filter(None, lines)), tuple(dict.fromkeys(post.links))

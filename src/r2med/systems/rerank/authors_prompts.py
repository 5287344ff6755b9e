"""The prompts of a reranker's authors: found where the user has them, and converted to our template form.

This package contains none of their words. A TOML file in `authors/`, with the name of our prompt file, says where the
authors keep each part of their prompt, and how the parts make turns. The files are read from the store, to which
`keep_prompt` puts them, or else from an installed package. Python files are parsed and never run.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from r2med.foundation.core.cards import Catalogue
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.notices import Command
from r2med.foundation.net.download import download
from r2med.foundation.store import Store, default_store, digest
from r2med.models.prompts.templates import FIELD, SUFFIX
from r2med.models.prompts.text_folder import TextFolder
from r2med.systems.rerank.llm_prompts import FIELDS, TURN_LINE
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS, PASSAGE_FIELDS, LLMRerankerCard
from r2med.systems.rerank.texts_in_files import READERS, escaped

AUTHORS, OWN = "authors", "own"
"""The two choices of a prompt, as typed in `prompts=`."""
KIND = "prompts"
"""The kind of artefact."""
MAX_BYTES = 1_000_000
HOST = "https://raw.githubusercontent.com"

_PART = re.compile(r"\[\[(\w+)\]\]")
_PLACE = re.compile(r"(?P<file>[^#]+)#(?P<name>[\w.]+)(?::(?P<number>\d+))?")
_ROUNDS = 5
"""Parts may be filled with parts this often."""


class AuthorsPrompt(BaseModel):
    """Where the authors of a reranker keep their prompt, and how its parts become turns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The name of our prompt file for the same reranker. By default the name of the file."""
    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    """The code repository on GitHub, OWNER/NAME."""
    commit: str = Field(pattern=r"^[0-9a-f]{7,40}$")
    """The commit at which the files are read."""
    folder: str = ""
    """The folder of the repository that the package is made of, if the package's files lie in one."""
    package: str = ""
    """The distribution that installs the same files."""
    parts: dict[str, str] = {}
    """Name of a part -> FILE#PLACE. The place is a key of a TOML or YAML file, or in a Python file the name of a
    variable or of an attribute. FUNCTION:N is the text number N of a function, counting texts of more than one word.
    """
    turns: str = ""
    """The prompt in our form. [[PART]] is the text of a part."""
    fields: dict[str, str] = {}
    """The authors' name of a field -> our name."""
    fill: dict[str, str] = {}
    """Field of the authors -> the text that takes its place, which may be a [[PART]]."""
    passage: str = ""
    """How a passage is shown, if it is not as the card of the reranker says. It may be a [[PART]]."""
    separator: str | None = None
    """What is between two passages, if it is not as the card of the reranker says."""
    unconverted: tuple[str, ...] = ()
    """What of the authors' prompt is not converted, a sentence each."""
    shared_words: float | None = None
    """The share of the authors' words that our prompt has too, if it was measured."""

    @field_validator("parts")
    @classmethod
    def _places(cls, parts: dict[str, str]) -> dict[str, str]:
        for place in parts.values():
            if not _PLACE.fullmatch(place):
                raise ValueError(f"{place!r} is not FILE#PLACE")
        return parts

    @property
    def files(self) -> list[str]:
        """The files of the parts, without the folder of the repository."""
        return list(dict.fromkeys(place.partition("#")[0] for place in self.parts.values()))

    @property
    def key(self) -> str:
        """The key of the files in the store."""
        return digest([self.repository, self.commit, self.folder, sorted(self.files)])

    def url(self, file: str) -> str:
        """Return the address of a file at the commit."""
        return f"{HOST}/{self.repository}/{self.commit}/{self._inside(file)}"

    def _inside(self, file: str) -> str:
        return f"{self.folder}/{file}" if self.folder else file

    def copied(self, folder: Path) -> dict[str, bytes]:
        """Return the files of a clone or of a folder of the user. Raises UserError if one is missing."""
        found = {}
        for file in self.files:
            paths = (folder / self._inside(file), folder / file, folder / Path(file).name)
            path = next((path for path in paths if path.is_file()), None)
            if path is None:
                raise UserError(f"{folder} does not contain {self._inside(file)} of {self.repository}")
            if not path.resolve().is_relative_to(folder.resolve()):
                raise UserError(
                    f"{path} is a link to a file outside of {folder}: give the folder that contains the file"
                )
            found[file] = _content(path)
        return found


AUTHORS_PROMPTS = Catalogue(AUTHORS, AuthorsPrompt, "authors' prompt", "docs/rerank.md lists them")


def has_choice(card: LLMRerankerCard) -> bool:
    """Return True if a trained reranker can read our prompt or that of its authors. Its printed name says which."""
    return card.is_trained and card.template in AUTHORS_PROMPTS


@dataclass(frozen=True)
class FoundPrompt:
    """The files of an authors' prompt on this machine."""

    authors: AuthorsPrompt
    source: str
    """Where the files are from, for records and messages."""
    files: Mapping[str, bytes]

    @property
    def sha256(self) -> str:
        """The digest of the files."""
        return digest({name: content.hex() for name, content in self.files.items()})

    @property
    def statement(self) -> str:
        """What a record says about the prompt."""
        return f"authors' prompt: {self.source}, {', '.join(self.authors.files)}, digest {self.sha256[:12]}"

    @cached_property
    def turns(self) -> str:
        """The prompt in our template form."""
        turns = self._converted(self.authors.turns, FIELDS)
        shown = {*FIELD.findall(turns)}
        if "query" not in shown or not shown & {"passages", "passage"}:
            raise self._fault("it does not show the query and the passages")
        return turns

    @cached_property
    def passage(self) -> str:
        """How a passage is shown, in our form; empty if it is as the card of the reranker says."""
        passage = self._converted(self.authors.passage, PASSAGE_FIELDS)
        if passage and FIELD.findall(passage).count("text") != 1:
            raise self._fault("it does not show the text of a passage once")
        return passage

    def card(self, card: LLMRerankerCard) -> LLMRerankerCard:
        """Return a reranker's card with the layout of its authors."""
        changes: dict[str, Any] = {}
        if self.passage:
            changes |= {"passage": self.passage, "scored": ""}
        if self.authors.separator is not None:
            changes["separator"] = self.authors.separator
        return card.model_copy(update=changes)

    @property
    def templates(self) -> TextFolder:
        """The prompt as a set of templates with one file."""
        return TextFolder(AUTHORS, {f"{self.authors.name}{SUFFIX}": self.turns})

    def _converted(self, text: str, known: tuple[str, ...]) -> str:
        """Return a text with all parts and fields filled in, and with our names of fields."""
        for _ in range(_ROUNDS):
            text = _PART.sub(lambda part: self._part(part[1]), text)
            text = "".join(self._filled(text))
        pieces = []
        for literal, field in _fields(text, self.authors.name):
            if unsafe := FIELD.search(literal):
                raise self._fault(f"{unsafe[0]} is text there, and would be a field here")
            pieces.append(literal)
            if field:
                name = self.authors.fields.get(field, field)
                if name not in known:
                    raise self._fault(f"{{{field}}} has no counterpart here")
                pieces.append(f"{{{name}}}")
        return "".join(pieces)

    def _filled(self, text: str) -> Iterator[str]:
        for literal, field in _fields(text, self.authors.name):
            yield escaped(literal)
            if field:
                yield self.authors.fill.get(field, f"{{{field}}}")

    def _part(self, name: str) -> str:
        place = self.authors.parts.get(name)
        match = _PLACE.fullmatch(place) if place else None
        if match is None:
            raise self._fault(f"the part [[{name}]] is not declared")
        file, where, number = match["file"], match["name"], int(match["number"] or 0)
        read = READERS.get(Path(file).suffix)
        if read is None:
            raise self._fault(f"{file} is not a TOML, YAML or Python file")
        try:
            found = read(self.files[file].decode("utf-8-sig"), where, number)
            (found or "").encode()
        except UnicodeError:
            raise self._fault(f"{file} is not UTF-8 text") from None
        except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
            raise self._fault(f"{file} cannot be parsed ({_reason(error)})") from None
        if found is None:
            raise self._fault(f"{file} has no text {place.partition('#')[2] if place else name}")
        if unsafe := _PART.search(found) or TURN_LINE.search(found):
            raise self._fault(f"{unsafe[0]} is text there, and would be a part or a turn here")
        return found

    def _fault(self, what: str) -> UserError:
        whose = f"the authors' prompt of {self.authors.name} ({self.source})"
        return UserError(f"{whose} cannot be converted: {what}; prompts=own uses ours")


def find_authors(name: str, store: Store | None = None) -> FoundPrompt | None:
    """Return the files of an authors' prompt, if they are on this machine. Nothing is fetched or imported.

    What the user put into the store comes before what a package happens to install.
    """
    authors = AUTHORS_PROMPTS.get(name)
    if authors is None:
        return None
    return _stored(authors, store or default_store()) or _installed(authors)


def read_authors(name: str, store: Store | None = None) -> FoundPrompt:
    """Return the files of an authors' prompt. Raises UserError if they are not on this machine."""
    found = find_authors(name, store)
    if found is None:
        if name not in AUTHORS_PROMPTS:
            raise UserError(
                f"the authors of {name} publish no prompt that can be read from a file: prompts=own uses ours"
            )
        raise UserError(f"the authors' prompt of {name} is not on this machine: run ", fetching(name))
    return found


def prompt_name(reranker: str) -> str:
    """Return the name of a reranker's authors' prompt. Raises UserError if no file of the authors is known."""
    card = LLM_RERANKERS.get(reranker)
    name = card.template if card is not None else reranker
    if name not in AUTHORS_PROMPTS:
        raise unknown("authors' prompt", reranker, sorted(_rerankers()))
    return name


def _rerankers() -> Iterator[str]:
    return (name for name, card in LLM_RERANKERS.items() if card.template in AUTHORS_PROMPTS)


def equal_words(ours: str, theirs: str) -> float:
    """Return the share of the authors' words that our prompt has too, counted as often as both have them."""
    own, others = (Counter(re.findall(r"\w+", FIELD.sub(" ", text.lower()))) for text in (ours, theirs))
    return sum((own & others).values()) / max(1, sum(others.values()))


def fetching(name: str) -> Command:
    """Return the command that fetches an authors' prompt."""
    return Command("fetch_prompts", name)


def keep_prompt(name: str, folder: Path | None = None, store: Store | None = None) -> FoundPrompt:
    """Put the files of an authors' prompt into the store: from a folder of the user, or from their repository.

    Raises UserError if they cannot be had, or not be converted. Then nothing is kept.
    """
    authors, store = AUTHORS_PROMPTS.card(name), store or default_store()
    if folder is not None:
        files, source = authors.copied(folder), f"copied from a folder, {authors.repository}"
    else:
        files, source = _downloaded(authors, store), f"{authors.repository} at {authors.commit[:12]}"
    found = FoundPrompt(authors, source, files)
    _ = found.turns, found.passage  # raises UserError if it cannot be converted

    def build(made: Path) -> dict[str, Any]:
        for number, content in enumerate(files.values()):
            (made / f"{number}.txt").write_bytes(content)
        return {"files": list(files), "source": source}

    store.discard(KIND, authors.key)
    store.make(KIND, authors.key, build)
    return found


def _downloaded(authors: AuthorsPrompt, store: Store) -> dict[str, bytes]:
    scratch, files = store.scratch(), {}
    for number, file in enumerate(authors.files):
        path = scratch / str(number)
        download(authors.url(file), path, MAX_BYTES)
        files[file] = _content(path)
    return files


def _content(path: Path) -> bytes:
    """Return the content of a file. Raises UserError if it cannot be read, or is too large for a prompt."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: it cannot be read ({error.strerror})") from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{path} is larger than {MAX_BYTES:,} bytes: it cannot be the file of a prompt")
    return content


def _installed(authors: AuthorsPrompt) -> FoundPrompt | None:
    """Return the files of an installed package. The package is not imported."""
    try:
        package = metadata.distribution(authors.package) if authors.package else None
    except metadata.PackageNotFoundError:
        package = None
    if package is None:
        return None
    paths = {file: Path(str(package.locate_file(file))) for file in authors.files}
    if not all(path.is_file() for path in paths.values()):
        return None
    source = f"{authors.package} {package.version}"
    return FoundPrompt(authors, source, {file: _content(path) for file, path in paths.items()})


def _stored(authors: AuthorsPrompt, store: Store) -> FoundPrompt | None:
    artefact = store.get(KIND, authors.key)
    if artefact is None:
        return None
    files = {name: artefact.file(f"{number}.txt").read_bytes() for number, name in enumerate(artefact.meta["files"])}
    return FoundPrompt(authors, str(artefact.meta["source"]), files)


def _fields(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield each literal text of a format string with the field that follows it; the last has none."""
    literal = ""
    try:
        for more, field, spec, conversion in string.Formatter().parse(text):
            literal += more  # a text with braces comes in pieces
            if field is None:
                continue
            if spec or conversion or not field.isidentifier():
                raise UserError(f"the authors' prompt of {name} cannot be converted: {{{field}}} is computed")
            yield literal, field
            literal = ""
    except ValueError as error:
        raise UserError(f"the authors' prompt of {name} cannot be converted: ", error) from None
    yield literal, ""


def _reason(error: BaseException) -> str:
    """Return the first line of what a parser says."""
    return next(iter(str(error).splitlines()), type(error).__name__)

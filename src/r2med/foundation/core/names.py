"""What a name means: a class, or a card in a folder, of r2med, of an installed package or of the user.

`names.toml` lists the classes and the folders of cards that come with r2med. An installed package adds stages by the
entry-point group `r2med.stages`, and folders of cards by the group `r2med.plugins`. The variable `R2MED_PLUGINS` names
folders of the user. A class is imported when its name is used, and a card is read then.
"""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from r2med.foundation.core.errors import UserError, checked_name, explained, nearest, unknown

if TYPE_CHECKING:
    from pydantic import BaseModel

log = logging.getLogger("r2med")

Kind = Literal["expand", "retrieve", "rerank", "build"]
"""The kinds of stages: those of systems, and the steps of builds."""
KINDS: tuple[Kind, ...] = ("expand", "retrieve", "rerank")
"""The kinds of stages of systems, in the order in which a name is looked up."""
NOUNS: Mapping[Kind, str] = {
    "expand": "expansion",
    "retrieve": "retriever",
    "rerank": "reranker",
    "build": "step of a build",
}

Origin = Literal["built-in", "plugin", "user"]
"""Who put a card or a text there: this package, an installed plugin, or a user with R2MED_PLUGINS."""

CardType = TypeVar("CardType", bound="BaseModel")
Named = TypeVar("Named")
"""What a folder of cards or texts holds under a name."""


# What comes with r2med


@dataclass(frozen=True)
class BuiltInStages:
    """The stages of one kind that come with r2med, each with its class as "module:Class"."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Name -> class, for stages that need code."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Beginning of a name -> class, for stages without a card: hub models, folders, Python objects, run files, …"""
    cards: Mapping[str, str] = field(default_factory=dict)
    """Kind of card -> the class of its stages; empty if the field `form` of a card decides."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """Value of that field -> class."""


_NAMES: dict[str, Any] = tomllib.loads(resources.files("r2med").joinpath("names.toml").read_text(encoding="utf-8"))
BUILT_IN_STAGES: Mapping[Kind, BuiltInStages] = {kind: BuiltInStages(**_NAMES.get(kind, {})) for kind in NOUNS}
CARD_FOLDERS: Mapping[str, str] = _NAMES["folders"]
"""Kind of card or other data file -> its folder inside this package."""


# What installed packages add


@contextmanager
def _left_out_if_broken(entry: metadata.EntryPoint) -> Iterator[None]:
    """Warn about a plugin that cannot be used, so that everything else still works."""
    try:
        yield
    except UserError as error:
        reason = str(error)
    except (Exception, SystemExit) as error:  # importing a plugin may fail in any way
        reason = f"importing it failed with {type(error).__name__}: {error}"
    else:
        return
    log.warning("the plugin %s = %s is left out: %s", entry.name, entry.value, " ".join(reason.split()))


@cache
def _installed_packages() -> tuple[Traversable, ...]:
    """Return the folders of installed plugins. The search runs once, because it reads a file of every package."""
    packages = []
    for entry in sorted(metadata.entry_points(group="r2med.plugins")):
        with _left_out_if_broken(entry):
            packages.append(resources.files(entry.value))
    return tuple(packages)


@cache
def _installed_stages() -> Mapping[str, type[Any]]:
    """Return name -> class for the stages of installed plugins."""
    stages: dict[str, type[Any]] = {}
    for entry in sorted(metadata.entry_points(group="r2med.stages")):
        with _left_out_if_broken(entry):
            if entry.name in stages or any(_class_path(entry.name, kind) for kind in NOUNS):
                taken = f"there is a stage {entry.name} already"
                raise UserError(f"{taken}, and a plugin cannot replace it; give it another name")
            stage = entry.load()
            is_stage = isinstance(stage, type) and hasattr(stage, "settings_of_card")
            if not is_stage or not isinstance(getattr(stage, "kind", None), str):
                raise UserError("a stage is a subclass of r2med.extend.Stage with a kind")
            stages[entry.name] = stage
    return stages


@cache
def _warn(message: str) -> None:
    """Write a warning once per process."""
    log.warning("%s", message)


# Files of cards and texts


class Folder(NamedTuple):
    """A folder with files of a kind, and who put it there."""

    path: Traversable | Path
    origin: Origin

    def files(self, suffix: str = ".toml") -> dict[str, Traversable | Path]:
        """Return name (without suffix) -> file."""
        listed = self.path.iterdir() if self.path.is_dir() else ()
        return {file.name.removesuffix(suffix): file for file in listed if file.name.endswith(suffix)}


def folders_of(kind: str) -> list[Folder]:
    """Return the folders with files of a kind: first of this package, then of installed plugins, then of the user."""
    built_in = Folder(resources.files("r2med").joinpath(CARD_FOLDERS[kind]), "built-in")
    plugins = [Folder(package.joinpath(kind), "plugin") for package in _installed_packages()]
    return [built_in, *plugins, *(Folder(path, "user") for path in _user_folders(kind))]


def _user_folders(kind: str) -> list[Path]:
    """Return the folders of R2MED_PLUGINS. They are looked up each time: notebooks change the environment."""
    paths = []
    for folder in filter(None, os.environ.get("R2MED_PLUGINS", "").split(os.pathsep)):
        try:
            paths.append(Path(folder).expanduser() / kind)
        except RuntimeError:
            raise UserError(f"R2MED_PLUGINS: {folder} names the home folder of an unknown user") from None
    return paths


FileState = tuple[str, int, int, int]
"""Path, size and times of a file. They change when somebody edits it."""


def _user_files(kind: str) -> tuple[FileState, ...]:
    """Return the states of the user's files of a kind: what was read of them before is read again if one changed."""
    paths = [file for folder in _user_folders(kind) if folder.is_dir() for file in folder.iterdir()]
    states = [(file, file.stat()) for file in sorted(paths) if file.is_file()]
    return tuple((str(file), state.st_size, state.st_mtime_ns, state.st_ctime_ns) for file, state in states)


def files_of(kind: str, suffix: str = ".toml") -> dict[str, Traversable | Path]:
    """Return name (without suffix) -> file for a kind of text or suite."""
    files: dict[str, Traversable | Path] = {}
    for folder in folders_of(kind):
        _add(files, folder.files(suffix), folder, kind)
    return files


def _add(entries: dict[str, Named], more: Mapping[str, Named], folder: Folder, kind: str) -> None:
    """Add the files or cards of a folder. A user's may replace others, with a notice. Those of a plugin may not."""
    for name, entry in more.items():
        if name not in entries:
            entries[name] = entry
        elif folder.origin == "plugin":
            _warn(f"{entry} is left out: {name} is in {kind} already, and a plugin cannot replace it")
        else:
            _warn(f"{entry} of R2MED_PLUGINS replaces {name} of the {kind} that are built in or installed")
            entries[name] = entry


# Cards


@dataclass(frozen=True)
class RawCard:
    """A card as its file says it, before the fields are checked."""

    file: Traversable | Path
    origin: Origin = "user"
    fields: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    """Why the card cannot be read. It then has no fields, and is reported where it is used."""

    def __str__(self) -> str:
        return str(self.file)


def raw_cards(kind: str) -> dict[str, RawCard]:
    """Return the cards of a kind by name. Their fields are not checked yet."""
    return _raw_cards(kind, _user_files(kind))


@cache
def _raw_cards(kind: str, user_files: tuple[FileState, ...]) -> dict[str, RawCard]:
    cards: dict[str, RawCard] = {}
    for folder in folders_of(kind):
        _add(cards, cards_in(folder), folder, kind)
    return cards


def cards_in(folder: Folder) -> dict[str, RawCard]:
    """Return the cards of one folder by name."""
    cards: dict[str, RawCard] = {}
    for stem, file in sorted(folder.files().items()):
        for name, card in _cards_of(file, stem, folder.origin).items():
            twice = f"{file}: the card {name} is in {cards[name]} too" if name in cards else ""
            cards[name] = RawCard(file, folder.origin, fault=twice) if twice else card
    return cards


def _cards_of(file: Traversable | Path, stem: str, origin: Origin) -> dict[str, RawCard]:
    """Return the cards of a file by name: each of its `[cards.NAME]` tables, or the whole file as one card.

    What stands above such tables belongs to all of them. A table adds fields, or changes them.
    """
    try:
        shared = read_toml(file)
        tables = _tables(shared, "cards", file)
    except UserError as error:
        return {stem: RawCard(file, origin, fault=str(error))}
    return {name: RawCard(file, origin, _merged(shared, table)) for name, table in (tables or {stem: {}}).items()}


class Catalogue(Mapping[str, CardType], Generic[CardType]):
    """All cards of one kind by name, from this package, plugins and R2MED_PLUGINS. They are checked when first used.

    A card is a TOML file, or one of the `[cards.NAME]` tables of a file of several cards. It may have
    `[variants.NAME]` tables, which change some of its fields. The name of a variant is CARD:NAME.
    """

    def __init__(self, kind: str, card: type[CardType], noun: str, more: str = "") -> None:
        self.kind = kind
        self.noun = noun
        self._card = card
        self._more = more
        self._checked_once = cache(lambda user_files: self.checked())

    def card(self, name: str) -> CardType:
        """Return the card of a name. Raises UserError if no card has this name."""
        if name not in self:
            raise unknown(self.noun, name, self, self._more)
        return self[name]

    def __getitem__(self, name: str) -> CardType:
        return self._cards[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cards)

    def __len__(self) -> int:
        return len(self._cards)

    @property
    def _cards(self) -> Mapping[str, CardType]:
        # Uses the environment and the user's files as they are now. A process may change them, as notebooks do.
        return self._checked_once(_user_files(self.kind))

    def checked(self) -> Mapping[str, CardType]:
        """Return all cards with their fields checked."""
        cards: dict[str, CardType] = {}
        for name, raw in sorted(raw_cards(self.kind).items()):
            try:
                cards |= self.read(raw, checked_name(name, self.noun))
            except UserError as error:
                if raw.origin != "plugin":
                    raise
                _warn(f"{error}: this card of an installed plugin is left out")
        return cards

    def read(self, raw: RawCard, name: str) -> dict[str, CardType]:
        """Return a card and its variants, by name. Raises UserError that names the file and the wrong field."""
        if raw.fault:
            raise UserError(raw.fault)
        fields = dict(raw.fields)
        variants = _tables(fields, "variants", raw.file)
        cards = {name: validated(self._card, {"name": name, **fields}, raw.file)}
        for variant, changes in variants.items():
            changed = {"name": name, "variant": variant, **_merged(fields, changes)}
            cards[f"{name}:{variant}"] = validated(self._card, changed, raw.file)
        return cards

    def read_file(self, file: Path, name: str) -> CardType:
        """Return the one card of a file that is in no folder of cards."""
        return self.read(RawCard(file, fields=read_toml(file)), name)[name]


def _tables(content: dict[str, Any], field: str, file: Traversable | Path) -> dict[str, dict[str, Any]]:
    """Remove a field that holds tables from a card, and return the tables."""
    tables = content.pop(field, {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise UserError(f"{file}: {field} are tables, as in [{field}.NAME]")
    return tables


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in changes.items():
        merged[name] = _merged(base.get(name, {}), value) if isinstance(value, dict) else value
    return merged


def read_toml(file: Traversable | Path, kind: str = "card") -> dict[str, Any]:
    """Return the content of a TOML file. Raises UserError, with the kind of file, if it is not TOML."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except RecursionError:
        raise UserError(f"{file}: not a TOML {kind}: it is nested too deeply") from None
    except ValueError as error:  # wrong TOML, wrong UTF-8, or an integer with thousands of digits
        raise UserError(f"{file}: not a TOML {kind}: {error}") from None


def validated(card: type[CardType], content: Mapping[str, Any], file: Traversable | Path) -> CardType:
    """Return the card with this content. Raises UserError that names the file and the field if the content is wrong."""
    from pydantic import ValidationError

    try:
        return card(**content)
    except ValidationError as error:
        raise UserError(f"{file}: {explained(error, card.model_fields)}") from None


# Stages


def kind_of(name: str) -> Kind | None:
    """Return the kind of a stage of systems; None if it is unknown, or if its position decides, as for hf:ORG/NAME."""
    for kind in KINDS:
        if _class_path(name, kind):
            return kind
    stage = _installed_stages().get(name)
    return stage.kind if stage is not None and stage.kind in KINDS else None


def known_names(kind: Kind) -> list[str]:
    """Return the names of all stages of a kind."""
    stages = BUILT_IN_STAGES[kind]
    plugged = (name for name, stage in _installed_stages().items() if stage.kind == kind)
    return [*stages.names, *sorted({name for cards in stages.cards for name in raw_cards(cards)}), *plugged]


def stage_class(name: str, kind: Kind) -> type[Any]:
    """Return the class that declares a name. Raises UserError if no stage of this kind has the name."""
    prefixes = BUILT_IN_STAGES[kind].prefixes
    prefix = next(filter(name.startswith, prefixes), "")
    stage: type[Any] | None
    if path := prefixes[prefix] if prefix else _class_path(name, kind):
        stage = resolve_name(path)
        return stage
    stage = _installed_stages().get(name)
    if stage is not None and stage.kind == kind:
        return stage
    if kind in ("retrieve", "rerank") and (prefix := _forgotten_prefix(name)):
        raise UserError(f"no {NOUNS[kind]} {name!r}: did you mean {prefix}{name}?")
    more = "bm25, one of r2med list models, hf:ORG/NAME or path:DIR" if kind == "retrieve" else ""
    raise unknown(NOUNS[kind], name, known_names(kind), more)


def _class_path(name: str, kind: Kind) -> str:
    """Return "module:Class" for a name of `names.toml` or of a card; empty if there is no such stage of this kind.

    Raises UserError if the field `form` of a card has a wrong value.
    """
    stages = BUILT_IN_STAGES[kind]
    if name in stages.names:
        return stages.names[name]
    for cards, path in stages.cards.items():
        if (card := raw_cards(cards).get(name.partition(":")[0])) is not None:
            return path or _class_of_form(card, stages.forms)
    return ""


def _class_of_form(card: RawCard, forms: Mapping[str, str]) -> str:
    if card.fault:
        raise UserError(card.fault)
    form = str(card.fields.get("form", ""))
    if form not in forms:
        raise UserError(f"{card.file}: form {form!r}{nearest(form, forms)}: {' or '.join(forms)}")
    return forms[form]


def _forgotten_prefix(name: str) -> str:
    """Return the prefix that makes a word a model of the user's own: path: for a folder, py: for MODULE:NAME."""
    if ("/" in name or os.sep in name) and Path(name).is_dir():
        return "path:"
    return "py:" if Path(f"{name.partition(':')[0]}.py").is_file() and ":" in name else ""

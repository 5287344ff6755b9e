"""Datasets of the hub by a word, `hub:ORG/NAME[@revision][/config][:split]`, without a card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r2med.data.dataset_cards import DatasetCard, Hub, cards
from r2med.data.hub import FetchedTables
from r2med.data.layouts.hub_tables import UnknownColumnsError
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, digest

HUB_PREFIX = "hub:"

_PART = r"\w[\w.+=-]*"  # no part can be `..`, because records are in folders of these names
_WORD = re.compile(rf"hub:({_PART}/{_PART})(?:@({_PART}))?(?:/({_PART}))?(?::({_PART}))?")


def parse_hub_word(word: str) -> Hub:
    """Return the source that a word names. Raises UserError if the word has another form."""
    match = _WORD.fullmatch(word)
    if match is None:
        raise UserError(f"{word[:100]!r} is not hub:ORG/NAME, hub:ORG/NAME@REVISION, hub:ORG/NAME/CONFIG:SPLIT")
    repository, revision, config, split = (part or "" for part in match.groups())
    return Hub(repository=repository, revision=revision, config=config, split=split)


def hub_word(hub: Hub) -> str:
    """Return the word that names a source, without its revision: the card of the source has it."""
    return f"{HUB_PREFIX}{hub.repository}{hub.config and f'/{hub.config}'}{hub.split and f':{hub.split}'}"


def card_of(hub: Hub) -> DatasetCard | None:
    """Return the card that describes exactly this source, if there is one."""
    for card in cards().values():
        if card.hub is None or card.hub.repository != hub.repository or card.folder:
            continue
        same_part = (card.hub.config, card.hub.split) == (hub.config, hub.split)
        if same_part and hub.revision in ("", card.hub.revision):
            return card
    return None


def hub_name(word: str) -> str:
    """Return the name in records of the dataset that a word names: that of its card, or ORG/NAME/config/split."""
    hub = parse_hub_word(word)
    if card := card_of(hub):
        return card.name
    return "/".join(part for part in (hub.repository, hub.config, hub.split) if part)


def described(fetched: FetchedTables, name: str) -> DatasetCard:
    """Return a card for a dataset that has none: its source, and the licence that the repository states."""
    return DatasetCard(name=name, hub=fetched.hub, licence=str(_metadata(fetched.folder).get("license") or ""))


def guessed_folder(fetched: FetchedTables, name: str, unknown: UnknownColumnsError, store: Store) -> tuple[Path, str]:
    """Return a folder in R2MED's layout made of tables with unknown columns, and the guess of `data import`.

    Raises UserError if the guesser finds no documents either.
    """
    from r2med.data.tables.importing import plan_import

    files = dict.fromkeys(fetched.folder / file for table in fetched.tables.values() for file in table.files)

    def build(folder: Path) -> dict[str, Any]:
        try:
            plan = plan_import(list(files))
        except UserError as error:
            raise UserError(f"{unknown}; {error}") from None
        plan.write(folder / "dataset")
        return {"dataset": name, "guess": "; ".join(_guess(part) for part in plan.parts)}

    names = [str(file.relative_to(fetched.folder)) for file in files]
    key = digest(["hub guess 1", fetched.hub.repository, fetched.hub.revision, names])
    made = store.about(name).make("hub", key, build)
    return made.path / "dataset", str(made.meta["guess"])


def _guess(part: Any) -> str:
    columns = ", ".join(f"{role}: {column}" for role, column in part.columns.items())
    return f"{part.kind} from {part.table} ({columns})"


def _metadata(folder: Path) -> Mapping[str, Any]:
    """Return the metadata at the top of a repository card; nothing if it cannot be read."""
    readme = folder / "README.md"
    try:
        from huggingface_hub import metadata_load

        found = metadata_load(readme) if readme.is_file() else None
    except Exception:  # any YAML error: the licence is then not stated
        return {}
    return found if isinstance(found, dict) else {}

"""Choose the datasets of a comparison so that all belong to one group: groups are never averaged together."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from r2med.data.dataset_cards import OWN_DATA, home_group
from r2med.foundation.core.errors import UserError

DEMO = "demo"


Home = tuple[str, str]
"""A group of datasets, and the overlays whose labels it is scored with."""


def of_one_group(published: Mapping[str, str], named: bool) -> tuple[list[str], list[str]]:
    """Return the datasets of the first group that is not the demo, and a notice for each other group or overlay.

    `published` is dataset -> its name without overlays. `named` is True if the user named the datasets. Raises
    UserError if these are of several groups.
    """
    homes = homes_of(published)
    if len(homes) <= 1:
        return list(published), []
    if named:
        words = "; ".join(f"{group}{labels}: {', '.join(members)}" for (group, labels), members in homes.items())
        raise UserError(
            f"datasets of different groups or labels are not averaged together ({words}): compare one at a time"
        )
    chosen = min(homes, key=preference)
    return homes.pop(chosen), [not_averaged(home, members) for home, members in homes.items()]


def homes_of(published: Mapping[str, str]) -> dict[Home, list[str]]:
    """Return home -> its datasets. `published` is dataset -> its name without overlays."""
    # One dataset with and without an overlay must not count twice.
    is_repeated = len(set(published.values())) < len(published)
    homes: dict[Home, list[str]] = {}
    for dataset, base in published.items():
        labels = dataset.removeprefix(base) if is_repeated else ""
        homes.setdefault((home_group(base), labels), []).append(dataset)
    return homes


def preference(home: Home) -> int:
    """Return the place of a home among others: 0 for published labels, 1 for the demo, 2 for other labels."""
    group, labels = home
    return 2 if labels else int(group == DEMO)


def not_averaged(home: Home, members: Sequence[str]) -> str:
    """Return the notice for a home that is left out."""
    group, labels = home
    if labels:
        return f"{', '.join(members)} is left out, because scores with other labels are not averaged together"
    if group == DEMO:
        return f"the demo is left out, because it says nothing about other data: choose it by data (--data {DEMO})"
    words = ",".join(members) if group == OWN_DATA else group
    typed = f"data (--data {shlex.quote(words)})"
    return f"{group} is left out, because groups are not averaged together: choose it by {typed}"

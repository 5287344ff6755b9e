"""Choose the datasets of a comparison so that all belong to one group: groups are never averaged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from r2med.core.errors import UserError
from r2med.data.dataset_cards import OWN_DATA, home_group

DEMO = "demo"


def of_one_group(published: Mapping[str, str], named: bool) -> tuple[list[str], list[str]]:
    """Return the datasets of the first group that is not the demo, and a notice for each other group or overlay.

    `published` is dataset -> its name without overlays. `named` is True if the user named the datasets. Raises
    UserError if these are of several groups.
    """
    # One dataset with and without an overlay must not count twice.
    is_repeated = len(set(published.values())) < len(published)
    homes: dict[tuple[str, str], list[str]] = {}
    for dataset, base in published.items():
        labels = dataset.removeprefix(base) if is_repeated else ""
        homes.setdefault((home_group(base), labels), []).append(dataset)
    if len(homes) <= 1:
        return list(published), []
    if named:
        words = "; ".join(f"{group}{labels}: {', '.join(members)}" for (group, labels), members in homes.items())
        raise UserError(
            f"datasets of different groups or labels are not averaged together ({words}): compare one at a time"
        )
    plain = [home for home in homes if not home[1]]
    chosen = next(iter([*(home for home in plain if home[0] != DEMO), *plain, *homes]))
    return homes.pop(chosen), [_notice(*home, members) for home, members in homes.items()]


def _notice(home: str, labels: str, members: Sequence[str]) -> str:
    if labels:
        return f"{', '.join(members)} is left out, because scores with other labels are not averaged together"
    if home == DEMO:
        return (
            f"the demo is left out, because it says nothing about other data: compare it with compare(data=[{DEMO!r}])"
        )
    words = list(members) if home == OWN_DATA else [home]
    return f"{home} is left out, because groups are not averaged together: compare it with compare(data={words!r})"

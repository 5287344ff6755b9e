"""Means over datasets: of a group, of its tasks, and without those that some models may have been tuned on."""

from __future__ import annotations

from collections.abc import Mapping

from r2med.data.dataset_cards import BENCHMARK, DatasetCard


def group_means(values: Mapping[str, float], cards: Mapping[str, DatasetCard | None]) -> dict[str, float]:
    """Return label -> unweighted mean: every dataset counts the same, however many queries it has.

    Where datasets of the benchmark stand beside others, the benchmark and its tasks are averaged without these.
    """
    means = {"average": _mean(list(values.values()))}
    members = {name: value for name, value in values.items() if (card := cards.get(name)) and BENCHMARK in card.groups}
    averaged = members or values
    if 0 < len(members) < len(values):
        means[BENCHMARK] = _mean(list(members.values()))
    tasks = dict.fromkeys(task for name in averaged if (task := _task(cards.get(name))))
    if len(tasks) > 1:
        for task in tasks:
            means[task] = _mean([v for name, v in averaged.items() if _task(cards.get(name)) == task])
    apart = [name for name in averaged if (card := cards.get(name)) is not None and card.also_averaged_without]
    if apart and len(apart) < len(averaged):
        means[f"without {', '.join(apart)}"] = _mean([v for name, v in averaged.items() if name not in apart])
    return means


def _task(card: DatasetCard | None) -> str:
    return card.task if card is not None else ""


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0

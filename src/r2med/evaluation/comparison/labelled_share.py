"""Say how many of the passages behind a mimic rate have a label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from r2med.evaluation.measure.measures import MIMIC, MIMIC_LABELLED
from r2med.evaluation.records.record import Record


def labelled_share(records: Iterable[Record]) -> Iterator[str]:
    """Yield a remark if some of the first ten passages have no label. A mimic rate is then a lower bound."""
    least = min((record.mean.get(str(MIMIC_LABELLED), 0.0) for record in records), default=1.0)
    if least < 1:
        yield (
            f"{MIMIC} counts labelled passages only, so it is a lower bound: of the first {MIMIC.cutoff} passages of "
            f"each system, {100 * least:.0f} % or more have a label"
        )

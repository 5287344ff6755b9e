"""How far people or judges agree beyond chance: coefficients with intervals.

This table is part of the public API (docs/api.md). A name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.foundation.core.lazy import lazily

# Coefficients
if TYPE_CHECKING:
    from r2med.evaluation.measure.coefficients import Agreement as Agreement
    from r2med.evaluation.measure.coefficients import cohen_kappa as cohen_kappa
    from r2med.evaluation.measure.coefficients import fleiss_kappa as fleiss_kappa
    from r2med.evaluation.measure.coefficients import gwet_ac1 as gwet_ac1
    from r2med.evaluation.measure.coefficients import krippendorff_alpha as krippendorff_alpha
    from r2med.evaluation.measure.coefficients import observed_agreement as observed_agreement

__getattr__, __dir__ = lazily(__name__)

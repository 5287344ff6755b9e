"""All that numba compiles for dense search."""

from __future__ import annotations

import numpy as np

from r2med.retrieve.dense.exact.arithmetic import sgemm_address
from r2med.retrieve.dense.exact.arrays import Asked
from r2med.retrieve.dense.exact.compiled_products import CompiledProducts
from r2med.retrieve.dense.exact.compiled_shortlists import CompiledShortlists
from r2med.retrieve.dense.exact.product_kernels import empty_product
from r2med.retrieve.dense.exact.products import Products
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import Rounding
from r2med.retrieve.dense.exact.team import compile_team
from r2med.retrieve.dense.exact.workspace import Workspace


def compile_all() -> tuple[type[Products], type[CompiledShortlists]]:
    """Compile all, or read what was compiled, in searches of two documents; return what then multiplies and chooses.

    A thread that still compiles when the process ends would abort it.
    """
    queries, rows = np.eye(2, dtype=np.float32), np.arange(2, dtype=np.int32)
    asked = Asked(queries, 1, rows, cosine=False, memory=1 << 20)
    rescorer = Rescorer(queries, cosine=False)
    batch = [(0, rescorer.hold(0, queries))]
    rounding, scores = Rounding(rescorer), np.empty((2, 4), np.float32)
    multiplies = CompiledProducts if sgemm_address() else Products
    products = multiplies(rescorer, None, rounding, threads=1)
    lists = CompiledShortlists(asked, rounding, rescorer, Workspace(), threads=1)
    step = lists.step(scores, rows, last=True)
    products.write(batch, scores, step)
    found = step()
    if [best.tolist() for best, _ in found] != [[0], [1]]:
        raise RuntimeError(f"two documents were found as {found}")
    lists.settle_part(step.work(), 0)
    compile_team(empty_product(), step.work())
    return multiplies, CompiledShortlists

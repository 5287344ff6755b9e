"""All that numba compiles for dense search."""

from __future__ import annotations

import numpy as np

from r2med.retrieve.dense.exact.arithmetic import sgemm_address
from r2med.retrieve.dense.exact.arrays import Asked
from r2med.retrieve.dense.exact.compiled_products import CompiledProducts
from r2med.retrieve.dense.exact.compiled_shortlists import CompiledShortlists
from r2med.retrieve.dense.exact.jit import reached
from r2med.retrieve.dense.exact.products import Piece, Products
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import Rounding
from r2med.retrieve.dense.exact.workspace import Workspace


def compile_all() -> tuple[type[Products], type[CompiledShortlists]]:
    """Compile all, or read what was compiled, in searches of two documents; return what then multiplies and chooses.

    A thread that still compiles when the process ends would abort it.
    """
    queries, rows = np.eye(2, dtype=np.float32), np.arange(2, dtype=np.int32)
    asked = Asked(queries, 1, rows, cosine=False, memory=1 << 20)
    rescorer = Rescorer(queries, cosine=False)
    batch = [(0, rescorer.hold(0, queries))]
    rounding, scores = Rounding(rescorer.norms, 2, cosine=False), np.empty((2, 4), np.float32)
    multiplies = CompiledProducts if sgemm_address() else Products
    products = multiplies(queries, False, rounding, threads=1)
    products.write(batch, scores)
    for joins in (True, False):
        lists = CompiledShortlists(asked, rounding, rescorer, Workspace(), threads=1)
        lists.choose(scores, rows[:0])
        final = lists.last(scores, rows)
        if joins and isinstance(products, CompiledProducts):
            final.join(products.product(batch, (Piece(0, 0, 2, 0),), scores), patient=True)
        found = final()
        lists.settle_part(lists.last(scores, rows).work, 0)
        if not reached(final.work.parts_done, 1) or [best.tolist() for best, _ in found] != [[0], [1]]:
            raise RuntimeError(f"two documents were found as {found}")
    return multiplies, CompiledShortlists

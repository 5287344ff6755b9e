"""A system is expansion → retriever → rerankers. It is parsed from a spec, prints as that spec, and runs.

bm25
bm25+bge
rm3 → bm25
hyde(o3-mini, samples=3) → fuse(bm25+minilm, method=minmax)
bm25+nv → bge-reranker@100 → groupwise(o3-mini)@20
reasoner(o3-mini)
"""

from r2med.systems.system.outcome import Outcome
from r2med.systems.system.system import System

__all__ = ["Outcome", "System"]

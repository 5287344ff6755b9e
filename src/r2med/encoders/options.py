"""How models are run here: device, precision, backend, where weights lie. One value, from flags or the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from r2med.errors import UserError


@dataclass(frozen=True)
class Options:
    """What a user may set about running models; none of it belongs to a model's card."""

    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps; auto takes all GPUs there are."""
    dtype: str = "auto"
    """auto: float32 on a CPU, bfloat16 (or float16) on a GPU."""
    backend: str = "torch"
    """torch, openvino or onnx."""
    trust_remote_code: bool = False
    paths: tuple[tuple[str, Path], ...] = ()
    """Weights given by hand: (model name, folder), from --model-path NAME=DIR."""
    memory: int = 2 << 30
    """Bytes that blocks of vectors and batches may take."""
    tokens_per_batch: int = 0
    """0: by device."""
    budget_usd: float | None = None
    """Dollars that API calls may cost before the run stops."""
    base_urls: tuple[tuple[str, str], ...] = ()
    """(provider, URL) where an API is not at its usual place."""

    @staticmethod
    def parse_path(text: str) -> tuple[str, Path]:
        """Read NAME=DIR."""
        name, equals, folder = text.partition("=")
        if not equals or not name or not folder:
            raise UserError(f"--model-path takes NAME=DIR, not {text!r}")
        return name, Path(folder).expanduser()

    def path_of(self, name: str) -> Path | None:
        """Return where a model's weights were put by hand: --model-path first, then R2MED_MODELS/NAME."""
        for known, folder in self.paths:
            if known == name:
                if not folder.is_dir():
                    raise UserError(f"--model-path {name}={folder}: there is no such folder")
                return folder
        for place in filter(None, os.environ.get("R2MED_MODELS", "").split(os.pathsep)):
            if (folder := Path(place).expanduser() / name).is_dir():
                return folder
        return None

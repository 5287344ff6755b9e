"""Which devices encode, in which precision, and what running out of memory looks like on them."""

from __future__ import annotations

import torch

from r2med.errors import UserError, nearest

DTYPES = ("float32", "bfloat16", "float16")


def devices(choice: str) -> tuple[str, ...]:
    """Return the devices of a choice: `auto` means all GPUs, else Apple's, else the CPU; a comma separates several."""
    if choice == "auto":
        if torch.cuda.is_available():
            return tuple(f"cuda:{i}" for i in range(torch.cuda.device_count()))
        return ("mps",) if torch.backends.mps.is_available() else ("cpu",)
    return tuple(_device(part.strip()) for part in choice.split(","))


def _device(name: str) -> str:
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdigit()):
        raise UserError(
            f"no device {name!r}{nearest(name, ['cpu', 'cuda', 'mps', 'auto'])}: auto, cpu, cuda, cuda:1, mps"
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise UserError("--device mps: this machine has no Apple GPU that torch can use, try --device auto")
    if kind == "cuda":
        there = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if int(number or 0) >= there:
            seen = {0: "no GPU", 1: "one GPU, cuda:0"}.get(there, f"{there} GPUs, cuda:0 to cuda:{there - 1}")
            raise UserError(f"--device {name}: torch sees {seen} here, try --device auto")
        return f"cuda:{number or 0}"
    return kind


def dtype_name(choice: str, device: str) -> str:
    """Return the precision for a device: float32 where half precision is slow, else what the GPU has in hardware."""
    if choice == "auto":
        if not device.startswith("cuda"):
            return "float32"
        # Not is_bf16_supported(): it says yes to GPUs that only emulate it.
        return "bfloat16" if torch.cuda.get_device_capability(device)[0] >= 8 else "float16"
    if choice not in DTYPES:
        raise UserError(f"no dtype {choice!r}{nearest(choice, DTYPES)}: auto, {', '.join(DTYPES)}")
    return choice


def torch_dtype(name: str) -> torch.dtype:
    """Return torch's object for a precision."""
    found: torch.dtype = getattr(torch, name)
    return found


def tokens_per_batch(choice: int, device: str) -> int:
    """Return how many padded tokens a batch may have: enough to fill the device, few enough to fit its caches."""
    if choice:
        return choice
    return 8192 if device.startswith("cuda") else 4096


def is_out_of_memory(error: Exception) -> bool:
    """Say whether an error means that the batch was too large for the device."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "alloc" in text)


def release() -> None:
    """Give the GPU's cached blocks back: after a failure they are too fragmented for the next attempt."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()

"""Choose devices, engines and precision, and recognise out-of-memory errors.

torch is imported only if a GPU may be used, because the key of vectors in the store must not take seconds.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from shlex import quote
from typing import Any

from r2med.foundation.core.errors import UserError, check_installed, unknown
from r2med.foundation.engine.work import WorkNeeds
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store

DTYPES = ("float32", "bfloat16", "float16")
BACKENDS = ("torch", "openvino")


def devices(choice: str) -> tuple[str, ...]:
    """Return the devices of a choice. Several are separated by commas.

    `auto` means all GPUs, otherwise Apple's GPU, otherwise the CPU.
    """
    if choice == "auto":
        if not _may_use_gpus():
            return ("cpu",)
        import torch

        if torch.cuda.is_available():
            return tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
        return ("mps",) if torch.backends.mps.is_available() else ("cpu",)
    return tuple(_device(part.strip()) for part in choice.split(","))


def _may_use_gpus() -> bool:
    """Return False if torch is not installed, or was built for CPUs alone. A small file of its package says so."""
    spec = importlib.util.find_spec("torch")
    if spec is None:
        return False
    if sys.platform == "darwin" or "torch" in sys.modules or spec.origin is None:
        return True
    try:
        versions = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return True
    builds = re.findall(r"^(?:cuda|hip|rocm|xpu)\b[^=\n]*=\s*(.+)$", versions, re.MULTILINE)
    return not builds or any(build.strip() != "None" for build in builds)


def _device(name: str) -> str:
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdigit()):
        raise unknown("device", name, ["cpu", "cuda", "mps", "auto"], "auto, cpu, cuda, cuda:1, mps")
    if kind == "cpu":
        return kind
    check_installed(f"device (--device {quote(name)})", ["torch"])
    import torch

    if kind == "mps":
        if not torch.backends.mps.is_available():
            raise UserError(
                "device (--device mps): this machine has no Apple GPU that torch can use; try device (--device auto)",
            )
        return kind
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        seen = {0: "no GPU", 1: "one GPU, cuda:0"}.get(count, f"{count} GPUs, cuda:0 to cuda:{count - 1}")
        raise UserError(
            f"device (--device {quote(name)}): torch sees {seen} on this machine; try device (--device auto)"
        )
    return f"cuda:{number or 0}"


def dtype_name(choice: str, device: str, merged: bool = False) -> str:
    """Return the precision for a device: float32 if half precision is slow, otherwise what the GPU supports.

    `merged`: an adapter is merged into the weights. bfloat16 has too few digits for its small changes: where it changes
    weights by 0.5 %, a third of the change would be lost.
    """
    if choice == "auto":
        if not device.startswith("cuda"):
            return "float32"
        if merged:
            return "float16"
        import torch

        # Not is_bf16_supported(), because it returns True for GPUs that only emulate bfloat16.
        return "bfloat16" if torch.cuda.get_device_capability(device)[0] >= 8 else "float16"
    if choice not in DTYPES:
        raise unknown("dtype", choice, DTYPES, f"auto, {', '.join(DTYPES)}")
    return choice


def dtype_setting(dtype: str) -> dict[str, Any]:
    """Return the precision as an argument for the installed version of transformers."""
    import torch
    import transformers

    release = tuple(int(part) for part in re.findall(r"\d+", transformers.__version__)[:2])
    return {"dtype" if release >= (4, 56) else "torch_dtype": getattr(torch, dtype)}


def placement(setup: Setup, merged: bool = False) -> tuple[tuple[str, ...], str]:
    """Return the devices and the precision of a setup. Raises UserError if this machine has no such device.

    `merged`: an adapter is merged into the weights.
    """
    check_installed("a model on this machine", ["torch", "transformers"])
    names = devices(setup.device)
    return names, dtype_name(setup.dtype, names[0], merged)


def gpu_of(device: str) -> str | None:
    """Return the name of the chosen GPU, or None for the CPU. Raises UserError if this machine has no such device."""
    name = devices(device)[0]
    return name if name.startswith("cuda") else None


def backend_key(runtime: Runtime, merged: bool = False) -> dict[str, str]:
    """Return the backend and its precision on the machines that will encode, for the key of vectors.

    `merged`: an adapter is merged into the weights. Raises UserError if it cannot run there. Of a cluster one node is
    asked. Another one that differs is refused when it returns vectors.
    """
    [(_, backend)] = runtime.engine.map(_backend, [(runtime.setup, merged)], runtime.store, WorkNeeds(gpu=True))
    return backend


def _backend(question: tuple[Setup, bool], store: Store) -> tuple[dict[str, str], dict[str, str]]:
    """Return the backend of this machine, which is its own key."""
    setup, merged = question
    names, dtype = placement(setup, merged)
    backend = setup.backend
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    if backend == "openvino":
        if set(names) != {"cpu"}:
            raise UserError(f"backend (--backend {quote(backend)}) runs only on the CPU; add device (--device cpu)")
        if setup.dtype != "auto":
            raise UserError(
                f"backend (--backend {quote(backend)}) chooses its own precision; remove dtype (--dtype "
                f"{quote(setup.dtype)})",
            )
        check_installed("backend (--backend openvino)", ["openvino"])
        dtype = _openvino_dtype()
    here = {"backend": backend, "dtype": dtype}
    return here, here


def check_torch(setup: Setup, model: str) -> None:
    """Raise UserError if the setup asks for another backend but the model can run only on torch."""
    if setup.backend != "torch":
        raise UserError(f"backend (--backend {quote(setup.backend)}): {model} runs only on torch")


def load_openvino() -> Any:
    """Return OpenVINO without its telemetry. By default it reports every conversion of a model to its makers."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # As if it were not installed.
    import openvino

    return openvino


def _openvino_dtype() -> str:
    """Return the default precision of OpenVINO: half precision on CPUs that support it in hardware."""
    hint = load_openvino().Core().get_property("CPU", "INFERENCE_PRECISION_HINT").get_type_name()
    return {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}.get(hint, str(hint))


OUT_OF_MEMORY_MESSAGE = re.compile(
    r"out of memory"  # CUDA, MPS and XPU.
    r"|DefaultCPUAllocator: (can't allocate memory|not enough memory)"
    r"|(CUBLAS|CUDNN)_STATUS_ALLOC_FAILED"
    r"|std::bad_alloc"  # OpenVINO.
)
"""Pattern for messages of RuntimeErrors that mean too little memory."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if an error means that the batch or the model was too large for the device."""
    if isinstance(error, MemoryError):
        return True
    torch = sys.modules.get("torch")  # If torch is not imported, the error cannot come from it.
    if torch is not None and isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and OUT_OF_MEMORY_MESSAGE.search(str(error)) is not None


def release() -> None:
    """Release the GPU's cached blocks. After a failure they are too fragmented for the next attempt."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()

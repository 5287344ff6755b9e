"""Devices and precisions: chosen automatically, and a missing device gives a one-line error."""

import subprocess
import sys

import pytest
import torch

from r2med.foundation.core.errors import UserError
from r2med.models.encoders import devices


@pytest.fixture
def gpus(monkeypatch):
    """Return a function that makes torch see some GPUs of a generation."""

    def pretend(count, generation=9):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda name: (generation, 0))
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)

    return pretend


def test_auto_uses_all_gpus_or_else_the_cpu(gpus, monkeypatch):
    gpus(3)
    assert devices.devices("auto") == ("cuda:0", "cuda:1", "cuda:2")
    gpus(0)
    assert devices.devices("auto") == ("cpu",)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert devices.devices("auto") == ("mps",)


def test_weights_with_a_merged_adapter_are_never_rounded_to_bfloat16_by_themselves(gpus):
    gpus(1)
    assert devices.dtype_name("auto", "cuda:0") == "bfloat16"
    assert devices.dtype_name("auto", "cuda:0", merged=True) == "float16"
    assert devices.dtype_name("auto", "cpu", merged=True) == "float32"
    assert devices.dtype_name("bfloat16", "cuda:0", merged=True) == "bfloat16"


def test_named_devices(gpus):
    gpus(2)
    assert devices.devices("cuda") == ("cuda:0",)
    assert devices.devices("cuda:1,cuda:0") == ("cuda:1", "cuda:0")
    assert devices.devices("cpu") == ("cpu",)


@pytest.mark.parametrize(
    ("there", "choice", "message"),
    [
        (0, "cuda", r"no GPU on this machine; try device \(--device auto\)"),
        (1, "cuda:1", "one GPU, cuda:0"),
        (4, "cuda:7", "4 GPUs, cuda:0 to cuda:3"),
        (0, "mps", "no Apple GPU"),
        (0, "gpu", "no device 'gpu'"),
        (0, "cuda:x", "no device 'cuda:x'"),
        (0, "cdua", r"did you mean cuda\?"),
    ],
)
def test_a_missing_device_gives_a_one_line_error(gpus, there, choice, message):
    gpus(there)
    with pytest.raises(UserError, match=message):
        devices.devices(choice)


def test_precision_depends_on_the_device_unless_the_user_chooses_one(gpus):
    gpus(1, generation=9)
    assert devices.dtype_name("auto", "cuda:0") == "bfloat16"
    gpus(1, generation=7)
    assert devices.dtype_name("auto", "cuda:0") == "float16"
    assert devices.dtype_name("auto", "cpu") == devices.dtype_name("auto", "mps") == "float32"
    assert devices.dtype_name("float32", "cuda:0") == "float32"
    with pytest.raises(UserError, match=r"no dtype 'float23' \(did you mean float32\?\)"):
        devices.dtype_name("float23", "cpu")


def test_out_of_memory_errors_are_recognised():
    assert devices.is_out_of_memory(torch.cuda.OutOfMemoryError("CUDA out of memory."))
    assert devices.is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    assert devices.is_out_of_memory(RuntimeError("MPS backend out of memory"))
    assert devices.is_out_of_memory(MemoryError())


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        RuntimeError("expected a tensor allocated on cpu, but got one on cuda:0"),
        RuntimeError("Cannot copy out of meta tensor; no data! Please use to_empty() to reallocate"),
        RuntimeError("CUDA error: invalid allocation handle"),
        ValueError("out of memory"),
    ],
)
def test_an_error_that_only_mentions_allocation_is_not_out_of_memory(error):
    assert not devices.is_out_of_memory(error)


def test_a_torch_built_for_cpus_is_not_imported_to_look_for_gpus():
    code = (
        "import sys; from r2med.models.encoders import devices; print(devices.devices('auto'), 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    if torch.version.cuda is None and torch.version.hip is None and sys.platform != "darwin":
        assert out.strip() == "('cpu',) False"
    else:
        assert out.strip().endswith("True")

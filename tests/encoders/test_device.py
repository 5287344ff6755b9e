"""Devices and precisions: chosen by what is there; what is not there is one line."""

import pytest
import torch

from r2med.encoders import device
from r2med.errors import UserError


@pytest.fixture
def gpus(monkeypatch):
    """Return what makes torch see some GPUs of a generation."""

    def pretend(count, generation=9):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda name: (generation, 0))
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)

    return pretend


def test_auto_takes_every_gpu_else_the_cpu(gpus, monkeypatch):
    gpus(3)
    assert device.devices("auto") == ("cuda:0", "cuda:1", "cuda:2")
    gpus(0)
    assert device.devices("auto") == ("cpu",)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device.devices("auto") == ("mps",)


def test_named_devices(gpus):
    gpus(2)
    assert device.devices("cuda") == ("cuda:0",)
    assert device.devices("cuda:1,cuda:0") == ("cuda:1", "cuda:0")
    assert device.devices("cpu") == ("cpu",)


@pytest.mark.parametrize(
    ("there", "choice", "message"),
    [
        (0, "cuda", "no GPU here, try --device auto"),
        (1, "cuda:1", "one GPU, cuda:0"),
        (4, "cuda:7", "4 GPUs, cuda:0 to cuda:3"),
        (0, "mps", "no Apple GPU"),
        (0, "gpu", "no device 'gpu'"),
        (0, "cuda:x", "no device 'cuda:x'"),
        (0, "cdua", r"did you mean cuda\?"),
    ],
)
def test_a_device_that_is_not_there_is_one_line(gpus, there, choice, message):
    gpus(there)
    with pytest.raises(UserError, match=message):
        device.devices(choice)


def test_precision_follows_the_device_unless_the_user_says_otherwise(gpus):
    gpus(1, generation=9)
    assert device.dtype_name("auto", "cuda:0") == "bfloat16"
    gpus(1, generation=7)
    assert device.dtype_name("auto", "cuda:0") == "float16"
    assert device.dtype_name("auto", "cpu") == device.dtype_name("auto", "mps") == "float32"
    assert device.dtype_name("float32", "cuda:0") == "float32"
    with pytest.raises(UserError, match=r"no dtype 'float23' \(did you mean float32\?\)"):
        device.dtype_name("float23", "cpu")


def test_out_of_memory_is_told_from_other_errors():
    assert device.is_out_of_memory(torch.cuda.OutOfMemoryError("CUDA out of memory."))
    assert device.is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    assert device.is_out_of_memory(RuntimeError("MPS backend out of memory"))
    assert not device.is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not device.is_out_of_memory(ValueError("alloc"))

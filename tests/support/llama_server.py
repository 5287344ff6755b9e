"""A real OpenAI-compatible server, llama.cpp's, with a small model in a process of its own on a free loopback port."""

import importlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60
"""Seconds until it must answer."""


@contextmanager
def serve(
    model: Path, *, name: str = "smollm2", context_length: int = 2048, parallel: int = 1, threads: int = 1
) -> Iterator[str]:
    """Serve a GGUF file; gives the base URL (…/v1). `parallel` requests share the context's length."""
    settings = {"name": name, "n_ctx": context_length, "n_parallel": parallel, "threads": threads}
    process = subprocess.Popen(
        [sys.executable, __file__, str(model), json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address, f"the server ended at its start with exit code {process.wait(5)}"
        _wait_until_healthy(address)
        yield f"{address}/v1"
    finally:
        process.stdin.close()  # its sign to stop; it also comes when this process is killed
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _wait_until_healthy(address: str) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with direct.open(f"{address}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _main(model: str, settings: dict[str, str | int]) -> None:
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {str(settings["name"])}
    params.n_ctx, params.n_parallel = settings["n_ctx"], settings["n_parallel"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.verbosity, params.cache_ram_mib, params.ui, params.warmup = -1, 0, False, False
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED  # as in process
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _main(sys.argv[1], json.loads(sys.argv[2]))

"""Find a pack: a file of this machine, or one at a URL whose digest is known."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.download import download
from r2med.foundation.store import Store
from r2med.foundation.store.files import sha256 as hash_of


@contextlib.contextmanager
def local_pack(file: str, sha256: str, store: Store) -> Iterator[Path]:
    """Yield the path of a pack on this machine. A URL is fetched into the store's scratch folder and removed after use.

    Raises UserError if the digest is missing for a URL, or if the file has another one.
    """
    wanted = sha256.strip().lower()
    if wanted and not re.fullmatch("[0-9a-f]{64}", wanted):
        raise UserError("the digest must be the SHA-256 of the pack, 64 characters of 0-9 and a-f")
    if "://" not in file:
        path = Path(file).expanduser()
        if wanted and path.is_file() and hash_of(path) != wanted:
            raise UserError(f"{path} has another SHA-256 than {wanted[:12]}…; nothing was written")
        yield path
        return
    if not wanted:
        raise UserError(
            "a pack from a URL needs its digest, which its maker publishes: r2med unpack URL --sha256 DIGEST"
        )
    folder = store.scratch()
    try:
        path = folder / "fetched.r2pack"
        if download(file, path, shutil.disk_usage(folder).free // 2) != wanted:
            raise UserError(f"the file at the URL has another SHA-256 than {wanted[:12]}…; nothing was written")
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)

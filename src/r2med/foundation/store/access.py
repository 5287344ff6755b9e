"""Who may read what is stored: its owner, or the group that shares the folder that it is in, whatever the umask."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path


def private_folder(folder: Path) -> None:
    """Make a folder and its missing parents, readable only by their owner, or by the group that shares the parent."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        # Another user of the group must never find it with a mode that the umask gave it.
        new = missing.with_name(f".{uuid.uuid4().hex}.tmp")
        new.mkdir(mode=0o700)
        try:
            give_access(new)
            with contextlib.suppress(OSError):  # another process made it, and put something into it
                new.rename(missing)
        finally:
            with contextlib.suppress(FileNotFoundError):
                new.rmdir()


def give_access(path: Path, file: int | None = None) -> None:
    """Let those use a file or folder of this process who may use the folder that it is in: its owner, or a group.

    A folder in which everybody may write, as /tmp, shares nothing. An open `file` is given by its number, because
    another one may have its name by now.
    """
    parent = path.parent.stat()
    is_shared = bool(parent.st_mode & stat.S_IWGRP) and not parent.st_mode & stat.S_IWOTH
    if is_shared:
        with contextlib.suppress(OSError):  # this user is not in that group
            os.chown(path if file is None else file, -1, parent.st_gid)
    if path.is_dir():
        # The files in a folder with this bit get its group, also those that a library writes.
        mode = 0o770 | stat.S_ISGID if is_shared else 0o700
    else:
        mode = 0o660 if is_shared else 0o600
    if file is None:
        path.chmod(mode)
    else:
        os.fchmod(file, mode)

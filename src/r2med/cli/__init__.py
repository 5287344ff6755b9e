"""The command line: one module per verb, each of which parses, calls and renders."""

from __future__ import annotations

import errno
import logging
import os
import sys
from typing import NoReturn

from r2med.errors import UserError

USER_FAULT, INTERRUPTED = 2, 130

# What the system says when the disk, not the program, is at fault.
_DISK = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the disk takes no larger file",
    errno.EACCES: "no permission to write or read",
    errno.EPERM: "no permission to write or read",
    errno.EROFS: "the file system is read-only",
    errno.EEXIST: "a file is in the way",
    errno.ENOTDIR: "a file is in the way",
    errno.EISDIR: "a folder is in the way",
    errno.ENAMETOOLONG: "a name is too long for the file system",
}


def main() -> NoReturn:
    """Run a verb; an error of the user's making is one line and exit code 2."""
    logging.getLogger("r2med").addHandler(_Notes())
    logging.getLogger("r2med").setLevel(logging.INFO)
    try:
        from r2med.cli.app import app  # within reach of Ctrl-C

        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # newer versions of Typer make this of a Ctrl-C, and say nothing
            raise KeyboardInterrupt
        sys.exit(code)
    except UserError as error:
        _stop(str(error))
    except (KeyboardInterrupt, EOFError):
        _stop("stopped; the same command goes on from here", INTERRUPTED)
    except BrokenPipeError:  # `r2med … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        cause = _disk_fault(error)
        if cause is None:
            raise
        where = f": {error.filename}" if error.filename else ""
        _stop(f"{cause}{where} (nothing half-written was left; free it or choose another place, then run again)")
    except Exception as error:
        # Typer's own errors (a wrong option, say) differ in class between its versions but not in shape.
        if type(error).__name__ == "Abort":
            _stop("stopped; the same command goes on from here", INTERRUPTED)
        if not hasattr(error, "format_message"):
            raise
        _stop(f"{error.format_message()} (r2med --help shows what there is)")


def _disk_fault(error: OSError) -> str | None:
    if error.errno in _DISK:
        return _DISK[error.errno]
    return next((text for code, text in _DISK.items() if os.strerror(code) in str(error)), None)  # Arrow's


def _stop(message: str, code: int = USER_FAULT) -> NoReturn:
    print(f"r2med: {printable(message)}", file=sys.stderr)
    sys.exit(code)


def printable(text: str) -> str:
    """Return text that cannot steer a terminal: control characters and lone surrogates are shown escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class _Notes(logging.Handler):
    """Shows what the library has to say as plain lines, apart from results."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        print(f"note: {printable(record.getMessage())}", file=sys.stderr)

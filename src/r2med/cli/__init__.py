"""The command line. Each command has its own module, which parses the words, calls a function and prints the result.

This file is the entry point. It turns errors and signals into one line and an exit code. It imports very little, so
that Ctrl-C works from the first moment.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from types import FrameType

USER_FAULT = 2
INTERRUPTED = 130
TERMINATED = 143

_DISK = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the disk takes no larger file",
    errno.EACCES: "no permission to write or read",
    errno.EPERM: "no permission to write or read",
    errno.EROFS: "the file system is read-only",
    errno.ENOENT: "there is no such file or folder, and none can be made",
    errno.EEXIST: "a file is in the way",
    errno.ENOTDIR: "a file is in the way",
    errno.EISDIR: "a folder is in the way",
    errno.ENAMETOOLONG: "a name is too long for the file system",
}
"""Messages for errors that the disk caused and not the program."""

_signals: list[int] = []
"""The signals that asked this process to end."""


ORIGINAL_FLAGS = {
    "--mode": "r2med run or r2med generate",
    "--task": "--data (R2MED for All)",
    "--retriever_name": "r2med run NAME",
    "--reranker_name": "r2med run 'RETRIEVER → NAME@100'",
    "--recall_k": "the number after @",
    "--gar_method": "--expand",
    "--gar_llm": "--llm",
}
"""The flags of the benchmark's own code, and what is typed here instead. docs/from-r2med.md explains them."""


TYPED = {"->": "→"}
"""Words that are replaced before parsing. An arrow in ASCII would be read as an option."""


def main() -> NoReturn:
    """Run a command. A user error prints one line and exits with 2. Signals print one line and exit with 130 or 143."""
    try:
        _stop_at_once_on_signals()
        _open_closed_streams()
        from r2med.foundation.text.terminal_text import write_any_text

        write_any_text()
        from r2med.cli.app import command

        sys.argv[1:] = [TYPED.get(word, word) for word in sys.argv[1:]]
        _log_to_stderr()
        _raise_on_signals()
        code = command()(prog_name="r2med", standalone_mode=False)
        if code == INTERRUPTED:  # newer versions of Typer return this after Ctrl-C and print nothing
            raise KeyboardInterrupt
        sys.exit(code)
    except SystemExit:
        raise
    except BaseException as error:
        if os.environ.get("R2MED_DEBUG", "0") not in ("", "0"):
            import traceback

            traceback.print_exception(error)
        _end(error)
        raise


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that was closed, as in `r2med … >&-`.

    Otherwise the first file that is opened would become the standard output of libraries in C.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def _end(error: BaseException) -> None:
    """End the process with one line; return if the error is a fault of the program."""
    if isinstance(error.__cause__, EOFError):  # Typer takes a file that ends too early for Ctrl-D
        reason = str(error.__cause__) or "end of file"
        _stop(f"a file ends too early, or there is no input to read ({reason}): fetch or make the file again")
    if _is_interrupt(error):
        _stop_at_once_on_signals()  # a second Ctrl-C does not wait for threads
        # Interrupted within an exec, as dataclasses use it, Python would end by SIGINT instead of with our exit code,
        # unless another exec comes after it.
        exec("")
        by = " by SIGTERM" if TERMINATED in _signals else ""
        _stop(f"stopped{by}; the same command goes on from here", TERMINATED if by else INTERRUPTED)
    from r2med.foundation.core.errors import UserError

    if isinstance(error, UserError):
        _stop(str(error))
    if isinstance(error, BrokenPipeError):  # `r2med … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    if (cause := _disk_fault(error)) is not None:
        path = f": {name}" if (name := getattr(error, "filename", "")) else ""
        _stop(f"{cause}{path} (nothing half-written was left; free it or choose another place, then run again)")
    if hasattr(error, "format_message"):
        # Typer's own errors, for example for a wrong option, have other classes in other versions, but the same
        # method. A group without a command has printed its help and needs no further line.
        message = error.format_message()
        if not message:
            sys.exit(0)
        _stop(_usage_fault(error, message))


def _usage_fault(error: Any, message: str) -> str:
    """Return one line about words that cannot be parsed: the nearest right one, and the help page of the command."""
    from r2med.foundation.core.errors import nearest

    context = getattr(error, "ctx", None)
    path = context.command_path if context else "r2med"
    page = f"{path} --help lists them"
    option = getattr(error, "option_name", "")
    if option in ORIGINAL_FLAGS and message.startswith("No such option"):
        here = ORIGINAL_FLAGS[option]
        return f"{option} is a flag of R2MED's own code: here it is {here}; docs/from-r2med.md has each of its commands"
    if option and message.startswith("No such option"):  # an option without its value has a name too
        known = [flag for each in context.command.params for flag in each.opts] if context else []
        return _with_nearest(f"no option {option} for {path}", nearest(option, known), page)
    if wrong := re.match(r"No such command '(.*?)'", message):
        commands = getattr(context.command, "commands", {}) if context else {}
        inside = [f"{name} {wrong[1]}" for name, each in commands.items() if wrong[1] in getattr(each, "commands", ())]
        guess = f"did you mean {' or '.join(inside)}?" if inside else nearest(wrong[1], list(commands))
        return _with_nearest(f"no command {wrong[1]} in {path}", guess, page)
    return f"{message.strip().rstrip('.')} ({path} --help shows how it is used)"


def _with_nearest(fault: str, guess: str, page: str) -> str:
    return f"{fault}: {guess.strip(' ()')} {page}" if guess else f"{fault}: {page}"


def _is_interrupt(error: BaseException | None) -> bool:
    """Return True if Ctrl-C caused an error. A library may have replaced KeyboardInterrupt by an error of its own."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":  # the latter is Typer's
            return True
        error = error.__cause__ or error.__context__
    return False


def _disk_fault(error: BaseException) -> str | None:
    if type(error).__name__ == "OperationalError" and "disk is full" in str(error):  # SQLite's
        return _DISK[errno.ENOSPC]
    if not isinstance(error, OSError):
        return None
    if error.errno in _DISK:
        return _DISK[error.errno]
    return next((text for code, text in _DISK.items() if os.strerror(code) in str(error)), None)  # Arrow's


def _stop(message: str, code: int = USER_FAULT) -> NoReturn:
    from r2med.foundation.text.terminal_text import printable

    print(f"r2med: {printable(message)}", file=sys.stderr)
    sys.exit(code)


def _stop_at_once_on_signals() -> None:
    """End the process at once when a signal comes. While modules are imported, nothing has to be cleaned up.

    An exception would be worse: libraries that are being imported may replace it or lose it.
    """
    import signal

    def end(number: int, frame: FrameType | None) -> None:
        if not _signals:
            os.write(2, b"r2med: stopped\n")
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as in the background, where Ctrl-C is not meant for us
            signal.signal(number, end)


def _raise_on_signals() -> None:
    """Raise KeyboardInterrupt for both signals; asyncio and servers take over SIGINT where it has Python's handler."""
    import signal

    def interrupt(number: int, frame: FrameType | None) -> None:
        _signals.append(128 + number)
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) != signal.SIG_IGN:
        signal.signal(signal.SIGTERM, interrupt)


def _log_to_stderr() -> None:
    """Print the log messages of the library as plain lines on stderr, apart from results."""
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from r2med.foundation.text.terminal_text import printable

            print(f"note: {printable(record.getMessage())}", file=sys.stderr)

    logger = logging.getLogger("r2med")
    logger.addHandler(Notes())
    logger.setLevel(logging.INFO)

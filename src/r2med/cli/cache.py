"""`r2med cache`: whether what is kept on this machine is still what was written."""

from __future__ import annotations

import typer

cache = typer.Typer(help="Check what is kept for later runs.", no_args_is_help=True)

DAMAGED = 1
"""The exit code where something was damaged."""


@cache.callback()
def _root() -> None:
    """Keep `verify` a verb of its own: Typer would make a group with one verb that verb."""


@cache.command()
def verify() -> None:
    """Read every file of the store again, byte by byte, and remove what is damaged; it is made again when needed."""
    from r2med.cli.progress import steps
    from r2med.cli.terminal_text import printable
    from r2med.engine.reporting import Reporter
    from r2med.store import default_store
    from r2med.store.artefacts import MANIFEST
    from r2med.store.verify import verify_store

    store = default_store()
    total = sum(1 for pattern in (f"*/*/{MANIFEST}", "**/*.sqlite") for _ in store.root.glob(pattern))
    sound = size = 0
    damaged = []
    with steps(1) as step:
        step(f"checking {store.root}")
        reporter = Reporter("artefacts", total)
        for verified in verify_store(store, mend=True):
            reporter.advance(1)
            size += verified.size
            if verified.fault:
                damaged.append(verified)
            else:
                sound += 1
    for verified in damaged:
        print(printable(f"damaged: {verified.path}: {verified.fault} ({_MENDED[verified.kind == 'rows']})"))
    print(printable(f"{store.root}: {sound:,} artefacts are sound, {len(damaged):,} damaged; {_bytes(size)}"))
    if damaged:
        raise typer.Exit(DAMAGED)


_MENDED = {
    False: "it was removed, and is made again when it is next needed",
    True: "what can be read of it is kept, the rest is made again when it is next needed",
}
"""What becomes of a damaged artefact, and of a damaged table of rows."""


def _bytes(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"

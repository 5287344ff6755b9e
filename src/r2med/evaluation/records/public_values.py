"""Remove paths and addresses of this machine from texts that others may read, and refuse texts with secrets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")

_PATHS = (
    re.compile(r"(?P<before>path:|run:|folds:)(?P<path>[^(),+=@→\[\]]*[^(),+=@→\[\]\s])"),
    re.compile(r"(?P<before>prompts=)(?P<path>[^\s(),+=@→\[\]]+)"),
    re.compile(r"(?P<before>)(?<![\w.:/%~<-])(?P<path>(?:~|\.{1,2})?/[^\s(),+=@→\[\]]+)"),
    re.compile(r"(?P<before>)(?<!\w)(?P<path>[A-Za-z]:\\[^(),+=@→\[\]]+)"),
)
_URL = re.compile(r"https?://[^\s(),+=@→\[\]]+")


def public_value(value: Any) -> Any:
    """Return a JSON value with paths cut to their last part and addresses replaced by a digest."""
    if isinstance(value, dict):
        return {key: public_value(part) for key, part in value.items()}
    if isinstance(value, list):
        return [public_value(part) for part in value]
    if not isinstance(value, str):
        return value
    value = _URL.sub(lambda url: f"address-{digest(url[0])[:12]}", value)
    for pattern in _PATHS:
        value = pattern.sub(lambda match: match["before"] + re.split(r"[/\\]", match["path"].rstrip("/\\"))[-1], value)
    return value


def refuse_secrets(text: str, noun: str) -> None:
    """Raise UserError if a text contains a key of this environment or the path of the home folder."""
    for name, value in os.environ.items():
        if _SECRET.search(name.upper()) and len(value) >= 8 and value in text:
            raise UserError(
                f"the {noun} would contain the value of {name}, from a setting or a name; nothing was written"
            )
    home = str(Path.home())
    if len(home) > 1 and f"{home}/" in text:
        raise UserError(f"the {noun} would contain a path in your home folder: run the system again with another path")

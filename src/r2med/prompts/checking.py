"""Whether a template names fields that there are, written the one way in which they are filled in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from r2med.errors import UserError, nearest

FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")

# Braces in JSON or code are text. These are habits of other template languages, which would be shown to the model.
_DOUBLED = re.compile(r'\{\{\s*(?:[A-Za-z_]\w*\s*\}\}|")')
_DECORATED = re.compile(r"\{\s*([A-Za-z_]\w*)\s*(?:[.\[!:][^{}\n]*)?\}")


def check_fields(file: str, text: str, method: str, allowed: Sequence[str]) -> None:
    """Raise for a field that a template of this method does not have, or one that would not be filled in."""
    known = f"fields of a {method} template: {', '.join(f'{{{name}}}' for name in allowed) or 'none'}"
    if doubled := _DOUBLED.search(text):
        raise UserError(f"{file}: {doubled[0]} doubles its braces: write each once; {known}")
    for found in _DECORATED.finditer(text):
        plain, name = FIELD.fullmatch(found[0]), found[1]
        if plain and name not in allowed:
            raise UserError(f"{file}: unknown field {found[0]}{nearest(name, allowed)}: {known}")
        # {key: value} with a space in it may be an example of something; {query.answer} is nothing but a mistake.
        if not plain and (name in allowed or not re.search(r"\s", found[0])):
            raise UserError(f"{file}: {found[0]} is no field: one is its name in braces and nothing else; {known}")
    if "query" in allowed and "query" not in FIELD.findall(text):
        raise UserError(f"{file}: it does not name {{query}}: the model would not see the question")

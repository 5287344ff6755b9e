"""Find characters that a wrong encoding left in a text."""

from __future__ import annotations

import html
import re

MOJIBAKE = "UTF-8 read as another encoding"
REPLACED = "replacement characters"
CONTROLS = "control characters"
SURROGATES = "halves of characters"
ENTITIES = "HTML entities"

# The characters that the bytes 80 to BF are in Windows-1252, or in Latin-1 where Windows-1252 has none.
_CONTINUED = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xC0))
_PATTERNS = {
    # é becomes Ã©, ° becomes Â°, and ’ becomes â€™. Other such letters occur before signs such as » in sound texts.
    MOJIBAKE: re.compile(f"[ÂÃ][{re.escape(_CONTINUED)}]|â[€\u0080][{re.escape(_CONTINUED)}]|ï»¿"),
    REPLACED: re.compile("\ufffd"),
    CONTROLS: re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]"),
    SURROGATES: re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"),
}
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_SUSPECT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ud800-\udfffÂÃâï&\\\\]")
"""At least one of these characters is in every fault. Most texts have none of them."""


def encoding_faults(text: str) -> dict[str, str]:
    """Return the kinds of faults in a text, each with its first characters as they are in the text."""
    if not _SUSPECT.search(text):
        return {}
    found = {kind: match[0] for kind, pattern in _PATTERNS.items() if (match := pattern.search(text))}
    entity = next((each[0] for each in _ENTITY.finditer(text) if html.unescape(each[0]) != each[0]), "")
    return {**found, ENTITIES: entity} if entity else found

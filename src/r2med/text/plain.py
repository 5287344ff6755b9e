"""What `segment` does, for plain ASCII text: faster, and for any amount of text at once."""

import re

# Outside tokens wherever they stand: all but letters (lower-cased on the way), digits and what may join.
# Line breaks stay, for callers that put one text on each line.
_KEPT = ".,:;'_\n"
_BLANKED = {code: chr(code).lower() if chr(code).isalnum() or chr(code) in _KEPT else " " for code in range(128)}
# A mid character joins two letters or two digits, else it is loose; underscores join anything, alone nothing.
_LOOSE = re.compile(
    r"[.,:;'](?!(?<=[a-z][.':])[a-z]|(?<=[0-9][.',;])[0-9])"
    r"|(?<![a-z0-9_])_++(?![a-z0-9])"
)


def blank_outside_tokens(text: str) -> str:
    """Return ASCII `text` in lower case, with blanks for all that is outside tokens: `split()` gives the tokens.

    Right only where no token is so long that Lucene cuts it.
    """
    return _LOOSE.sub(" ", text.translate(_BLANKED))

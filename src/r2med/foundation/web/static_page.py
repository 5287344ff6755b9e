"""Write a page as one HTML file in the style of the board, without scripts and without files from other sites."""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from importlib import resources

_HIDDEN = re.compile(r"(?![\t\n])[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Invisible characters that change the order of text or hide it. They are shown as escapes, as in shell.js."""
_DARK = re.compile(r'\[data-theme="dark"\] (\{.*?\n\})', re.DOTALL)


def static_page(title: str, word: str, main: str, foot: str, own_style: str = "", nav: str = "") -> str:
    """Return a page. `word` is shown beside the wordmark. `main` and `nav` are HTML, the other arguments are text."""
    style = _base() + own_style
    seal = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{seal}'; base-uri 'none'; form-action 'none'"
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="top"><div class="top-inner">
<span class="wordmark">r2med <span class="wordmark-word">{escape(word)}</span></span>
<nav id="nav" aria-label="Sections">{nav}</nav></div></header>
<main id="main" tabindex="-1">
{main}
</main>
<footer class="foot"><p>{escape(foot)}</p></footer>
</body>
</html>
"""
    return _HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", page)


def _base() -> str:
    """Return the style of the board. Without a script, the reader's system chooses light or dark."""
    css = (resources.files("r2med.foundation.web") / "assets" / "base.css").read_text(encoding="utf-8")
    return _DARK.sub(r"@media (prefers-color-scheme: dark) { :root \1 }", css, count=1)

"""A static page is one file: nothing is loaded, texts are shown as text, and the policy allows its own style only."""

from __future__ import annotations

import base64
import hashlib
import re

from r2med.foundation.web.static_page import static_page


def test_texts_are_escaped_and_hidden_characters_are_shown() -> None:
    page = static_page("<b>title", "audit", "<h1>Audit</h1>", "a & \u202eb")
    assert "<title>&lt;b&gt;title</title>" in page and "<h1>Audit</h1>" in page
    assert "a &amp; \\u202eb" in page and "\u202e" not in page


def test_the_policy_allows_the_style_of_the_page_and_nothing_else() -> None:
    page = static_page("title", "audit", "", "", own_style="h1 { color: red }")
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)[0]
    seal = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{seal}';" in page
    assert style.endswith("h1 { color: red }") and "@media (prefers-color-scheme: dark) { :root {" in style
    assert "<script" not in page and "http://" not in page and "https://" not in page

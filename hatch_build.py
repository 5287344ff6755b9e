"""Metadata that the build makes from one setting, the repository's address: URLs, and a README for an index page.

Without an address there are no URLs, and the links of the README stay as they are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# Markdown's images and links, and the attributes of HTML tags.
_RELATIVE = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?!https?:|mailto:|#)(?P<path>[^)\s]+)\)")
_ATTRIBUTE = re.compile(r'(?P<name>\b(?:src|srcset|href)=")(?!https?:|mailto:|#)(?P<path>[^"]+)"')


class IndexPage(MetadataHookInterface):
    """Fill in the project's URLs and its README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `urls` and `readme`, which pyproject.toml declares as dynamic."""
        address = self.config["repository"]
        metadata["urls"] = urls(address) if address else {}
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, address, f"v{metadata['version']}") if address else text,
        }


def urls(address: str) -> dict[str, str]:
    """Return the links that an index page shows."""
    return {
        "Repository": address,
        "Documentation": f"{address}/blob/HEAD/docs/index.md",
        "Changes": f"{address}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def absolute(text: str, address: str, tag: str) -> str:
    """Return a README whose images and links point to the files of a tag: an index page has none beside it."""

    def target(match: re.Match[str]) -> str:
        kind = "raw" if match["image"] else "blob"
        return f"{match['image']}{match['text']}({address}/{kind}/{tag}/{match['path']})"

    def attribute(match: re.Match[str]) -> str:
        kind = "blob" if match["name"] == 'href="' else "raw"
        return f'{match["name"]}{address}/{kind}/{tag}/{match["path"]}"'

    return _ATTRIBUTE.sub(attribute, _RELATIVE.sub(target, text))

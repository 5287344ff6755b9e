"""Check the built site of the docs, page by page: python docs/check_site.py, after docs/make_site.py.

Every link leads to a file and a heading that exist. In a browser, in the light and in the dark theme, axe-core finds no
fault (contrast is one of its rules), nothing is requested from another machine, no script fails, no page is too large,
and on a phone no page is wider than the screen. Without a browser or axe-core (npm) only the links are checked.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build/docs"
AXE = ROOT / "node_modules/axe-core/axe.min.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MAX_BYTES = 2_000_000
"""Bytes that a page may load, with its pictures and scripts and without the index of the search."""

SET_THEME = "name => document.querySelector('[data-md-color-scheme]')?.setAttribute('data-md-color-scheme', name)"
"""Zensical chooses its theme when a page is loaded. The pages of r2med follow the browser's setting."""
KEEP_SAMPLES = """() => {
  const main = document.querySelector("main") ?? document.body;
  const all = [...main.querySelectorAll("*")];
  const look = (node) => (node === main ? "" : `${look(node.parentElement)} ${node.tagName}.${node.classList}`);
  const hasText = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const shown = all.filter((node) => node.checkVisibility() && hasText(node));
  const samples = [...new Map(shown.map((node) => [look(node), node])).values()];
  const around = (node) => samples.some((sample) => sample.contains(node) || node.contains(sample));
  all.filter((node) => !around(node)).forEach((node) => node.remove());
}"""
"""Keep one text for each path of tags and classes: the contrast of all texts takes minutes on the long pages."""


class Page(HTMLParser):
    """The links of a page, and the anchors that a link to it may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors = {"", "__search"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what an element links to and what it is called."""
        for name, value in attrs:
            if value and name in ("href", "src", "srcset"):
                self.links.append(value)
            if value and (name == "id" or (tag, name) == ("a", "name")):
                self.anchors.add(value)


class Site:
    """The files of the built site. A page is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[Path, Page]:
        """Every HTML page of the site."""
        return {path.resolve(): Page(path) for path in sorted(self.folder.rglob("*.html"))}

    def addresses(self) -> list[str]:
        """Return the pages to open, and the views of the board that pages link to."""
        files = [str(path.relative_to(self.folder.resolve())) for path in self.pages]
        views = [link for page in self.pages.values() for link in page.links if ".html#/" in link]
        return sorted({*files, *views})

    def broken_links(self) -> list[str]:
        """Return every link that leads to no file, or to no heading of a page."""
        return [
            f"{path.relative_to(self.folder.resolve())}: {link} leads nowhere"
            for path, page in self.pages.items()
            for link in page.links
            if not self._leads_somewhere(path, link)
        ]

    def _leads_somewhere(self, path: Path, link: str) -> bool:
        target, anchor = urldefrag(link)
        if ":" in target.partition("/")[0] or target.startswith("//"):
            return True  # of another machine; it is not requested
        base = self.folder.resolve() if target.startswith("/") else path.parent
        file = (base / unquote(target).lstrip("/")).resolve() if target else path
        file = file / "index.html" if file.is_dir() else file
        if file in self.pages and not anchor.startswith("/"):
            return unquote(anchor) in self.pages[file].anchors
        return file.is_file()


class Visit:
    """A browser's page that opens one address after another and collects what is wrong with each."""

    def __init__(self, browser: Any, root: str) -> None:
        self.root = root
        self.faults: list[str] = []
        self.address = ""
        self.loaded = 0
        self.is_whole = True
        """False after texts were taken out of the page, which its own scripts may then miss."""
        self.page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        self.page.route("**/*", self._allow_only_the_site)
        self.page.on("response", self._count)
        self.page.on("pageerror", lambda error: self.is_whole and self._add(f"a script failed: {error}"))
        self.page.on("console", lambda line: line.type == "error" and self._add(f"the console shows: {line.text}"))

    def check(self, address: str) -> None:
        """Open an address and add its faults."""
        self.address, self.loaded = address, 0
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        self.page.goto("about:blank")  # a board that is open already would not load again
        self.is_whole = True
        # The board's scripts load its data after the page.
        self.page.goto(self.root + address, wait_until="networkidle" if address.startswith("live/") else "load")
        if self.loaded > MAX_BYTES:
            self._add(f"loads {self.loaded:,} bytes; {MAX_BYTES:,} are allowed")
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        self._axe("light", {"rules": {"color-contrast": {"enabled": False}}})
        self.page.set_viewport_size({"width": 390, "height": 844})
        if (wider := self.page.evaluate("document.documentElement.scrollWidth - innerWidth")) > 0:
            self._add(f"on a phone it is {wider} pixels wider than the screen")
        self.page.set_viewport_size({"width": 1280, "height": 900})
        self.is_whole = False
        self.page.evaluate(KEEP_SAMPLES)
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme)
            self.page.evaluate(SET_THEME, {"light": "default", "dark": "slate"}[theme])
            self._axe(theme, {"runOnly": ["color-contrast"]})

    def _axe(self, theme: str, options: dict[str, Any]) -> None:
        found = self.page.evaluate("options => axe.run(document, options)", {"resultTypes": ["violations"], **options})
        for fault in found["violations"]:
            first = fault["nodes"][0]
            self._add(f"axe, {theme}: {fault['id']} ({len(fault['nodes'])} times), first at {first['target'][0]}")

    def _allow_only_the_site(self, route: Any) -> None:
        if route.request.url.startswith((self.root, "data:", "blob:")):
            route.continue_()
        else:
            self._add(f"requests {route.request.url}")
            route.abort()

    def _count(self, response: Any) -> None:
        if not response.url.endswith("/search.json"):
            self.loaded += int(response.headers.get("content-length", 0))

    def _add(self, fault: str) -> None:
        self.faults.append(f"{self.address}: {fault}")


class Quiet(SimpleHTTPRequestHandler):
    """Serve files without a log of requests."""

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def visited(addresses: list[str], browser_path: str) -> list[str]:
    """Return the faults of the pages that a browser opens."""
    from playwright.sync_api import sync_playwright

    with served(SITE) as root, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        visit = Visit(browser, root)
        for address in addresses:
            visit.check(address)
        browser.close()
    return visit.faults


def main() -> None:
    """Check all pages, print every fault, and exit with 1 if there is one."""
    site = Site(SITE)
    faults = site.broken_links()
    addresses = site.addresses()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser and AXE.is_file():
        faults += visited(addresses, browser)
        print(f"{len(addresses)} pages of the site opened in a browser, in both themes")
    else:
        print("skipped: only the links of the site were checked, there is no browser or no axe-core (npm)")
    sys.exit("\n".join(faults) if faults else 0)


if __name__ == "__main__":
    main()

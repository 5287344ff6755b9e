"""The page that shows the OpenAPI description to a person; it loads nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }
body { color: #1c2430; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
code, pre { font: 14px/1.5 ui-monospace, monospace; background: #f2f4f7; border-radius: 4px } code { padding: 0 .2em }
pre { padding: .8rem; overflow-x: auto }
table { border-collapse: collapse } th { font-weight: 600 }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top }
@media (prefers-color-scheme: dark) {
 body { color: #e4e8ee; background: #15191f } code, pre { background: #232a33 } a { color: #8ab8ff }
}
"""


def docs_page(openapi: dict[str, Any], facts: str, title: str) -> str:
    """Return the page of an application that is described by `openapi`, with a line of facts about it."""
    sections = [
        section
        for path, operations in openapi["paths"].items()
        for method, operation in operations.items()
        for section in _sections(method, path, operation)
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>r2med serve</h1>
<p>{escape(facts)}</p>
{"".join(sections)}
<p>For programs: <a href="openapi.json">openapi.json</a>.</p>
</body></html>
"""


def _sections(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(method.upper())} {escape(path)}</code> {escape(operation.get('summary', ''))}</h2>"
    yield f"<p>{escape(operation.get('description', ''))}</p>"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        example = json.dumps(body["example"], ensure_ascii=False)
        command = f"curl -H 'Content-Type: application/json' -d '{example}' …{path}"
        yield f"<pre>{escape(command)}</pre>"
        fields = [(name, field.get("description", "")) for name, field in body["schema"]["properties"].items()]
        yield _table(("field", "meaning"), fields)
    answers = [(status, answer["description"]) for status, answer in operation["responses"].items()]
    yield _table(("answer", "when"), answers)


def _table(heads: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td><code>{escape(name)}</code></td><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table><tr><th>{heads[0]}</th><th>{heads[1]}</th></tr>{cells}</table>"

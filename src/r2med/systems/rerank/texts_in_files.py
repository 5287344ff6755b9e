"""Read one text of a TOML, YAML or Python file, such as a prompt in the code of its authors. Nothing is run.

A text of a Python file is returned as a format string: an f-string has a field for each variable that it shows.
"""

from __future__ import annotations

import ast
import tomllib
import warnings
from collections.abc import Callable, Mapping

from r2med.foundation.core.errors import MissingExtraError

_YAML_TEXT = "tag:yaml.org,2002:str"


def escaped(literal: str) -> str:
    """Return a text as a format string without fields."""
    return literal.replace("{", "{{").replace("}", "}}")


def _in_tree(content: object, where: str) -> str | None:
    for key in where.split("."):
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, str) else None


def _from_toml(text: str, where: str, number: int) -> str | None:
    return _in_tree(tomllib.loads(text), where)


def _from_yaml(text: str, where: str, number: int) -> str | None:
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("reading a prompt in YAML", "prompts") from None
    try:
        # Values are not built: merged keys that name each other could be as many as 10 to the power of 10.
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1}" if mark else "it is not YAML") from None
    for key in where.split("."):
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        node = {name.value: value for name, value in pairs if isinstance(name, yaml.ScalarNode)}.get(key)
    return str(node.value) if isinstance(node, yaml.ScalarNode) and node.tag == _YAML_TEXT else None


def _from_python(text: str, where: str, number: int) -> str | None:
    """Return a text of a Python file as a format string. The file is parsed and not run."""
    with warnings.catch_warnings(action="ignore"):  # Python 3.12 prints one for "\\d" in a text
        tree = ast.parse(text)
    if number:
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == where]
        texts = [each for each in _texts(functions[0]) if len(each.split()) > 1] if functions else []
        return texts[number - 1] if number <= len(texts) else None
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
            continue
        names = {getattr(target, "id", getattr(target, "attr", "")) for target in node.targets}
        if where in names and isinstance(node.value.value, str):
            return node.value.value  # filled by str.format, so it is a format string already
    return None


def _texts(function: ast.FunctionDef) -> list[str]:
    """Return the texts of a function as format strings, in the order of the source, without its docstring."""
    found: list[tuple[tuple[int, int], str]] = []
    inside: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)} - {id(node)}
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            found.append(((node.lineno, node.col_offset), "".join(map(_piece, node.values))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(((node.lineno, node.col_offset), escaped(node.value)))
    docstring = ast.get_docstring(function, clean=False)
    return [text for _, text in sorted(found) if docstring is None or text != escaped(docstring)]


def _piece(value: ast.expr) -> str:
    """Return a piece of an f-string: text, or a field with the name of the variable that it shows."""
    if isinstance(value, ast.Constant):
        return escaped(str(value.value))
    shown = value.value if isinstance(value, ast.FormattedValue) else value
    shown = shown.value if isinstance(shown, ast.Subscript) else shown  # content[:400]: the card has the limit
    return f"{{{shown.id}}}" if isinstance(shown, ast.Name) else "{0}"


READERS: Mapping[str, Callable[[str, str, int], str | None]] = {
    ".toml": _from_toml,
    ".yaml": _from_yaml,
    ".yml": _from_yaml,
    ".py": _from_python,
}
"""Suffix of a file -> its reader, which takes the content, the place and a number; None if there is no such text.

It raises ValueError, SyntaxError, RecursionError or MemoryError if the content cannot be parsed.
"""

"""Arrays: from the text that PostgreSQL prints to JSON, byte for byte what its ``array_to_json`` makes of text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

# A quoted element, one that needs no quotes, or a brace. Commas only separate.
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)|([{}])', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def as_json(text: str, element: Callable[[str], str] | None = None) -> str:
    """An array as PostgreSQL prints it, ``{1,NULL,"a b"}``, as a JSON array of strings and nulls, nested if it is.

    Bounds in front, ``[2:3]={1,2}``, are dropped. *element* may give each element another form.
    """
    body = text[text.index("=") + 1 :] if text.startswith("[") else text
    if '"' in body or "{" in body[1:]:
        items = _nested(body, element)
    else:
        items = [_unquoted(one, element) for one in body[1:-1].split(",")] if body != "{}" else []
    return json.dumps(items, ensure_ascii=False, separators=(",", ":"))


def _nested(text: str, element: Callable[[str], str] | None) -> list[Any]:
    outer: list[Any] = []
    open_lists = [outer]
    for quoted, bare, brace in _TOKEN.findall(text):
        if brace == "{":
            inner: list[Any] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif brace == "}":
            open_lists.pop()
        elif bare:
            open_lists[-1].append(_unquoted(bare, element))
        else:
            plain = _ESCAPED.sub(r"\1", quoted)
            open_lists[-1].append(element(plain) if element else plain)
    (whole,) = outer
    return list(whole)


def _unquoted(text: str, element: Callable[[str], str] | None) -> str | None:
    """An element without quotes; the text NULL itself is always quoted."""
    if text == "NULL":
        return None
    return element(text) if element else text

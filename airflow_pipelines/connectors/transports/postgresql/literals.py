"""The texts in which a server writes arrays and rows: ``{1,NULL,"a b"}`` and ``(1,,"a b")``."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Literal: TypeAlias = "str | list[Literal] | None"
"""The text of an element, NULL, or an array in an array."""
_BOUNDS: Final = re.compile(r"(\[-?\d+:-?\d+\])+=")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)|([{},])', re.DOTALL)
_FIELD: Final = re.compile(r'(?:"((?:[^"\\]|\\.|"")*)"|([^,()"]*))([,)])', re.DOTALL)


def array_elements(text: str) -> list[Literal]:
    """Return the elements of an array.

    :param text: the array
    :raises ValueError: when it is none
    """
    body = _BOUNDS.sub("", text, count=1)
    root: list[Literal] = []
    open_lists = [root]
    end = 0
    for match in _ELEMENT.finditer(body):
        if match.start() != end or not open_lists:
            raise ValueError(f"{text!r} is not an array")
        end = match.end()
        quoted, bare, mark = match.groups()
        if quoted is not None:
            open_lists[-1].append(_ESCAPED.sub(r"\1", quoted))
        elif bare is not None:
            open_lists[-1].append(None if bare == "NULL" else bare)
        elif mark == "{":
            inner: list[Literal] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif mark == "}":
            open_lists.pop()
    if len(open_lists) != 1 or end != len(body) or len(root) != 1 or not isinstance(root[0], list):
        raise ValueError(f"{text!r} is not an array")
    return root[0]


def row_fields(text: str) -> list[str | None]:
    """Return the fields of a row.

    :param text: the row
    :raises ValueError: when it is none
    """
    fields: list[str | None] = []
    at = 1
    while text.startswith("(") and (match := _FIELD.match(text, at)) is not None:
        quoted, bare, mark = match.groups()
        fields.append(_ESCAPED.sub(r"\1", quoted.replace('""', '"')) if quoted is not None else bare or None)
        at = match.end()
        if mark == ")" and at == len(text):
            return fields
        if mark == ")":
            break
    raise ValueError(f"{text!r} is not a row")

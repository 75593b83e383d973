"""Hints in messages about names in double quotes, which may be meant as strings."""

from __future__ import annotations

import re

_TYPED_LITERAL = re.compile(r'\b(?:date|timestamp\w*|time|interval|escape|like|x)\s*("(?:[^"]|"")*")\s*$', re.I)


def literal_hint(before: str) -> str:
    """Return the hint for a syntax error, by the text before its position: ``DATE "2024-01-01"`` and the like are no literals.

    :returns: a hint as from :func:`string_hint`
    """
    literal = _TYPED_LITERAL.search(before)
    return "." + string_hint(literal[1]) if literal is not None else ""


def string_hint(written: str) -> str:
    """Return the hint for a message about a name that does not exist: in double quotes, it may be meant as a string.

    :returns: a sentence with a space before it, or an empty text
    """
    if not written.startswith('"'):
        return ""
    meant = written.strip('"').replace('""', '"').replace("'", "''")
    return f" Double quotes hold names, and strings take single quotes: '{meant}'"

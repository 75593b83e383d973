"""Hints in messages about names in double quotes: a string may be meant."""

from __future__ import annotations

import re

_TYPED_LITERAL = re.compile(r'\b(?:date|timestamp\w*|time|interval|escape|like|x)\s*("(?:[^"]|"")*")\s*$', re.I)


def literal_hint(before: str) -> str:
    """What to add to a syntax error, by the text before its place: ``DATE "2024-01-01"`` and the like are no literals.

    :returns: as of :func:`string_hint`
    """
    found = _TYPED_LITERAL.search(before)
    return "." + string_hint(found[1]) if found is not None else ""


def string_hint(written: str) -> str:
    """What to add to a message about a name that is not there, as it is written: in double quotes, a string may be meant.

    :returns: a sentence with a space before it, or nothing
    """
    if not written.startswith('"'):
        return ""
    meant = written.strip('"').replace('""', '"').replace("'", "''")
    return f" Double quotes hold names, and strings take single quotes: '{meant}'"

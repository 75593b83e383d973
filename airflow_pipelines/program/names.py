"""Names of relations and columns: unquoted names fold to lower case, quoted names are kept as written."""

from __future__ import annotations

import re
from collections.abc import Sequence

RESERVED_PREFIX = "feldera"
"""The prefix of relation names, in any case, that belong to the system."""
SYSTEM_VIEW = "error_view"
"""The view that every program has without declaring it."""
INTERNAL_PREFIX = "__"
"""The prefix of column names that belong to the engine (weights, operations)."""

_PLAIN = re.compile(r"^[^\W\d]\w*$")


def fold(text: str) -> str:
    """Return ``text`` in lower case with its length unchanged: a character whose lower case is longer is kept."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def canonical(name: str) -> str:
    """Return the canonical name of a relation or column as it is written in a URL or a call.

    :param name: ``v0`` or ``V0`` (folds to ``v0``), or ``"V0"`` (verbatim, doubled quotes stand for one)
    """
    if len(name) >= 2 and name[0] == name[-1] and name[0] in '"`':
        return name[1:-1].replace(name[0] * 2, name[0])
    return fold(name)


def quote(name: str) -> str:
    """Return a canonical name as Spark SQL text: in back quotes, with back quotes inside doubled."""
    return "`" + name.replace("`", "``") + "`"


def display(name: str) -> str:
    """Return a canonical name as a user would write it: in double quotes if it would fold to something else."""
    if _PLAIN.match(name) and fold(name) == name:
        return name
    return '"' + name.replace('"', '""') + '"'


def deduplicate(names: Sequence[str]) -> list[str]:
    """Make names unique: a name that occurred before gets a number, so that ``i, i`` becomes ``i, i0``.

    The number is the smallest, from 0, whose name no other column has before or after renaming.
    """
    taken, unique = set(names), list[str]()
    for name in names:
        if name in unique:
            count = next(count for count in range(len(names)) if f"{name}{count}" not in taken)
            name = f"{name}{count}"
            taken.add(name)
        unique.append(name)
    return unique

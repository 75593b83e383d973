"""Whether a Delta table that is there can take rows of other columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def differences(wanted: Mapping[str, Any], there: Mapping[str, Any], partitions: Sequence[str]) -> list[str]:
    """Why rows of a schema cannot go into a table that is there already; empty when they can.

    :param wanted: the schema of the rows, in Delta's JSON form
    :param there: that of the table
    :param partitions: the columns that the connector asks for as the table's partitions
    """
    found = []
    have = {field["name"].lower(): field for field in there["fields"]}
    for field in wanted["fields"]:
        other = have.pop(field["name"].lower(), None)
        if other is None:
            found.append(f"column {field['name']!r} ({_shown(field['type'])}) is not in the table")
        elif other["name"] != field["name"]:
            found.append(f"column {field['name']!r} is written {other['name']!r} in the table")
        elif _plain(other["type"]) != _plain(field["type"]):
            found.append(
                f"column {field['name']!r} is {_shown(field['type'])} in the view and {_shown(other['type'])} in the table"
            )
    found += [
        f"column {field['name']!r} of the table must not be NULL and is not in the view"
        for field in have.values()
        if not field["nullable"]
    ]
    known = {field["name"] for field in wanted["fields"]}
    found += [f"'partition_by' names {name!r}, which is no column of the view" for name in partitions if name not in known]
    return found


def _plain(kind: Any) -> Any:
    """A type without what it says of NULL."""
    if isinstance(kind, list):
        return [_plain(each) for each in kind]
    if not isinstance(kind, dict):
        return kind
    return {
        name: _plain(part)
        for name, part in kind.items()
        if name not in {"nullable", "containsNull", "valueContainsNull", "metadata"}
    }


def _shown(kind: Any) -> str:
    """A type as people write it."""
    if not isinstance(kind, dict):
        return str(kind)
    match kind["type"]:
        case "array":
            return f"array<{_shown(kind['elementType'])}>"
        case "map":
            return f"map<{_shown(kind['keyType'])},{_shown(kind['valueType'])}>"
        case _:
            inner = ",".join(field["name"] + ":" + _shown(field["type"]) for field in kind["fields"])
            return f"struct<{inner}>"

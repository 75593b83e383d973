"""The comparison of an existing Delta table's columns with those of the rows to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def differences(wanted: Mapping[str, Any], there: Mapping[str, Any], partitions: Sequence[str]) -> list[str]:
    """Return the reasons why rows of a schema cannot go into an existing table; empty if they can.

    :param wanted: the schema of the rows, in Delta's JSON form
    :param there: the schema of the table, in the same form
    :param partitions: the columns that the connector requests as the table's partitions
    """
    reasons = []
    have = {field["name"].lower(): field for field in there["fields"]}
    for field in wanted["fields"]:
        other = have.pop(field["name"].lower(), None)
        if other is None:
            reasons.append(f"column {field['name']!r} ({_format_type(field['type'])}) is not in the table")
        elif other["name"] != field["name"]:
            reasons.append(f"column {field['name']!r} is written {other['name']!r} in the table")
        elif _plain(other["type"]) != _plain(field["type"]):
            reasons.append(
                f"column {field['name']!r} is {_format_type(field['type'])} in the view and "
                f"{_format_type(other['type'])} in the table"
            )
    reasons += [
        f"column {field['name']!r} of the table must not be NULL and is not in the view"
        for field in have.values()
        if not field["nullable"]
    ]
    known = {field["name"] for field in wanted["fields"]}
    reasons += [f"'partition_by' names {name!r}, which is no column of the view" for name in partitions if name not in known]
    return reasons


def _plain(kind: Any) -> Any:
    """Return a type without its nullability."""
    if isinstance(kind, list):
        return [_plain(each) for each in kind]
    if not isinstance(kind, dict):
        return kind
    return {
        name: _plain(part)
        for name, part in kind.items()
        if name not in {"nullable", "containsNull", "valueContainsNull", "metadata"}
    }


def _format_type(kind: Any) -> str:
    """Return a type in readable form."""
    if not isinstance(kind, dict):
        return str(kind)
    match kind["type"]:
        case "array":
            return f"array<{_format_type(kind['elementType'])}>"
        case "map":
            return f"map<{_format_type(kind['keyType'])},{_format_type(kind['valueType'])}>"
        case _:
            inner = ",".join(field["name"] + ":" + _format_type(field["type"]) for field in kind["fields"])
            return f"struct<{inner}>"

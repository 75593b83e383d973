"""Fingerprints of a program's parts. If two are equal, the state that was computed for a part can be kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """One hash for each relation, connector (``relation.connector``) and operator.

    If two hashes are equal, the state can be kept.
    """

    tables: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    input_connectors: dict[str, str] = field(default_factory=dict)
    output_connectors: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    """The relation of each connector; names may contain dots."""
    operators: dict[str, str] = field(default_factory=dict)
    """The operators of a stream program."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready object, with a field for operators only if there are some."""
        parts = asdict(self)
        if not self.operators:
            del parts["operators"]
        return parts

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Fingerprints:
        """Return the fingerprints that :meth:`to_json` serialised.

        :raises TypeError: when the object has other keys
        """
        return cls(**{key: dict(part) for key, part in value.items()})


def program_hash(fingerprints: Fingerprints) -> int:
    """Return an unsigned 64-bit number that is equal for programs without a difference."""
    return int(digest(fingerprints.to_json())[:16], 16)


def digest(value: Any) -> str:
    """Return the hash of a JSON-ready description, independent of the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

"""Fingerprints of a program's parts: equal ones mean that what was computed for a part can be kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """One hash per relation, connector (``relation.connector``) and operator; equal hashes mean that state can be kept."""

    tables: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    input_connectors: dict[str, str] = field(default_factory=dict)
    output_connectors: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    """The relation of each connector: names may have dots in them."""
    operators: dict[str, str] = field(default_factory=dict)
    """The operators of a stream program."""

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object, with a field for operators only where there are some."""
        parts = asdict(self)
        if not self.operators:
            del parts["operators"]
        return parts

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Fingerprints:
        """The fingerprints that :meth:`to_json` wrote.

        :raises TypeError: when the object has other keys
        """
        return cls(**{key: dict(part) for key, part in value.items()})


def program_hash(fingerprints: Fingerprints) -> int:
    """An unsigned 64-bit number that is equal for programs without a difference."""
    return int(digest(fingerprints.to_json())[:16], 16)


def digest(value: Any) -> str:
    """The hash of a JSON-ready description, the same however its keys are ordered."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

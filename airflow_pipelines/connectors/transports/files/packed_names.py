"""Growing sets of names, in a form that is small in checkpoints and fast to write again after each addition."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

SEGMENT_NAMES: Final = 1000
"""The number of names that are packed together, once and for all."""


class PackedNames:
    """A set of file names. Each thousand is packed when it is full, so that writing a position costs only the names since then."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._packed: list[str] = []
        self._newest: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str) -> None:
        """Add a name."""
        if name in self._names:
            return
        self._names.add(name)
        self._newest.append(name)
        if len(self._newest) == SEGMENT_NAMES:
            self._packed.append(pack(sorted(self._newest)))
            self._newest = []

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {"packed": list(self._packed), "names": list(self._newest)}

    @classmethod
    def from_json(cls, stored: Any) -> PackedNames:
        """Restore a set from the result of :meth:`to_json`, or from the plain list that earlier releases wrote."""
        names = cls()
        packed: Iterable[str] = stored["packed"] if isinstance(stored, dict) else ()
        for segment in packed:
            names._names.update(unpack(segment))
            names._packed.append(segment)
        for name in stored["names"] if isinstance(stored, dict) else stored:
            names.add(name)
        return names


def pack(value: Any) -> str:
    """Return a value as compressed JSON text."""
    return base64.b64encode(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)).decode("ascii")


def unpack(packed: str) -> Any:
    """Return the value that was packed."""
    return json.loads(zlib.decompress(base64.b64decode(packed)))

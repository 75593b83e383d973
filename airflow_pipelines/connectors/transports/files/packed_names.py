"""Sets of names that grow, in a form that is small in checkpoints and quickly made again after each addition."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

SEGMENT_NAMES: Final = 1000
"""So many names are packed once and for all."""


class PackedNames:
    """Names of files. Each thousand of them is packed when it is full, so that a position costs the names since then only."""

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
        """The stored form."""
        return {"packed": list(self._packed), "names": list(self._newest)}

    @classmethod
    def from_json(cls, stored: Any) -> PackedNames:
        """What :meth:`to_json` wrote, or the plain list that earlier releases did."""
        names = cls()
        packed: Iterable[str] = stored["packed"] if isinstance(stored, dict) else ()
        for segment in packed:
            names._names.update(unpack(segment))
            names._packed.append(segment)
        for name in stored["names"] if isinstance(stored, dict) else stored:
            names.add(name)
        return names


def pack(value: Any) -> str:
    """JSON in few characters."""
    return base64.b64encode(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)).decode("ascii")


def unpack(packed: str) -> Any:
    """What was packed."""
    return json.loads(zlib.decompress(base64.b64decode(packed)))

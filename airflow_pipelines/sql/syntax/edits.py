"""Edits of a text that keep a map to the original, so that errors in the new text have places in the old one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters ``start`` to ``end`` (exclusive) of a text become ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Edited:
    """A text after some edits.

    :param before: the text that ``edits`` were made to, itself perhaps an edited one
    """

    text: str
    edits: tuple[Edit, ...] = ()
    before: Edited | None = None

    def edit(self, edits: Iterable[Edit]) -> Edited:
        """The text after more edits, which must not overlap.

        :raises ValueError: when they do
        """
        ordered = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
        if any(one.end > other.start for one, other in pairwise(ordered)):
            raise ValueError("edits overlap")
        if not ordered:
            return self
        parts, at = [], 0
        for edit in ordered:
            parts += [self.text[at : edit.start], edit.text]
            at = edit.end
        return Edited("".join([*parts, self.text[at:]]), ordered, self)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The place in the text as first written that characters ``start`` to ``end`` (exclusive) stand for.

        What lies within an edit's new text stands for all that the edit replaced.
        """
        if self.before is None:
            return start, end
        first, _ = self._piece(start)
        _, last = self._piece(max(start, end - 1))
        return self.before.origin(first, max(first, last))

    def _piece(self, offset: int) -> tuple[int, int]:
        """The old text's start and end (exclusive) of what stands at ``offset`` of the new text."""
        moved = 0
        for edit in self.edits:
            at = edit.start + moved
            if offset < at:
                break
            if offset < at + len(edit.text):
                return edit.start, edit.end
            moved += len(edit.text) - (edit.end - edit.start)
        return offset - moved, offset - moved + 1

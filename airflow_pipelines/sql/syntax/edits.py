"""Edits of a text that keep a map to the original, so that errors in the new text have positions in the old one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement of characters ``start`` to ``end`` (exclusive) of a text by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Edited:
    """A text after some edits.

    :param before: the text that ``edits`` were made to, which may be an edited one itself
    """

    text: str
    edits: tuple[Edit, ...] = ()
    before: Edited | None = None

    def edit(self, edits: Iterable[Edit]) -> Edited:
        """Return the text after more edits, which must not overlap.

        :raises ValueError: if they overlap
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
        """Return the position in the text as first written of characters ``start`` to ``end`` (exclusive).

        A position within an edit's new text maps to all characters that the edit replaced.
        """
        if self.before is None:
            return start, end
        first, _ = self._piece(start)
        _, last = self._piece(max(start, end - 1))
        return self.before.origin(first, max(first, last))

    def _piece(self, offset: int) -> tuple[int, int]:
        """Return the start and end (exclusive) in the old text for the character at ``offset`` of the new text."""
        moved = 0
        for edit in self.edits:
            at = edit.start + moved
            if offset < at:
                break
            if offset < at + len(edit.text):
                return edit.start, edit.end
            moved += len(edit.text) - (edit.end - edit.start)
        return offset - moved, offset - moved + 1

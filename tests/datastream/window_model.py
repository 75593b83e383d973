"""Windows and timers as a few lines of plain Python, one element after the other: what the operators have to agree with.

An element is a key, a timestamp and a number. A watermark follows each element: the highest timestamp so far, less a delay and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Element = tuple[str, int, int]
Span = tuple[int, int]
END_OF_TIME = 2**63 - 1


@dataclass(frozen=True)
class Tumbling:
    size: int
    offset: int

    def spans(self, element: Element) -> list[Span]:
        """Return the windows of an element: start, and end after the last timestamp."""
        return [(start, start + self.size) for start in range(-100, 200) if self._is_around(start, element[1])]

    def _is_around(self, start: int, timestamp: int) -> bool:
        return (start - self.offset) % self.size == 0 and start <= timestamp < start + self.size


@dataclass(frozen=True)
class Sliding:
    size: int
    slide: int
    offset: int

    def spans(self, element: Element) -> list[Span]:
        """Return the windows of an element, the latest first."""
        starts = (start for start in range(200, -100, -1) if (start - self.offset) % self.slide == 0)
        return [(start, start + self.size) for start in starts if start <= element[1] < start + self.size]


@dataclass(frozen=True)
class Sessions:
    gap: int
    by_number: bool

    def spans(self, element: Element) -> list[Span]:
        """Return the session of an element alone."""
        return [(element[1], element[1] + (element[2] + 1 if self.by_number else self.gap))]


Windows = Tumbling | Sliding | Sessions


@dataclass
class _Window:
    span: Span
    elements: list[Element]

    @property
    def last(self) -> int:
        return self.span[1] - 1


@dataclass
class WindowModel:
    """The windows of all keys.

    :param windows: the kind of windows
    :param lateness: the time for which a window takes elements after its end
    :param delay: the delay of watermarks
    """

    windows: Windows
    lateness: int
    delay: int
    fired: list[tuple[str, Span, list[Element]]] = field(default_factory=list)
    late: list[Element] = field(default_factory=list)
    _open: dict[str, list[_Window]] = field(default_factory=dict)
    _watermark: int = -(2**63)

    def run(self, elements: list[Element]) -> WindowModel:
        """Take all elements, then the end of time."""
        highest = -(2**62)
        for element in elements:
            self._take(element)
            highest = max(highest, element[1])
            self._advance(max(self._watermark, highest - self.delay - 1))
        self._advance(END_OF_TIME)
        return self

    def _take(self, element: Element) -> None:
        key, timestamp, _ = element
        opened = self._open.setdefault(key, [])
        taken = False
        for span in self.windows.spans(element):
            window = self._window(opened, span)
            if window.last + self.lateness <= self._watermark:
                continue
            taken = True
            window.elements.append(element)
            if window not in opened:
                opened.append(window)
            if window.last <= self._watermark:
                self.fired.append((key, window.span, list(window.elements)))
        if not taken and timestamp + self.lateness <= self._watermark:
            self.late.append(element)

    def _window(self, opened: list[_Window], span: Span) -> _Window:
        if not isinstance(self.windows, Sessions):
            return next((window for window in opened if window.span == span), _Window(span, []))
        touching = [window for window in opened if window.span[0] <= span[1] and window.span[1] >= span[0]]
        merged = _Window(
            (min([span[0], *(window.span[0] for window in touching)]), max([span[1], *(window.span[1] for window in touching)])),
            [each for window in touching for each in window.elements],
        )
        if touching:
            opened[:] = [window for window in opened if window not in touching]
            opened.append(merged)
        return merged

    def _advance(self, watermark: int) -> None:
        due = [
            (window.last, key, window)
            for key, opened in self._open.items()
            for window in opened
            if self._watermark < window.last <= watermark
        ]
        for _, key, window in sorted(due, key=lambda each: (each[0], each[1], each[2].span)):
            self.fired.append((key, window.span, list(window.elements)))
        for opened in self._open.values():
            opened[:] = [window for window in opened if window.last + self.lateness > watermark]
        self._watermark = watermark


@dataclass
class TimerModel:
    """Timers of event time: an element registers some and deletes some, a timer that fires may register a later one.

    :param delay: the delay of watermarks
    :param after: the timers that an element registers, relative to its timestamp
    :param deleted: the timers that an element deletes, given the element
    :param follow: the timer that follows when one fires; None for none
    """

    delay: int
    after: Callable[[Element], list[int]]
    deleted: Callable[[Element], list[int]]
    follow: Callable[[int], int | None]

    def run(self, elements: list[Element]) -> list[tuple[str, int]]:
        """Return the timers that fire: key and timestamp, in order."""
        timers: set[tuple[int, str]] = set()
        highest, watermark = -(2**62), -(2**63)
        fired: list[tuple[str, int]] = []
        for key, timestamp, number in elements:
            element = (key, timestamp, number)
            timers |= {(at, key) for at in self.after(element)}
            timers -= {(at, key) for at in self.deleted(element)}
            highest = max(highest, timestamp)
            if highest - self.delay - 1 > watermark:  # a watermark that does not advance fires nothing
                watermark = highest - self.delay - 1
                fired += self._fire(timers, watermark)
        return [*fired, *self._fire(timers, END_OF_TIME)]

    def _fire(self, timers: set[tuple[int, str]], watermark: int) -> Iterator[tuple[str, int]]:
        while timers and min(timers)[0] <= watermark:
            at, key = min(timers)
            timers.remove((at, key))
            yield key, at
            later = self.follow(at)
            if later is not None:
                timers.add((later, key))


def without_order_of_keys(fired: list[Any]) -> dict[str, list[Any]]:
    """Return results by key; those of one key stay in order."""
    by_key: dict[str, list[Any]] = {}
    for key, *rest in fired:
        by_key.setdefault(key, []).append(tuple(rest))
    return by_key

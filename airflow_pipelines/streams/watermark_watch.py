"""Detection of inputs that hold event time back for a long time. Windows and timers that wait for event time then never fire, and
nothing else says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_pipelines.streams.watermarks import Combination

LOOK_EVERY = 1_000


@dataclass
class _Known:
    watermark: int
    since: int
    was_told: bool = False


class WatermarkWatch:
    """A watch that remembers the watermark of each reader, and since when it has been unchanged.

    :param patience: the number of ms that an input may hold others back before it is reported
    """

    def __init__(self, patience: int = 30_000) -> None:
        self._patience = patience
        self._known: dict[str, _Known] = {}
        self._next_look = 0

    def is_due(self, now: int) -> bool:
        """Return True if it is time for another look.

        :param now: processing time in ms
        :returns: True if a second has passed
        """
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_EVERY
        return True

    def look(self, now: int, readers: Iterable[tuple[str, Combination, dict[object, str]]]) -> list[str]:
        """Check all readers.

        :param now: processing time in ms
        :param readers: the name, the watermarks of the inputs, and the names of the inputs of each reader
        :returns: a message for each reader that has waited for too long; each is reported once
        """
        messages = []
        for name, combination, inputs in readers:
            known = self._known.get(name)
            if known is None or known.watermark != combination.watermark or not combination.is_held_back:
                self._known[name] = _Known(combination.watermark, now)
            elif not known.was_told and now - known.since >= self._patience:
                known.was_told = True
                messages.append(_make_message(name, (now - known.since) // 1000, combination, inputs))
        return messages


def _make_message(name: str, seconds: int, combination: Combination, inputs: dict[object, str]) -> str:
    held_back_by = combination.held_back_by()
    waits_for = ", ".join(inputs.get(each, str(each)) for each in held_back_by)
    begin = f"Event time of {name} has stood still for {seconds} s: it waits for {waits_for}, "
    if any(combination.is_idle(each) for each in held_back_by):
        return (
            f"{begin}idle, while all other inputs have ended. It goes on when elements come there, or with the end of that input."
        )
    return (
        f"{begin}while other inputs are ahead. If that input may be without elements for a while, add with_idleness(...) to its"
        " WatermarkStrategy."
    )

"""Finds out which input holds event time back for a long time: windows and timers that wait for it never fire, and nothing
else says why.
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
    """Remembers how far each reader has come, and since when.

    :param patience: for how many ms an input may hold others back before it is named
    """

    def __init__(self, patience: int = 30_000) -> None:
        self._patience = patience
        self._known: dict[str, _Known] = {}
        self._next_look = 0

    def is_due(self, now: int) -> bool:
        """Whether it is worth looking again.

        :param now: processing time in ms
        :returns: whether a second has passed
        """
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_EVERY
        return True

    def look(self, now: int, readers: Iterable[tuple[str, Combination, dict[object, str]]]) -> list[str]:
        """Look at all readers.

        :param now: processing time in ms
        :param readers: name, watermarks of the inputs, and names of these
        :returns: a message for each reader that has waited for too long, once
        """
        messages = []
        for name, combination, inputs in readers:
            known = self._known.get(name)
            if known is None or known.watermark != combination.watermark or not combination.is_held_back:
                self._known[name] = _Known(combination.watermark, now)
            elif not known.was_told and now - known.since >= self._patience:
                known.was_told = True
                messages.append(_message(name, (now - known.since) // 1000, combination, inputs))
        return messages


def _message(name: str, seconds: int, combination: Combination, inputs: dict[object, str]) -> str:
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

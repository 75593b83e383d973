"""The progress of all outputs, of which some keep changes for a while, deliver them later, or have failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.host.inputs.inputs import InputEndpoint

_MOST_MARKS = 1000


@dataclass(frozen=True, slots=True)
class Mark:
    """What had been processed when a step was done.

    :param step: its number
    :param counters: those of the pipeline
    :param records: how many records steps had taken from each input
    """

    step: int
    counters: Counters
    records: Mapping[InputEndpoint, int]


class Deliveries:
    """Marks of the steps whose changes some output has not delivered, and what failed ones do not deliver.

    Changed by the pipeline's thread only.
    """

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        self._losses: dict[str, Mapping[InputEndpoint, int]] = {}
        self.is_serving = False
        """True when the pipeline has been opened, so that what its inputs bring can be told from what they had brought before."""

    @property
    def losses(self) -> Mapping[str, Mapping[InputEndpoint, int]]:
        """The outputs that have failed before all was delivered, each with how many records of each input its target has all of.

        May be read by any thread.
        """
        return self._losses

    def lose(self, output: str, step: int, completed: Mapping[InputEndpoint, int]) -> None:
        """An output has failed.

        :param output: its name
        :param step: the oldest step of which its target does not get all
        :param completed: how many records of each input all outputs have delivered; none of a later step are
        """
        before = [mark for mark in self._marks if mark.step < step]
        records = before[-1].records if before else completed
        self._losses = {**self._losses, output: records if self.is_serving else {}}

    def forget(self) -> None:
        """No output keeps anything."""
        self._marks.clear()

    def reached(self, mark: Mark, first_kept: int) -> Mark | None:
        """Add a mark, and find out how far all outputs have delivered.

        :param mark: that of the newest step
        :param first_kept: the oldest step of which an output has not delivered all changes
        :returns: the newest mark with all of whose changes were delivered; None when that is no other than before
        """
        if self._marks and self._marks[-1].step == mark.step:
            # The same step, and maybe more malformed records.
            self._marks.pop()
        self._marks.append(mark)
        done = [each for each in self._marks if each.step < first_kept]
        self._marks = self._marks[len(done) :]
        if len(self._marks) > _MOST_MARKS:
            # What is left tells less exactly how far deliveries are, and never too much.
            self._marks = self._marks[1::2]
        return done[-1] if done else None

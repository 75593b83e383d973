"""The delivery progress of all outputs, of which some buffer changes, deliver them later, or have failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.host.inputs.inputs import InputEndpoint

_MOST_MARKS = 1000


@dataclass(frozen=True, slots=True)
class Mark:
    """The counts of processed records at the end of a step.

    :param step: the step's number
    :param counters: the counters of the pipeline
    :param records: the number of records that steps had taken from each input
    """

    step: int
    counters: Counters
    records: Mapping[InputEndpoint, int]


class Deliveries:
    """The marks of the steps whose changes some output has not delivered, and the losses of failed outputs.

    Only the pipeline's thread changes them.
    """

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        self._losses: dict[str, Mapping[InputEndpoint, int]] = {}
        self.is_serving = False
        """True once the pipeline has been opened, so that new records of its inputs can be told from earlier ones."""

    @property
    def losses(self) -> Mapping[str, Mapping[InputEndpoint, int]]:
        """The outputs that have failed before everything was delivered.

        Each has the number of records of each input that its target has completely. Any thread may read it.
        """
        return self._losses

    def lose(self, output: str, step: int, completed: Mapping[InputEndpoint, int]) -> None:
        """Note that an output has failed.

        :param output: the output's name
        :param step: the oldest step that its target does not get completely
        :param completed: the number of records of each input that all outputs have delivered; none of them are of a later step
        """
        before = [mark for mark in self._marks if mark.step < step]
        records = before[-1].records if before else completed
        self._losses = {**self._losses, output: records if self.is_serving else {}}

    def forget(self) -> None:
        """Drop all marks, because no output buffers anything."""
        self._marks.clear()

    def add_mark(self, mark: Mark, first_kept: int) -> Mark | None:
        """Add a mark, and determine the progress of all outputs.

        :param mark: the mark of the newest step
        :param first_kept: the oldest step whose changes an output has not delivered completely
        :returns: the newest mark whose changes have all been delivered, or None if it has not advanced
        """
        if self._marks and self._marks[-1].step == mark.step:
            # The same step again, maybe with more malformed records.
            self._marks.pop()
        self._marks.append(mark)
        done = [each for each in self._marks if each.step < first_kept]
        self._marks = self._marks[len(done) :]
        if len(self._marks) > _MOST_MARKS:
            # The remaining marks report progress less exactly, but never too much of it.
            self._marks = self._marks[1::2]
        return done[-1] if done else None

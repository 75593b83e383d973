"""The measured times of evaluations of changed views, next to the computed ones, to correct the next estimate."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from airflow_pipelines.engine.storage.durable import write_atomically

logger = logging.getLogger(__name__)
_FILE: Final = "evaluations.json"
_KEPT: Final = 10
_SPREAD: Final = 2.0
"""The factor by which the estimated range is widened: evaluations differ from earlier ones, and so does the load of the machine."""


@dataclass(frozen=True, slots=True)
class Factors:
    """The factors of a computed time that give the shortest and the longest time to expect.

    :param least: the factor for the shortest time
    :param most: the factor for the longest time
    """

    least: float
    most: float


UNMEASURED: Final = Factors(1.0, 25.0)
"""The factors for a pipeline without measurements: the rows are known, but the speed of a machine under load is not."""


class EvaluationTimes:
    """A file with the newest evaluations of one pipeline."""

    def __init__(self, folder: Path | None) -> None:
        """Remember the folder; nothing is read yet.

        :param folder: the pipeline's storage folder, or None without storage
        """
        self._path = None if folder is None else folder / _FILE

    def factors(self) -> Factors:
        """Return the range of the ratios of measured to computed times."""
        ratios = [taken / computed for computed, taken in self._read()]
        return Factors(min(ratios) / _SPREAD, max(ratios) * _SPREAD) if ratios else UNMEASURED

    def add(self, computed_s: float, taken_s: float) -> None:
        """Record an evaluation.

        :param computed_s: the computed time, in seconds
        :param taken_s: the measured time, in seconds
        :raises OSError: if the storage cannot be written
        """
        if self._path is not None and computed_s > 0 and taken_s > 0:
            newest = [*self._read(), (computed_s, taken_s)][-_KEPT:]
            write_atomically(self._path, json.dumps(newest).encode())

    def _read(self) -> list[tuple[float, float]]:
        if self._path is None or not self._path.is_file():
            return []
        try:
            pairs = [(float(computed), float(taken)) for computed, taken in json.loads(self._path.read_bytes())]
        except (OSError, ValueError, TypeError, OverflowError) as error:
            # The file only corrects estimates, so an error in it must not keep a pipeline from starting.
            logger.warning("%s cannot be read, so estimates begin anew without what evaluations have taken: %s", self._path, error)
            return []
        return [times for times in pairs if all(math.isfinite(time) and time > 0 for time in times)]

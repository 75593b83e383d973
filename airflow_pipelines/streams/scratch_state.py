"""State at rest of a program that runs by itself: a database in a folder that vanishes with the process."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from airflow_pipelines.streams.graph.chains import Plan
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.state.database import DatabaseRows, DatabaseSettings, StateDatabase
from airflow_pipelines.streams.state.rows import StateRows

_PREFIX = "airflow-pipelines-state-"


class ScratchState:
    """The state at rest of one run. Nothing is written to disk before there is so much state that some of it goes to rest.

    :param plan: the program
    :param settings: its settings
    """

    def __init__(self, plan: Plan, settings: TaskSettings) -> None:
        self._parent = Path(settings.scratch_folder or tempfile.gettempdir())
        self._folder = self._parent / f"{_PREFIX}{os.getpid()}-{os.urandom(6).hex()}"
        self._numbers = {step.uid: number for number, step in enumerate(step for chain in plan.chains for step in chain.steps)}
        self._database = StateDatabase(self._folder, DatabaseSettings(cache_bytes=settings.cache_bytes))

    def rows_of(self, uid: str, groups: range, max_parallelism: int) -> StateRows:
        """Return the rows at rest of an operator.

        :param uid: the uid of the operator
        :param groups: the key groups of the task
        :param max_parallelism: the number of all key groups
        :returns: its rows
        """
        return DatabaseRows(self._database, self._numbers[uid], groups, max_parallelism)

    def close(self) -> None:
        """Close the database, and remove it."""
        was_open = self._database.is_open
        self._database.close()
        if was_open:
            shutil.rmtree(self._folder, ignore_errors=True)
            _remove_abandoned(self._parent)


def _remove_abandoned(folder: Path) -> None:
    """Remove the databases of processes that were killed."""
    for left in folder.glob(f"{_PREFIX}*"):
        process = left.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdecimal() and not Path("/proc", process).exists():
            shutil.rmtree(left, ignore_errors=True)

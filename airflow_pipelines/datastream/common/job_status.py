"""The status of a program that was started."""

from __future__ import annotations

from enum import Enum


class JobStatus(Enum):
    """The status of a program that was started.

    >>> from airflow_pipelines.datastream.common import JobStatus
    >>> [status.name for status in JobStatus if status.is_globally_terminal_state()]
    ['FAILED', 'CANCELED', 'FINISHED']
    """

    INITIALIZING = 0
    CREATED = 1
    RUNNING = 2
    FAILING = 3
    FAILED = 4
    CANCELLING = 5
    CANCELED = 6
    FINISHED = 7
    RESTARTING = 8
    SUSPENDED = 9
    RECONCILING = 10

    def is_globally_terminal_state(self) -> bool:
        """Return True if the program has ended for good.

        :returns: True for ``FAILED``, ``CANCELED`` and ``FINISHED``
        """
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Return True if the program has ended here.

        :returns: True for the globally terminal states, and for ``SUSPENDED``
        """
        return self.is_globally_terminal_state() or self is JobStatus.SUSPENDED

"""The id of a run of a program."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4


@dataclass(frozen=True)
class JobID:
    """The id of a run of a program.

    :param text: 32 hexadecimal digits

    >>> from airflow_pipelines.datastream.common import JobID
    >>> monday, tuesday = JobID.generate(), JobID.generate()
    >>> monday == tuesday, monday == JobID(str(monday)), len(str(monday))
    (False, True, 32)
    """

    text: str

    @staticmethod
    def generate() -> JobID:
        """Return a new id.

        :returns: the id
        """
        return JobID(uuid4().hex)

    def __str__(self) -> str:
        return self.text

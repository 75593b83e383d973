"""The identity of the program that made durable state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.sources import ProgramSource


@dataclass(frozen=True, slots=True)
class ProgramIdentity:
    """The identity of a program in checkpoints and journals.

    :param source: the source of the program
    :param fingerprints: the fingerprints of its parts
    :param hash: an unsigned 64-bit number, see :func:`~airflow_pipelines.program.fingerprints.program_hash`
    :param version: the ``program_version`` that the service gave it, None if a release that did not store it saved the state
    """

    source: ProgramSource
    fingerprints: Fingerprints
    hash: int
    version: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields of a checkpoint's manifest and of a journal's header."""
        return {
            **self.source.to_stored(),
            "fingerprints": self.fingerprints.to_json(),
            "program_hash": self.hash,
            "program_version": self.version,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ProgramIdentity:
        """Return the identity that :meth:`to_json` serialised, among other fields; those of earlier releases lack some.

        :raises KeyError: when a field is missing that always was there
        :raises TypeError: when the fingerprints have parts that this release does not know
        """
        return cls(
            ProgramSource.from_stored(fields),
            Fingerprints.from_json(fields["fingerprints"]),
            fields["program_hash"],
            fields.get("program_version"),
        )

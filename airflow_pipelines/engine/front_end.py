"""The front end, which compiles the source of a program into one that the engine can run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from airflow_pipelines.engine.program import Program
from airflow_pipelines.program.sources import ProgramSource


class FrontEnd(Protocol):
    """A compiler of the programs of one kind. Several threads may use it at once."""

    def compile(self, source: ProgramSource, limit_s: float = math.inf) -> Program:
        """Compile a program.

        :param source: its source
        :param limit_s: the limit of processor time in seconds, after which no further view is begun
        :returns: the program
        :raises ProgramErrors: if the program has errors; it has the places of all that were found
        """

    def late_relations(self, source: ProgramSource) -> frozenset[str]:
        """Return the relations of a program whose rows may come too late.

        :param source: the source of a program that compiled
        :returns: their canonical names
        :raises ProgramErrors: when the source cannot be read
        """

    def declarations(self, source: ProgramSource) -> Mapping[str, str]:
        """Return the source text of the declarations of a program's relations.

        :param source: the source of a program that compiled
        :returns: the text of each relation's declaration, by canonical name
        :raises ProgramErrors: when the source cannot be read
        """

"""What makes programs that the engine can run out of the source that their author wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from airflow_pipelines.engine.program import Program
from airflow_pipelines.program.sources import ProgramSource


class FrontEnd(Protocol):
    """Compiles the programs of one kind. May be used by several threads at once."""

    def compile(self, source: ProgramSource, limit_s: float = math.inf) -> Program:
        """Compile a program.

        :param source: its source
        :param limit_s: no further view is begun after so many seconds of processor time
        :returns: the program
        :raises ProgramErrors: with the places of all errors found
        """

    def late_relations(self, source: ProgramSource) -> frozenset[str]:
        """The relations of a program rows of which may come too late.

        :param source: the source of a program that compiled
        :returns: their canonical names
        :raises ProgramErrors: when the source cannot be read
        """

    def declarations(self, source: ProgramSource) -> Mapping[str, str]:
        """How the relations of a program are written.

        :param source: the source of a program that compiled
        :returns: the text of each relation's declaration, by canonical name
        :raises ProgramErrors: when the source cannot be read
        """

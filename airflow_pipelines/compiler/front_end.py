"""The front end for SQL: from text, with a Python module for its functions, to a program that the engine runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.compiler.connector_checks import ConnectorCheck
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.program.statement_texts import statement_texts


@dataclass(frozen=True, slots=True)
class SqlFrontEnd:
    """A :class:`~airflow_pipelines.engine.front_end.FrontEnd` for programs in SQL.

    :param sessions: any sessions of the application whose analyzer is used
    :param check_connector: called for each declared connector with its relation's schema
    """

    sessions: SparkSessions
    check_connector: ConnectorCheck | None

    def compile(self, source: ProgramSource, limit_s: float = math.inf) -> Program:
        """Compile a program. Run no Spark job.

        :param source: its SQL text and its Python module
        :param limit_s: the seconds of processor time after which no further view is begun
        :returns: the program
        :raises ProgramErrors: if there are errors: all of them with their places, or only those of the text if it cannot be parsed
        """
        return compile_program(source.sql, self.sessions, self.check_connector, source.python_functions, limit_s)

    def late_relations(self, source: ProgramSource) -> frozenset[str]:
        """Return the tables and views whose rows may come too late.

        :param source: the source of a program that compiled
        :returns: their canonical names
        :raises ProgramErrors: if the text cannot be parsed
        """
        return parse_program(source.sql).late_relations

    def declarations(self, source: ProgramSource) -> Mapping[str, str]:
        """Return the text of the declarations of a program's relations.

        :param source: the source of a program that compiled
        :returns: the statement that declares each relation, by canonical name
        :raises ProgramErrors: if the text cannot be parsed
        """
        return statement_texts(source.sql)

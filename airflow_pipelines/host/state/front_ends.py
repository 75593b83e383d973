"""The front ends of a host, and the choice of the one that compiles a program."""

from __future__ import annotations

from airflow_pipelines.compiler.front_end import SqlFrontEnd
from airflow_pipelines.compiler.stream_front_end import StreamFrontEnd
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.engine.front_end import FrontEnd
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.sources import ProgramKind, ProgramSource


def front_end_for(source: ProgramSource, sessions: SparkSessions) -> FrontEnd:
    """Return the front end that compiles a program, connectors included.

    :param source: the program's source
    :param sessions: any sessions of the application
    :returns: the front end
    """
    if ProgramKind.STREAMS in source.kinds:
        return StreamFrontEnd(sessions, check_connector=validate)
    return SqlFrontEnd(sessions, check_connector=validate)

"""The front ends of a host: which one compiles a program."""

from __future__ import annotations

from airflow_pipelines.compiler.front_end import SqlFrontEnd
from airflow_pipelines.connectors.registry import validate
from airflow_pipelines.engine.front_end import FrontEnd
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.messages import NOT_SUPPORTED, ProgramErrors, ProgramMessage
from airflow_pipelines.program.sources import ProgramKind, ProgramSource


def front_end_for(source: ProgramSource, sessions: SparkSessions) -> FrontEnd:
    """The front end that compiles a program, connectors included.

    :param source: the program's source
    :param sessions: any sessions of the application
    :returns: the front end
    :raises ProgramErrors: when this release has none for the source
    """
    if ProgramKind.STREAMS in source.kinds:
        message = f"Stream programs cannot run on this release, only SQL: {', '.join(file.path for file in source.stream_files)}"
        raise ProgramErrors([ProgramMessage(None, NOT_SUPPORTED, message)])
    return SqlFrontEnd(sessions, check_connector=validate)

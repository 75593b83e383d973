"""The process of a stream program behind the engine's interface: schemas of its relations, and errors of its functions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.streams.runtime import Dropped, Metrics, StreamProgramFailure
from airflow_pipelines.engine.streams.spark_jobs import SparkJobs
from airflow_pipelines.host.streams.stream_processes import StreamProcesses
from airflow_pipelines.program.streams import STREAM_PROGRAM
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.worker.client import ProgramFailedError, WorkerProcess
from airflow_pipelines.streams.worker.declared_types import DECLARED
from airflow_pipelines.streams.worker.messages import Failure, Feed, StateChanges, Stepped, StoredPages


class StreamWorker:
    """A :class:`~airflow_pipelines.engine.streams.runtime.Worker` whose failures are those of a step.

    :param process: the process
    :param schemas: Arrow schemas in IPC format of the relations that the program makes, by uid of the operator
    :param database: the folder for the database with the state by key, which is removed when the process has ended
    :param attempt: the number of restarts of the program
    """

    def __init__(self, process: WorkerProcess, schemas: Mapping[str, bytes], database: Path, attempt: int = 0) -> None:
        self.database = database
        self._process = process
        self._schemas = schemas
        self._attempt = attempt

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], dropped: Dropped, now_ms: int | None) -> Stepped:
        """See :class:`Worker`."""
        with _as_failures("The stream program cannot go on from what is saved" if rest else "The stream program cannot begin"):
            return self._process.open(
                rest,
                pages,
                dropped,
                schemas=self._schemas,
                now_ms=now_ms,
                attempt=self._attempt,
                database=str(self.database),
            )

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None) -> Stepped:
        """See :class:`Worker`."""
        with _as_step_errors():
            return self._process.step(now_ms, feeds, jobs)

    def take_checkpoint(self, folder: Path) -> StateChanges:
        """See :class:`Worker`."""
        with _as_failures("The checkpoint was not taken: the stream program cannot say what it keeps"):
            return self._process.take_checkpoint(str(folder))

    def committed(self) -> None:
        """See :class:`Worker`."""
        with _as_failures(
            "All steps are saved, but the stream program could not make visible what its sinks have written. The next start tries"
            " that again"
        ):
            self._process.notify_checkpoint_complete()

    def metrics(self) -> Metrics | None:
        """See :class:`Worker`."""
        return self._process.metrics()

    def close(self, wait_s: float) -> None:
        """See :class:`Worker`."""
        self._process.close(wait_s)
        shutil.rmtree(self.database, ignore_errors=True)


def started_worker(processes: StreamProcesses, schemas: Mapping[str, bytes], attempt: int) -> StreamWorker:
    """Start a process of a stream program.

    :param processes: starts it
    :param schemas: see :class:`StreamWorker`
    :param attempt: see :class:`StreamWorker`
    :returns: the process
    :raises StreamProgramFailure: if it cannot be started
    """
    with _as_failures("The stream program cannot be started"):
        return StreamWorker(processes.worker(), schemas, processes.new_database(), attempt)


def arrow_schemas(program: Program) -> dict[str, bytes]:
    """Return the schemas of the relations that the stream program of a program makes, each column with its type in SQL.

    :param program: the program
    :returns: Arrow schemas in IPC format, by uid of the operator
    """
    outputs = () if program.streams is None else program.streams.outputs
    return {output.uid: bytes(_with_declared_types(program.schemas[output.relation]).serialize()) for output in outputs}


def _with_declared_types(relation: RelationSchema) -> pa.Schema:
    declared = [{DECLARED: json.dumps(column.type.to_wire())} for column in relation.columns]
    return pa.schema([field.with_metadata(each) for field, each in zip(relation.arrow, declared, strict=True)])


@contextmanager
def _as_step_errors() -> Iterator[None]:
    try:
        yield
    except ProgramFailedError as error:
        raise StepError(STREAM_PROGRAM, error.failure.type, _describe(error.failure), trace=_trace(error.failure)) from error
    except StreamProgramError as error:
        raise StepError(STREAM_PROGRAM, type(error).__name__.removesuffix("Error"), str(error)) from error


@contextmanager
def _as_failures(what: str) -> Iterator[None]:
    try:
        yield
    except ProgramFailedError as error:
        raise StreamProgramFailure(f"{what}: {error.failure.type}: {_describe(error.failure)}", _trace(error.failure)) from error
    except StreamProgramError as error:
        raise StreamProgramFailure(f"{what}: {error}") from error


def _describe(failure: Failure) -> str:
    place = f" ({failure.place})" if failure.place else ""
    return f"{failure.message}{place}{''.join(f', {note}' for note in failure.notes)}"


def _trace(failure: Failure) -> str | None:
    return failure.traceback.rstrip() or None

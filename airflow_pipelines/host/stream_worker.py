"""The process of a stream program in the terms of the engine: schemas of its relations, and errors of its functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.streams.runtime import Dropped
from airflow_pipelines.engine.streams.spark_jobs import SparkJobs
from airflow_pipelines.program.streams import STREAM_PROGRAM
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.worker.client import ProgramFailedError, WorkerProcess
from airflow_pipelines.streams.worker.messages import Feed, StateChanges, Stepped, StoredPages


class StreamWorker:
    """A :class:`~airflow_pipelines.engine.streams.runtime.Worker` whose failures are those of a step.

    :param process: the process
    :param schemas: Arrow schemas in IPC format of the relations that the program makes, by uid of the operator
    """

    def __init__(self, process: WorkerProcess, schemas: Mapping[str, bytes]) -> None:
        self._process = process
        self._schemas = schemas

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], dropped: Dropped, now_ms: int | None) -> Stepped:
        """See :class:`Worker`."""
        with _as_step_errors():
            return self._process.open(rest, pages, dropped, schemas=self._schemas, now_ms=now_ms)

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None) -> Stepped:
        """See :class:`Worker`."""
        with _as_step_errors():
            return self._process.step(now_ms, feeds, jobs)

    def changes(self) -> StateChanges:
        """See :class:`Worker`."""
        with _as_step_errors():
            return self._process.changes()

    def committed(self) -> None:
        """See :class:`Worker`."""
        with _as_step_errors():
            self._process.committed()

    def close(self, wait_s: float) -> None:
        """See :class:`Worker`."""
        self._process.close(wait_s)


def arrow_schemas(program: Program) -> dict[str, bytes]:
    """The schemas of the relations that the stream program of a program makes.

    :param program: the program
    :returns: Arrow schemas in IPC format, by uid of the operator
    """
    outputs = () if program.streams is None else program.streams.outputs
    return {output.uid: bytes(program.schemas[output.relation].arrow.serialize()) for output in outputs}


@contextmanager
def _as_step_errors() -> Iterator[None]:
    try:
        yield
    except ProgramFailedError as error:
        failure = error.failure
        place = f" ({failure.place})" if failure.place else ""
        notes = "".join(f", {note}" for note in failure.notes)
        raise StepError(
            STREAM_PROGRAM, failure.type, f"{failure.message}{place}{notes}", trace=failure.traceback.rstrip() or None
        ) from error
    except StreamProgramError as error:
        raise StepError(STREAM_PROGRAM, type(error).__name__.removesuffix("Error"), str(error)) from error

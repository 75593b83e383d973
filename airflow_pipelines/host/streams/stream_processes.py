"""The processes of a stream program, with its files, its Python environment, and the pipeline's log for their output."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from airflow_pipelines.common.references import References, ReferenceWithoutValueError
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.program.stream_files import write_stream_files
from airflow_pipelines.program.streams import StreamProgram
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.processes import ProcessSettings
from airflow_pipelines.streams.python_environment.environment import make_environment
from airflow_pipelines.streams.python_environment.needs import PythonNeeds
from airflow_pipelines.streams.reading.client import ReadingProcess
from airflow_pipelines.streams.worker.client import WorkerProcess

FILES, ENVIRONMENTS, DATABASES = "stream-files", "python", "stream-state"
"""The folders of a pipeline's storage: files of stream programs that run, environments of their processes, and their databases."""
_OF_THE_HOST = ("AIRFLOW", "PYSPARK_", "SPARK_")
"""The prefixes of environment variables that programs do not get."""


class StreamProcesses:
    """The processes of one stream program of one incarnation. Nothing is written or started before it is needed.

    :param program: the stream program
    :param files: its files
    :param name: the name of the folder with its files, unique among the pipeline's programs that run at the same time
    :param storage: the pipeline's folder
    :param environment: the variables that its processes have besides those of the host
    :param references: the values of the program's references
    :param log: the pipeline's log
    """

    def __init__(
        self,
        program: StreamProgram,
        files: Sequence[SourceFile],
        name: str,
        storage: Path,
        environment: Mapping[str, str],
        references: References,
        log: PipelineLog,
    ) -> None:
        self._program = program
        self._files = files
        self._storage = storage
        self._folder = storage / FILES / name
        self._environment = environment
        self._references = references
        self._log = log
        self._lock = threading.Lock()
        self._settings_lock = threading.Lock()
        self._reading: ReadingProcess | None = None
        self._stopped = False
        self._has_cleaned = False

    @property
    def settings(self) -> ProcessSettings:
        """The settings with which each process starts. The first access makes the Python environment, which may take minutes.

        :raises PythonEnvironmentError: if the environment cannot be made
        :raises StreamProgramError: if a reference of the program has no value
        """
        with self._settings_lock:
            return self._settings

    def reading(self) -> ReadingProcess:
        """Return the process that reads the program's sources. The first call starts it.

        :raises StreamProgramError: if it cannot be started, or was ended
        """
        # Outside of the lock, because the end of the pipeline would wait for that.
        settings = self.settings
        with self._lock:
            if self._stopped:
                raise StreamProgramError("The process that reads the sources of the stream program was ended with the pipeline.")
            if self._reading is None:
                self._reading = ReadingProcess(self._program.plan, settings, self.log_line)
                self._log.info("stream program: process %d reads its sources", self._reading.pid)
            return self._reading

    def worker(self) -> WorkerProcess:
        """Start a process that runs the program.

        :raises StreamProgramError: if it cannot be started
        """
        process = WorkerProcess(self._program.plan, self.settings, self.log_line)
        self._log.info("stream program: process %d runs it", process.pid)
        return process

    def new_database(self) -> Path:
        """Return a folder for the database of a process, which does not exist.

        The first call removes those of processes that were killed: no other run of the pipeline writes to its storage now.

        :returns: its path, on the same file system as the pipeline's batches
        """
        databases = self._storage / DATABASES
        with self._lock:
            if not self._has_cleaned:
                shutil.rmtree(databases, ignore_errors=True)
                self._has_cleaned = True
        databases.mkdir(parents=True, exist_ok=True)
        return databases / uuid.uuid4().hex

    def log_line(self, stream: str, line: str) -> None:
        """Write a line of a process's output into the pipeline's log.

        :param stream: ``stdout`` or ``stderr``
        :param line: the line
        """
        self._log.info("%s: %s", stream, line)

    def stop_reading(self) -> None:
        """End the process that reads the program's sources."""
        with self._lock:
            self._stopped = True
            if self._reading is not None:
                self._reading.close()

    def close(self) -> None:
        """End the process that reads the sources, and remove the program's files. All other processes have ended by now."""
        self.stop_reading()
        shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def _settings(self) -> ProcessSettings:
        # The folder may be left from a run that was killed, and may have been changed by it.
        shutil.rmtree(self._folder, ignore_errors=True)
        write_stream_files(self._files, self._folder)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THE_HOST)}
        executable, paths = sys.executable, [self._folder]
        if self._program.dependencies:
            needs = PythonNeeds.from_json(self._program.dependencies, self._folder)
            self._log.info("stream program: making its Python environment, unless it is there")
            made = make_environment(needs, self._storage / ENVIRONMENTS)
            executable = str(made.executable)
            paths += made.paths
            made.link_archives(self._folder)
        return ProcessSettings(
            executable,
            paths=tuple(map(str, paths)),
            folder=str(self._folder),
            environment={**variables, **self._environment},
            references=self._values(),
        )

    def _values(self) -> dict[str, str]:
        try:
            return {reference: self._references.value(reference) for reference in self._program.references}
        except ReferenceWithoutValueError as error:
            raise StreamProgramError(f"A source or sink of the stream program names what is not there: {error}") from error

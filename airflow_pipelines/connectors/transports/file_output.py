"""Writes a view's changes to a local file, one line per change."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.formats.csv import CsvOptions
from airflow_pipelines.connectors.formats.delta import csv_changes, json_changes, ordered_changes
from airflow_pipelines.connectors.formats.json import JsonOptions
from airflow_pipelines.private_files import make_output_file

KEPT_STEPS = 10_000
"""For how many of the newest steps the side file knows where in the output they end."""
_LINES_AT_ONCE = 10_000


class FileOutputOptions(BaseModel):
    """Options of the transport. ``path``: the file to write, on the machine where the pipeline runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)


class FileOutput:
    """Appends each step's changes to a file, on disk before :meth:`write` returns.

    A side file, ``<path>.steps``, says how long the output was after each step. With it a restarted pipeline takes back what was
    written after the checkpoint it goes on from (:meth:`rewind`), so that a step is in the file once however often it was computed.
    """

    def __init__(self, options: FileOutputOptions, encoding: CsvOptions | JsonOptions) -> None:
        self._path = Path(options.path).expanduser().absolute()
        self._steps_path = self._path.with_name(self._path.name + ".steps")
        self._encoding = encoding
        self._file: io.FileIO | None = None
        self._steps_file: io.FileIO | None = None
        self._ends: list[tuple[int, int]] = []

    def open(self, resumed: bool) -> None:
        """Start a new file, or go on with the one that is there when ``resumed``, without what a crash left unfinished.

        :raises ConnectorFailure: when the file cannot be written
        """
        try:
            if not resumed:
                self._path.unlink(missing_ok=True)
                self._steps_path.unlink(missing_ok=True)
            make_output_file(self._path)
            self._file = io.FileIO(self._path, "a+")
            size = os.fstat(self._file.fileno()).st_size
            self._ends = self._read_steps(size)
            if self._steps_path.exists():
                self._file.truncate(self._ends[-1][1] if self._ends else 0)
            self._rewrite_steps()
        except OSError as error:
            raise ConnectorFailure(
                f"file_output cannot write {self._path}: {error.strerror or error}. Check that the folder may be written by the "
                "user that runs the pipeline."
            ) from error

    def write(self, step: int, batch: Any) -> tuple[int, int]:
        """Append a step's delta, in place of what was written for this or a later step before; returns (changes, bytes)."""
        if self._file is None or self._steps_file is None:
            raise ConnectorFailure(f"file_output {self._path} is not open")
        if self._ends and self._ends[-1][0] >= step:
            self.rewind(step - 1)
        ordered = ordered_changes(batch)
        records = size = 0
        try:
            for lines in self._blocks(ordered):
                records += len(lines)
                size += self._append("".join(lines).encode())
            os.fsync(self._file.fileno())
            end = os.fstat(self._file.fileno()).st_size
            self._ends.append((step, end))
            self._steps_file.write(f"{step} {end}\n".encode())
            os.fsync(self._steps_file.fileno())
            if len(self._ends) > 2 * KEPT_STEPS:
                self._ends = self._ends[-KEPT_STEPS:]
                self._rewrite_steps()
        except OSError as error:
            raise ConnectorFailure(f"file_output cannot write {self._path}: {error.strerror or error}") from error
        return records, size

    def rewind(self, step: int) -> None:
        """Take back what was written after ``step``.

        :raises ConnectorFailure: when that is too long ago to be known
        """
        if self._file is None:
            raise ConnectorFailure(f"file_output {self._path} is not open")
        while self._ends and self._ends[-1][0] > step:
            self._ends.pop()
        if not self._ends:
            raise ConnectorFailure(
                f"file_output {self._path}: {self._steps_path.name} no longer says where step {step} ended; move the file away to "
                "start a new one."
            )
        self._file.truncate(self._ends[-1][1])
        self._rewrite_steps()

    def close(self) -> None:
        """Let go of the file; everything in it is on disk already."""
        for file in (self._file, self._steps_file):
            if file is not None:
                file.close()
        self._file = self._steps_file = None

    def _blocks(self, ordered: Any) -> Iterator[list[str]]:
        if isinstance(self._encoding, CsvOptions):
            lines = csv_changes(ordered, self._encoding.delimiter, self._encoding.quote)
        else:
            lines = (change + "\n" for change in json_changes(ordered))
        while block := list(itertools.islice(lines, _LINES_AT_ONCE)):
            yield block

    def _append(self, data: bytes) -> int:
        """Write all of ``data``: an unbuffered file may take only a part at a time."""
        if self._file is None:
            raise ConnectorFailure(f"file_output {self._path} is not open")
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        return len(data)

    def _read_steps(self, size: int) -> list[tuple[int, int]]:
        """Where the steps end that are wholly in the output; the first entry stands for what was there before any step."""
        if not self._steps_path.exists():
            return [(-1, size)]
        ends = []
        for line in self._steps_path.read_text().splitlines():
            step, _, end = line.partition(" ")
            # A line that a crash cut off, or that speaks of bytes that never came to disk, ends what is known.
            if not (end.isdigit() and int(end) <= size):
                break
            ends.append((int(step), int(end)))
        return ends or [(-1, 0)]

    def _rewrite_steps(self) -> None:
        """Put the side file in agreement with what is known, aside and then in place."""
        if self._steps_file is not None:
            self._steps_file.close()
        aside = self._steps_path.with_name(self._steps_path.name + ".new")
        with aside.open("w") as file:
            file.writelines(f"{step} {end}\n" for step, end in self._ends)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._steps_path)
        self._steps_file = io.FileIO(self._steps_path, "a")

"""An output that writes a view's changes to a local file, one line per change."""

from __future__ import annotations

import fcntl
import io
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from tenacity import retry_if_exception_type

from airflow_pipelines.common.private_files import make_output_file
from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.left_out import LeftOutRows, records_that_fit
from airflow_pipelines.connectors.transports.step_ends import StepEnds
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.rows.formats.csv import CsvOptions
from airflow_pipelines.rows.formats.delta import JsonChanges, csv_changes
from airflow_pipelines.rows.formats.json import JsonOptions

logger = logging.getLogger(__name__)

LOCK_S = 15.0
"""The time, in seconds, that a run waits for the file of the run that it replaces, which notices that within seconds."""
_TRIES = 3
_ANEW = "Put it back as it was, or move it away and give the connector another name to start a new file."


class FileOutput:
    """An output that appends each step's changes to a file, on disk before :meth:`write` returns.

    The pipeline's storage keeps the end of each step. With it a restarted pipeline takes back what was written after the
    checkpoint from which it resumes (:meth:`rewind`), so that a step is in the file once, however often it was computed.
    The file is locked while it is open, and changes that others make to it are detected.
    """

    def __init__(
        self,
        path: str,
        encoding: CsvOptions | JsonOptions,
        positions: Path | None = None,
        fence: Fence | None = None,
        left_out: LeftOutRows | None = None,
    ) -> None:
        """Make an output that is not open yet.

        :param path: the file to write, on the machine where the pipeline runs
        :param encoding: the options of its format
        :param positions: the file in the pipeline's storage that records where steps end; None for a pipeline without storage
        :param fence: the epoch of the run that writes; None where there is no other
        :param left_out: the collector of the rows that the format cannot write; None where nobody asks for them
        """
        self._path = Path(path).expanduser().absolute()
        self._positions = positions
        self._fence = fence
        self._left_out = left_out or LeftOutRows()
        self._ends = StepEnds(positions, None if fence is None else fence.epoch)
        self._encoding = encoding
        self._texts = _texts_of(encoding)
        self._file: io.FileIO | None = None

    def open(self, resumed: bool) -> None:
        """Start a new file or, if ``resumed``, continue the existing one without what a crash left unfinished.

        :raises ConnectorFailure: when the file cannot be written, another output writes it, or it is gone
        :raises OvertakenError: when a later run of the pipeline writes it
        """
        self._check_newest()
        try:
            wait_s = LOCK_S if self._ends.exists else 0.0
            known = resumed and self._load_ends()
            missing = known and self._ends.end > 0 and not self._path.exists()
            if missing:
                raise self._failure(f"the file is gone, which had {self._ends.end} bytes after step {self._ends.step}. {_ANEW}")
            make_output_file(self._path)
            file = io.FileIO(self._path, "a+")
            try:
                self._lock(file, wait_s)
                self._begin(file, resumed, known)
            except BaseException:
                file.close()
                raise
            self._file = file
        except OSError as error:
            raise ConnectorFailure(
                f"file_output cannot write {self._path}: {error.strerror or error}. Check that the folder may be written by the "
                "user that runs the pipeline."
            ) from error

    def _load_ends(self) -> bool:
        """Return True if it is known what an earlier incarnation wrote."""
        if self._ends.read():
            return True
        beside = self._path.with_name(self._path.name + ".steps")
        if self._positions is None or self._positions.exists() or not beside.is_file():
            return False
        # Earlier releases kept the ends of steps there.
        self._positions.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(beside, self._positions)
        return self._ends.read()

    def _lock(self, file: io.FileIO, limit_s: float) -> None:
        """Lock the file.

        A replaced run of this pipeline may still hold the lock, until it notices that it was replaced.
        """
        policy = RetryPolicy(first_wait_s=0.1, longest_wait_s=0.1, limit_s=limit_s)
        try:
            policy.retrying(retry_if_exception_type(BlockingIOError))(fcntl.flock, file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise self._failure(
                "another output writes this file, of this or another pipeline, and two would mix their lines. Give each a path of "
                "its own, or stop the other pipeline."
            ) from error

    def _begin(self, file: io.FileIO, resumed: bool, known: bool) -> None:
        size = os.fstat(file.fileno()).st_size
        if known:
            # A shorter file may be fine for an earlier step; the rewind to that step, or the next write, checks the size.
            file.truncate(min(size, self._ends.end))
            return
        if resumed and size:
            raise self._failure(
                "the pipeline's storage does not say which steps this file holds, so that they could come twice. Move it away to "
                "start a new one with the next step."
            )
        file.truncate(0)
        self._ends.begin(-1, 0)

    def _check_size(self, size: int, step: int, end: int) -> None:
        if size < end:
            raise self._failure(f"it has {size} bytes and had {end} after step {step}. {_ANEW}")

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Append a step's changes, and replace what was written before for this or a later step.

        :returns: the number of changes and the number of bytes that were written
        :raises OvertakenError: when a later run of the pipeline writes the file
        """
        file = self._require_open()
        self._check_newest()
        if self._ends.step >= step:
            self.rewind(step - 1)
        begin = self._ends.end
        try:
            for _ in range(_TRIES):
                self._check_unchanged(file)
                records, size = self._append_changes(file, changes)
                os.fsync(file.fileno())
                self._check_newest()
                if os.fstat(file.fileno()).st_size == begin + size:
                    break
            else:
                raise self._failure("another process writes into the file all the time. Give it a path of its own.")
            self._ends.add(step, begin + size)
        except OSError as error:
            raise ConnectorFailure(
                f"file_output cannot write {self._path}: {error.strerror or error}. The output has ended, and the file misses what "
                "comes from now on. Put this right, and give the connector another name and path, and 'send_snapshot': true, to "
                "have everything in a new file."
            ) from error
        return records, size

    def _append_changes(self, file: io.FileIO, changes: Changes) -> tuple[int, int]:
        records = size = 0
        self._left_out.clear()
        for table in changes.tables():
            texts = list(records_that_fit(table, self._texts, self._left_out))
            records += len(texts)
            size += _append(file, self._frame(texts).encode())
        return records, size

    def _check_newest(self) -> None:
        if self._fence is not None:
            self._fence.check()

    def _check_unchanged(self, file: io.FileIO) -> None:
        """Refuse to go on with a file that somebody deleted, replaced or cut: its readers would miss changes.

        What somebody added is taken back, as at a start: it may come from a run that was replaced.
        """
        ours = os.fstat(file.fileno())
        try:
            there = self._path.stat()
        except FileNotFoundError:
            raise self._failure(f"somebody deleted the file, which had {self._ends.end} bytes. {_ANEW}") from None
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            raise self._failure(f"somebody replaced the file by another. {_ANEW}")
        self._check_size(ours.st_size, self._ends.step, self._ends.end)
        if ours.st_size > self._ends.end:
            logger.warning("file_output %s: %d bytes that others added are taken back", self._path, ours.st_size - self._ends.end)
            self._check_newest()
            file.truncate(self._ends.end)

    def rewind(self, step: int) -> None:
        """Take back what was written after ``step``.

        :raises ConnectorFailure: when that is too long ago to be known, or the file is shorter than it was then
        :raises OvertakenError: when a later run of the pipeline writes the file
        """
        file = self._require_open()
        self._check_newest()
        last = self._ends.last_of(step)
        if last is None:
            raise self._failure(
                f"the pipeline's storage no longer says where step {step} ended. Move the file away to start a new one."
            )
        self._check_size(os.fstat(file.fileno()).st_size, *last)
        self._ends.rewind(step)
        file.truncate(self._ends.end)

    def close(self) -> None:
        """Close the file; everything in it is on disk already."""
        if self._file is not None:
            self._file.close()
        self._ends.close()
        self._file = None

    def _require_open(self) -> io.FileIO:
        if self._file is None:
            raise self._failure("it is not open")
        return self._file

    def _failure(self, reason: str) -> ConnectorFailure:
        return ConnectorFailure(f"file_output {self._path}: {reason}")

    def _frame(self, texts: Sequence[str]) -> str:
        """Return the texts of changes in the form of the file."""
        if isinstance(self._encoding, CsvOptions):
            return "".join(texts)
        if self._encoding.array:
            size = self._encoding.buffer_size_records
            return "".join(f"[{','.join(texts[begin : begin + size])}]\n" for begin in range(0, len(texts), size))
        return "".join(text + "\n" for text in texts)


def _texts_of(encoding: CsvOptions | JsonOptions) -> Callable[[pa.Table], Iterator[str]]:
    """Return a function that yields the text of each change."""
    if isinstance(encoding, CsvOptions):
        return lambda table: csv_changes(table, encoding.delimiter, encoding.quote)
    return JsonChanges(encoding).texts


def _append(file: io.FileIO, data: bytes) -> int:
    """Write all of ``data``, since an unbuffered file may take only a part at a time. Return its length."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
    return len(data)

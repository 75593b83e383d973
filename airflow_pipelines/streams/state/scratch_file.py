"""A file for bytes that do not fit into memory. It has no name, so nothing is left when the process ends, however it ends."""

from __future__ import annotations

import os
import tempfile
from typing import IO, TypeAlias

from airflow_pipelines.streams.errors import StreamProgramError

Slot: TypeAlias = tuple[int, int]
"""The offset and the length of a piece in the file."""

_SMALLEST = 512


class ScratchFile:
    """A file that stores pieces of bytes, and reuses the space of freed pieces.

    :param folder: the folder of the file; None for the folder for temporary files
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or tempfile.gettempdir()
        self._file: IO[bytes] | None = None
        self._end = 0
        self._free: dict[int, list[int]] = {}

    def write(self, data: bytes) -> Slot:
        """Write bytes.

        :param data: the bytes
        :returns: their slot
        :raises StreamProgramError: if the file cannot be written
        """
        room = _round_up(len(data))
        free = self._free.get(room)
        start = free[-1] if free else self._end
        try:
            self._write_all(data, start)
        except OSError as error:
            raise StreamProgramError(
                f"State that does not fit into memory cannot be written to a file in {self._folder}: {error}."
                " Name a folder with more room (io.tmp.dirs), or keep more in memory (execution.state.page-memory)."
            ) from error
        if free:
            free.pop()
        else:
            self._end += room
        return (start, len(data))

    def _write_all(self, data: bytes, start: int) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 (open until close())
        number = self._file.fileno()
        written = os.pwrite(number, data, start)
        while written < len(data):
            written += os.pwrite(number, memoryview(data)[written:], start + written)

    def read(self, slot: Slot) -> bytes:
        """Read bytes.

        :param slot: their slot
        :returns: the bytes
        :raises StreamProgramError: if the file cannot be read
        """
        start, length = slot
        assert self._file is not None  # noqa: S101 (who has a slot has written)
        try:
            data = os.pread(self._file.fileno(), length, start)
        except OSError as error:
            raise StreamProgramError(f"State in a file in {self._folder} cannot be read: {error}.") from error
        if len(data) != length:
            raise StreamProgramError(f"State in a file in {self._folder} cannot be read: the file was cut off.")
        return data

    def free(self, slot: Slot) -> None:
        """Free the space of bytes.

        :param slot: their slot
        """
        self._free.setdefault(_round_up(slot[1]), []).append(slot[0])

    @property
    def size(self) -> int:
        """The size of the file in bytes, including free space."""
        return self._end

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _round_up(length: int) -> int:
    """Return a length rounded up, by at most a quarter or to the smallest unit, so that freed space fits other pieces."""
    unit = max(_SMALLEST, 1 << max(0, length.bit_length() - 3))
    return -(-length // unit) * unit

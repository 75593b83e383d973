"""A file for bytes that do not fit into memory. It has no name, so that nothing is left when the process ends, however it does."""

from __future__ import annotations

import os
import tempfile
from typing import IO, TypeAlias

from airflow_pipelines.streams.errors import StreamProgramError

Slot: TypeAlias = tuple[int, int]
"""Where something begins in the file, and its length."""

_SMALLEST = 512


class ScratchFile:
    """Takes pieces of bytes, and uses the room of those that were given up again.

    :param folder: where it is; None for the folder for temporary files
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or tempfile.gettempdir()
        self._file: IO[bytes] | None = None
        self._end = 0
        self._free: dict[int, list[int]] = {}

    def write(self, data: bytes) -> Slot:
        """Keep bytes.

        :param data: the bytes
        :returns: where they are
        :raises StreamProgramError: when the file cannot be written
        """
        room = _room(len(data))
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

        :param slot: where they are
        :returns: the bytes
        :raises StreamProgramError: when the file cannot be read
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
        """Give bytes up.

        :param slot: where they are
        """
        self._free.setdefault(_room(slot[1]), []).append(slot[0])

    @property
    def size(self) -> int:
        """How many bytes the file has, with the room that is free."""
        return self._end

    def close(self) -> None:
        """Give the file up."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _room(length: int) -> int:
    """Lengths in classes of at most a quarter more, so that room that was given up fits other pieces."""
    unit = max(_SMALLEST, 1 << max(0, length.bit_length() - 3))
    return -(-length // unit) * unit

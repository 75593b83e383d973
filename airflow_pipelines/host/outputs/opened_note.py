"""A note that an output has opened its target since the pipeline began with its storage."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from airflow_pipelines.engine.storage.durable import write_atomically


class OpenedNote:
    """A file that exists once the target was opened for the first time, so that the work of the first opening is not repeated.

    A checkpoint records the same, but a pipeline may be killed before its first one.
    """

    def __init__(self, folder: Path | None, output: str) -> None:
        """Remember the file; nothing is noted yet.

        :param folder: a folder in the pipeline's storage, or None without storage
        :param output: the name of the output
        """
        self.begun = 0.0
        """The time at which the pipeline began with its current storage."""
        self.was_written = False
        """True if a checkpoint, or this run, records that the target was opened."""
        self._path = None if folder is None else folder / f"{quote(output, safe='')}.opened"

    @property
    def is_written(self) -> bool:
        """True if the target was opened."""
        if self.was_written:
            return True
        path = self._path
        return path is not None and path.is_file() and path.read_text(errors="replace") == self._text

    def write(self) -> None:
        """Note that the target was opened."""
        if self._path is not None and not self.is_written:
            write_atomically(self._path, self._text.encode())
        self.was_written = True

    @property
    def _text(self) -> str:
        return repr(self.begun)

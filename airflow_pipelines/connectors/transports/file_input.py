"""Reads files: one, a folder or a glob; once, or following what is added."""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from fsspec.core import url_to_fs
from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.connectors.base import ConnectorError, ConnectorFailure, InputChunk
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.connectors.formats.parquet import ParquetParser
from airflow_pipelines.connectors.formats.parsed import Parsed, Parser
from airflow_pipelines.connectors.transports.readers import BLOCK_BYTES, FileReader, ParquetReader, TextReader
from airflow_pipelines.engine.storage.connector_state import Position

_POLL_S = 0.2
_MAX_KEPT_ERRORS = 100
_GLOB_CHARACTERS = "*?["


class FileInputOptions(BaseModel):
    """Options of the transport.

    :param path: a file, a folder (its files, hidden ones and subfolders left out) or a glob; a local path or a URL that fsspec
        knows
    :param follow: go on reading what is appended to the files and new files that appear
    :param buffer_size_bytes: how much is read and parsed at a time (default 4 MiB)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    follow: bool = False
    buffer_size_bytes: int = Field(default=BLOCK_BYTES, ge=1, le=256 << 20)


class FileInput:
    """An input over files, read in the order of their names.

    A position names the files that are done and, for the others, the byte (Parquet: row) and record that come next. Names are
    relative to the folder, so that a position survives a move of the whole folder.
    """

    def __init__(self, options: FileInputOptions, format_name: str, new_parser: Callable[[], Parser]) -> None:
        self._options = options
        self._parquet = format_name == "parquet"
        self._new_parser = new_parser
        self._filesystem: Any = None
        self._path = ""
        self._base = ""
        self._done: set[str] = set()
        self._places: dict[str, dict[str, Any]] = {}
        self._readers: dict[str, FileReader] = {}
        self._queue: list[str] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def open(self, position: Position | None) -> None:
        """Find the files and go to ``position``.

        :raises ConnectorFailure: when there is nothing to read or it may not be read
        """
        try:
            self._filesystem, self._path = url_to_fs(self._options.path)
        except (ValueError, ImportError) as error:
            raise ConnectorFailure(f"file_input cannot use path {self._options.path!r}: {error}") from error
        if position is not None:
            self._done = set(position.get("done", ()))
            self._places = {name: dict(place) for name, place in position.get("files", {}).items()}
        self._base = self._find_base()
        self._queue = self._unfinished()
        if not self._queue and not self._done and not self._options.follow and not self._is_folder():
            raise self._nothing_found()
        if self._queue:
            # What may not be read is found out now rather than from the thread that reads.
            self._reader(self._queue[0])

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """The next records of the files, or None when nothing came within ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while not self._closed.is_set():
            with self._lock:
                chunk = None if self._closed.is_set() else self._next_chunk(max_records)
            if chunk is not None:
                return chunk
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return None
            self._closed.wait(min(_POLL_S, remaining))
        return None

    def close(self) -> None:
        """Close all files; a read in another thread comes back."""
        self._closed.set()
        with self._lock:
            for reader in self._readers.values():
                reader.close()
            self._readers.clear()

    def _next_chunk(self, max_records: int) -> InputChunk | None:
        if not self._queue and self._options.follow:
            self._queue = self._unfinished()
        while self._queue:
            name = self._queue[0]
            try:
                reader = self._reader(name)
                outcome = reader.read(max_records)
            except FileNotFoundError as error:
                if not self._options.follow:
                    raise ConnectorFailure(f"file {self._absolute(name)} was there at the start and is gone") from error
                self._let_go(name)
                continue
            except OSError as error:
                raise ConnectorFailure(f"file {self._absolute(name)} cannot be read: {error}") from error
            self._places[name] = reader.place()
            if outcome is None or reader.done:
                self._leave(name, reader)
            if outcome is not None:
                return self._chunk(name, *outcome)
        if self._options.follow:
            return None
        return InputChunk(None, 0, 0, self._position(), end_of_input=True)

    def _chunk(self, name: str, parsed: Parsed, size: int) -> InputChunk:
        shown = posixpath.basename(name)
        errors = tuple(
            ConnectorError("parse", f"{shown}: {error.message}", error.index) for error in parsed.errors[-_MAX_KEPT_ERRORS:]
        )
        return InputChunk(
            changes=parsed.changes,
            records=parsed.records,
            size_bytes=size,
            position=self._position(),
            parse_errors=errors,
            num_parse_errors=parsed.num_errors,
            end_of_input=not self._queue and not self._options.follow,
        )

    def _position(self) -> Position:
        return {"done": sorted(self._done), "files": {name: dict(place) for name, place in self._places.items()}}

    def _leave(self, name: str, reader: FileReader) -> None:
        """Go on to the next file, for good when ``reader`` is done."""
        self._queue.pop(0)
        if reader.done:
            self._done.add(name)
            self._places.pop(name, None)
        # A followed file is opened again when it has grown: there may be many, and remote ones show their growth only then.
        self._readers.pop(name).close()

    def _let_go(self, name: str) -> None:
        self._queue.pop(0)
        reader = self._readers.pop(name, None)
        if reader is not None:
            reader.close()

    def _reader(self, name: str) -> FileReader:
        if name not in self._readers:
            path = self._absolute(name)
            place = self._places.get(name, {})
            parser = self._new_parser()
            try:
                if isinstance(parser, ParquetParser):
                    self._readers[name] = ParquetReader(self._filesystem, path, parser, place, follow=self._options.follow)
                else:
                    self._readers[name] = TextReader(
                        self._filesystem,
                        path,
                        parser,
                        place,
                        follow=self._options.follow,
                        block_bytes=self._options.buffer_size_bytes,
                    )
            except PermissionError as error:
                raise ConnectorFailure(
                    f"file {path} may not be read: {error.strerror or error}. Check its permissions and those of its folders "
                    "for the user that runs the pipeline."
                ) from error
        return self._readers[name]

    def _absolute(self, name: str) -> str:
        return posixpath.join(self._base, name)

    def _is_glob(self) -> bool:
        return any(character in self._path for character in _GLOB_CHARACTERS) and not bool(self._filesystem.exists(self._path))

    def _is_folder(self) -> bool:
        return bool(self._filesystem.isdir(self._path))

    def _find_base(self) -> str:
        """The folder that file names are relative to."""
        if self._is_folder():
            return self._path
        folder = posixpath.dirname(self._path)
        if self._is_glob():
            while any(character in folder for character in _GLOB_CHARACTERS):
                folder = posixpath.dirname(folder)
            return folder
        if not self._filesystem.exists(self._path) and posixpath.basename(self._path) not in self._done:
            raise self._nothing_found()
        return folder

    def _unfinished(self) -> list[str]:
        """The names of the files that are there and not done, in order; of followed ones those with something new."""
        try:
            found = sorted(self._listed())
        except PermissionError as error:
            raise ConnectorFailure(f"folder {self._base} may not be listed: {error.strerror or error}") from error
        return [name for name, size in found if name not in self._done and self._is_new(name, size)]

    def _is_new(self, name: str, size: int | None) -> bool:
        if not self._options.follow or size is None or self._parquet:
            return True
        offset: int = self._places.get(name, {}).get("offset", 0)
        return size != offset

    def _listed(self) -> Iterator[tuple[str, int | None]]:
        self._filesystem.invalidate_cache()
        if self._is_folder():
            entries = self._filesystem.ls(self._path, detail=True)
        elif self._is_glob():
            entries = self._filesystem.glob(self._path, detail=True).values()
        else:
            entries = [self._filesystem.info(self._path)] if self._filesystem.exists(self._path) else []
        for entry in entries:
            name = posixpath.relpath(entry["name"], self._base)
            if entry["type"] == "file" and (not posixpath.basename(name).startswith((".", "_")) or entry["name"] == self._path):
                yield name, entry.get("size")

    def _nothing_found(self) -> ConnectorFailure:
        kind = "no file matches" if self._is_glob() else "there is no file or folder"
        return ConnectorFailure(
            f"file_input: {kind} {self._path}. Check the path; it is looked up on the machine where the pipeline runs, "
            "and a relative path starts at the folder in which its host was started."
        )


def _open(options: FileInputOptions, context: InputContext) -> FileInput:
    return FileInput(options, context.format or "", context.new_parser)


FILE_INPUT: Final = InputDefinition(
    name="file_input", options=FileInputOptions, open=_open, formats=("csv", "json", "parquet", "raw")
)

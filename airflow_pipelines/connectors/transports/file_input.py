"""Reads files: one, a folder or a glob; once, or following what is added."""

from __future__ import annotations

from typing import Final

from fsspec.core import url_to_fs
from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk, Lag
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.connectors.transports.files.compression import Compression
from airflow_pipelines.connectors.transports.files.file_set_input import FileSetInput, Reading
from airflow_pipelines.connectors.transports.files.listing import PathListing
from airflow_pipelines.connectors.transports.files.readers import BLOCK_BYTES
from airflow_pipelines.connectors.transports.files.store import store_of_files
from airflow_pipelines.engine.storage.connector_state import Position


class FileInputOptions(BaseModel):
    """Options of the transport.

    :param path: a file, a folder (its files, hidden ones and subfolders left out) or a glob; a local path or a URL that fsspec
        knows
    :param follow: go on reading what is appended to the files and new files that appear
    :param compression: how text files are compressed; ``auto`` looks at the end of each name
    :param buffer_size_bytes: how much is read and parsed at a time (default 4 MiB)
    :param storage_options: what fsspec needs to reach the files
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    follow: bool = False
    compression: Compression = Compression.AUTO
    buffer_size_bytes: int = Field(default=BLOCK_BYTES, ge=1, le=256 << 20)
    storage_options: dict[str, str | int | float | bool | None] = Field(default_factory=dict)


class FileInput:
    """An input over the files of a path."""

    def __init__(self, options: FileInputOptions, context: InputContext) -> None:
        """Make an input that is not open yet.

        :param options: which files
        :param context: of the connector
        """
        self._options = options
        self._reading = Reading(context, options.follow, options.compression, options.buffer_size_bytes)
        self._files: FileSetInput | None = None

    def open(self, position: Position | None) -> None:
        """Find the files and go to ``position``.

        :raises ConnectorFailure: when there is nothing to read or it may not be read
        """
        path = self._options.path
        try:
            filesystem, inner = url_to_fs(path, **self._options.storage_options)
        except (ValueError, ImportError, TypeError) as error:
            raise ConnectorFailure(f"file_input cannot use path {path!r}: {error}") from error
        self._files = FileSetInput(
            store_of_files(filesystem, self._reading.context.format), PathListing(filesystem, inner), self._reading
        )
        self._files.start(position)

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """The next records of the files, or None when nothing came within ``timeout_s``."""
        return None if self._files is None else self._files.read(max_records, timeout_s)

    def lag(self) -> Lag | None:
        """How many bytes were found and not read."""
        return None if self._files is None else self._files.lag()

    def close(self) -> None:
        """Close all files; a read in another thread comes back."""
        if self._files is not None:
            self._files.close()


FILE_INPUT: Final = InputDefinition(
    name="file_input",
    options=FileInputOptions,
    open=FileInput,
    formats=("avro", "csv", "json", "orc", "parquet", "raw"),
)

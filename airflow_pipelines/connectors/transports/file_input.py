"""An input that reads one file, a folder or a glob, either once or following what is added."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk, Lag
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.connectors.transports.files.file_set_input import FileReadOptions, FileSetInput
from airflow_pipelines.connectors.transports.files.listing import PathListing
from airflow_pipelines.connectors.transports.files.readers import BLOCK_BYTES
from airflow_pipelines.connectors.transports.files.store import store_of_files
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.systems.files.access import UnusablePathError, file_system_of
from airflow_pipelines.systems.files.compression import Compression


class FileInputOptions(BaseModel):
    """The options of the transport.

    :param path: a file, a folder (without its hidden files and its subfolders) or a glob; a local path or a URL that fsspec
        knows
    :param follow: True to go on reading what is appended to the files, and new files that appear
    :param compression: the compression of text files; ``auto`` looks at the end of each name
    :param buffer_size_bytes: the number of bytes that are read and parsed at a time (default 4 MiB)
    :param storage_options: the options that fsspec needs to reach the files
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

        :param options: the options that say which files to read
        :param context: the context of the connector
        """
        self._options = options
        self._reading = FileReadOptions(context, options.follow, options.compression, options.buffer_size_bytes)
        self._files: FileSetInput | None = None

    def open(self, position: Position | None) -> None:
        """Find the files and seek to ``position``.

        :raises ConnectorFailure: when there is nothing to read or it may not be read
        """
        path = self._options.path
        try:
            filesystem, inner = file_system_of(path, **self._options.storage_options)
        except UnusablePathError as error:
            raise ConnectorFailure(f"file_input cannot use path {path!r}: {error}") from error
        self._files = FileSetInput(
            store_of_files(filesystem, self._reading.context.format), PathListing(filesystem, inner), self._reading
        )
        self._files.start(position)

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next records of the files, or None if nothing came within ``timeout_s``."""
        return None if self._files is None else self._files.read(max_records, timeout_s)

    def lag(self) -> Lag | None:
        """Return the number of bytes that were found and not read yet."""
        return None if self._files is None else self._files.lag()

    def close(self) -> None:
        """Close all files; a read in another thread then returns."""
        if self._files is not None:
            self._files.close()


FILE_INPUT: Final = InputDefinition(
    name="file_input",
    options=FileInputOptions,
    open=FileInput,
    formats=("avro", "csv", "json", "orc", "parquet", "raw"),
)

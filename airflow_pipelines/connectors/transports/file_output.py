"""An output that writes a view's changes to a local file, or to a folder of files, here or in an object store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from airflow_pipelines.connectors.base import ConnectorFailure, OutputTransport
from airflow_pipelines.connectors.definition import Declared, Delivery, Guarantee, OutputContext, OutputDefinition
from airflow_pipelines.connectors.transports.files.file_writers import OP_COLUMN, FileLimits, parquet_files, text_files
from airflow_pipelines.connectors.transports.files.folder_output import FolderOutput
from airflow_pipelines.connectors.transports.files.line_output import FileOutput
from airflow_pipelines.connectors.transports.lake.columns import ColumnProblem, table_schema
from airflow_pipelines.rows.formats.csv import CsvOptions
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.systems.files.access import UnusablePathError, file_system_of
from airflow_pipelines.systems.files.compression import Compression

_WRITTEN: Final = (Compression.NONE, Compression.GZIP, Compression.BZ2, Compression.ZSTD, Compression.LZ4)
"""The compressions that Arrow writes."""
_OF_FOLDERS: Final = ("compression", "max_file_bytes", "max_file_rows", "storage_options")


class FileOutputOptions(BaseModel):
    """The options of the transport.

    :param path: the file to write, on the machine where the pipeline runs; with a slash at its end a folder of files, which may be
        a URL that fsspec knows
    :param max_file_bytes: the approximate maximum size of a file of a folder
    :param max_file_rows: the maximum number of changes in a file of a folder
    :param compression: the compression of text files in a folder
    :param storage_options: the options that fsspec needs to reach the folder
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    max_file_bytes: int | None = Field(default=None, ge=1)
    max_file_rows: int | None = Field(default=None, ge=1)
    compression: Compression = Compression.NONE
    storage_options: Mapping[str, Any] = Field(default_factory=dict, repr=False)

    @model_validator(mode="after")
    def _fit_the_path(self) -> FileOutputOptions:
        if self.compression not in _WRITTEN:
            raise ValueError(f"'compression' of an output is one of {', '.join(_WRITTEN)}")
        if not _may_be_folder(self.path):
            given = [name for name in _OF_FOLDERS if name in self.model_fields_set]
            if given:
                raise ValueError(f"{given[0]!r} is for folders of files; end 'path' with a slash to write one")
            if "://" in self.path and not self.path.startswith("file://"):
                raise ValueError("nothing can be appended to an object; end 'path' with a slash to write a folder of files")
        return self


def _is_folder(path: str) -> bool:
    return path.endswith("/")


def _may_be_folder(path: str) -> bool:
    """Return True if a path can be that of a folder. One that ends with a reference may be either."""
    return path.endswith(("/", "}"))


def _check(options: FileOutputOptions, declared: Declared) -> None:
    if declared.format != "parquet":
        return
    if not _may_be_folder(options.path):
        raise InvalidOptionError("file_output writes Parquet as a folder of files; end 'path' with a slash", "path")
    if options.compression is not Compression.NONE:
        raise InvalidOptionError("file_output: 'compression' is for text; Parquet files are compressed as they are", "compression")
    try:
        table_schema(declared.schema.columns)
    except ColumnProblem as problem:
        raise InvalidOptionError(f"file_output: {problem}") from problem
    if any(column.name.lower() == OP_COLUMN for column in declared.schema.columns):
        raise InvalidOptionError(f"file_output: the view has a column {OP_COLUMN!r} itself; give it another name")


def _delivery(config: Mapping[str, Any]) -> Delivery:
    return Delivery.QUEUED if _may_be_folder(str(config.get("path", ""))) else Delivery.IN_STEP


def _open(options: FileOutputOptions, context: OutputContext) -> OutputTransport:
    encoding = context.format_options
    if not _is_folder(options.path):
        if not isinstance(encoding, CsvOptions | JsonOptions):
            raise ConnectorFailure(f"file_output {options.path}: format {context.format!r} cannot be written to one file")
        return FileOutput(options.path.removeprefix("file://"), encoding, context.positions, context.fence, context.left_out)
    try:
        filesystem, folder = file_system_of(options.path, **options.storage_options)
    except UnusablePathError as error:
        raise ConnectorFailure(f"file_output cannot use path {options.path!r}: {error}") from error
    limits = FileLimits(options.max_file_rows, options.max_file_bytes)
    if isinstance(encoding, CsvOptions | JsonOptions):
        kind = text_files(encoding, context.new_encoder, options.compression, limits, context.left_out)
    else:
        kind = parquet_files(context.schema, limits, context.left_out)
    return FolderOutput(filesystem, folder, kind, context.writer, context.fence)


FILE_OUTPUT: Final = OutputDefinition(
    name="file_output",
    options=FileOutputOptions,
    open=_open,
    formats=("csv", "json", "parquet"),
    guarantee=Guarantee.EXACTLY_ONCE,
    delivery=Delivery.IN_STEP,
    delivery_of=_delivery,
    check=_check,
)

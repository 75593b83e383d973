"""Files of other machines: what a program is told when it cannot have them."""

from __future__ import annotations

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from airflow_pipelines.datastream.connectors.file_formats import StreamFormat
from airflow_pipelines.datastream.connectors.file_source import FileSource
from airflow_pipelines.streams.errors import StreamProgramError


class NoCredentialsError(Exception):
    """As libraries of object stores name it."""


class Store(MemoryFileSystem):
    """A store that opens nothing."""

    protocol = "store"
    store = MemoryFileSystem.store
    error: Exception = NoCredentialsError("Unable to locate credentials")

    def isfile(self, path):
        if path.endswith("listed"):
            return True
        raise self.error

    def _open(self, path, *_arguments, **_named):
        raise self.error


@pytest.fixture(autouse=True)
def _store():
    fsspec.register_implementation("store", Store, clobber=True)


def read(path):
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()
    reader = source.open((0, 1), None)
    return reader.poll(10)


@pytest.mark.parametrize("path", ["store://bucket/a", "store://bucket/listed"])
def test_missing_keys_are_told_with_the_places_where_they_are_looked_for(path):
    with pytest.raises(StreamProgramError, match=r"no keys for 'store://bucket/.*: Unable to locate .* AWS_ACCESS_KEY_ID .* `env`"):
        read(path)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (PermissionError("Forbidden"), r"'store://b/a' may not be read: Forbidden\. .*AWS_ACCESS_KEY_ID"),
        (OSError("Cannot connect to host"), "'store://b/a' cannot be read: Cannot connect to host"),
        (TimeoutError(), "'store://b/a' cannot be read: TimeoutError"),
    ],
)
def test_other_failures_name_the_url(monkeypatch, error, says):
    monkeypatch.setattr(Store, "error", error)
    with pytest.raises(StreamProgramError, match=says):
        read("store://b/a")


def test_a_file_that_is_not_there_stays_a_file_that_is_not_there(monkeypatch):
    monkeypatch.setattr(Store, "error", FileNotFoundError("store://b/a"))
    with pytest.raises(FileNotFoundError):
        read("store://b/a")


def test_a_protocol_that_nobody_knows_and_one_whose_package_is_missing():
    with pytest.raises(StreamProgramError, match="'nowhere://b/a' is no file, folder or URL of a file system"):
        read("nowhere://b/a")
    fsspec.register_implementation("elsewhere", "no_such_package.Store", clobber=True, errtxt="Please install no_such_package")
    with pytest.raises(StreamProgramError, match=r"Please install no_such_package. Install it, or name it with set_python_req"):
        read("elsewhere://b/a")

"""Stores of files: this machine, another one of its network, or an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.transports.files.listing import Found
from airflow_pipelines.systems.files.access import AccessProblem, reason_of
from airflow_pipelines.systems.files.remote import BLOCK_BYTES, BlockFile, Fetch

_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci"})
"""The protocols whose files arrive whole and never grow."""
_LOCAL: Final = frozenset({"file", "local", "memory"})
_ENDS_FIRST: Final = frozenset({"orc", "parquet"})
"""The formats whose files describe their contents at their end."""
THREADS: Final = 8
"""The number of file parts that are fetched at a time."""
_FILES_AHEAD: Final = 16
_BYTES_AHEAD: Final = 32 << 20
"""The number of bytes that are fetched ahead from the files after the one being read."""

FetchOf: TypeAlias = Callable[[Found], Fetch]
"""A function that takes a file and returns the function that fetches parts of it."""


class FileStore(Protocol):
    """A store that opens files.

    :param grows: True if something may be appended to a file
    :param is_local: True if the files are on this machine
    """

    grows: bool
    is_local: bool

    def open(self, entry: Found, later: Sequence[Found] = ()) -> Any:
        """Open a file that can be read in any order.

        :param entry: the file
        :param later: the files that will probably be opened next
        """

    def close(self) -> None:
        """Release all resources."""


def store_of_files(filesystem: Any, format_name: str | None) -> FileStore:
    """Return the store of the files of a file system.

    :param filesystem: the fsspec file system
    :param format_name: the format of the files
    """
    protocols = {filesystem.protocol} if isinstance(filesystem.protocol, str) else set(filesystem.protocol)
    if protocols & _LOCAL:
        return _LocalStore(filesystem)
    store = FetchingStore(lambda entry: fetch_by_fsspec(filesystem, entry), format_name, grows=not protocols & _OBJECT_STORES)
    store.open_unsized = lambda entry: filesystem.open(entry.path, "rb", cache_type="readahead")
    return store


class _LocalStore:
    """A store of files of this machine."""

    grows = True
    is_local = True

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def open(self, entry: Found, later: Sequence[Found] = ()) -> Any:  # noqa: ARG002 - there is nothing to be done for them
        """Open a file."""
        # No read-ahead cache: a followed file changes under it.
        return self._filesystem.open(entry.path, "rb", cache_type="none")

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class FetchingStore:
    """A store of files of other machines, which are fetched ahead."""

    is_local = False

    def __init__(self, fetch_of: FetchOf, format_name: str | None, *, grows: bool) -> None:
        """Make a store.

        :param fetch_of: a function that takes a file and returns the function that fetches parts of it
        :param format_name: the format of the files
        :param grows: True if something may be appended to a file
        """
        self.grows = grows
        self.open_unsized: Callable[[Found], Any] | None = None
        """The function that opens a file of unknown size; None where all sizes are known."""
        self._fetch_of = fetch_of
        self._ends_first = format_name in _ENDS_FIRST
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="fetch")
        self._ahead: dict[str, BlockFile] = {}

    def open(self, entry: Found, later: Sequence[Found] = ()) -> Any:
        """Open a file, and begin to fetch the beginnings of those that come later."""
        if entry.size is None and self.open_unsized is not None:
            return self.open_unsized(entry)
        file = self._ahead.pop(entry.path, None)
        if file is None or file.size() != entry.size:
            file = self._begin_fetch(entry)
        self._fetch_ahead(later)
        return file

    def close(self) -> None:
        """Release all resources."""
        for file in self._ahead.values():
            file.close()
        self._ahead.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _fetch_ahead(self, later: Sequence[Found]) -> None:
        fetched = 0
        for entry in later[:_FILES_AHEAD]:
            if entry.size is None or fetched > _BYTES_AHEAD:
                return
            fetched += min(entry.size, BLOCK_BYTES)
            if entry.path not in self._ahead:
                self._ahead[entry.path] = self._begin_fetch(entry)

    def _begin_fetch(self, entry: Found) -> BlockFile:
        file = BlockFile(self._fetch_of(entry), entry.size or 0, self._pool)
        if self._ends_first:
            file.want_end()
        return file


def fetch_by_fsspec(filesystem: Any, entry: Found) -> Fetch:
    """Return a function that fetches parts of a file.

    :param filesystem: the fsspec file system
    :param entry: the file
    """

    def fetch(begin: int, end: int) -> bytes:
        with store_access(entry.path):
            return check_length(bytes(filesystem.cat_file(entry.path, start=begin, end=end)), begin, end, entry)

    return fetch


def check_length(data: bytes, begin: int, end: int, entry: Found) -> bytes:
    """Return the data if it is as long as it should be.

    :raises ConnectorFailure: when it is not
    """
    if len(data) != end - begin:
        raise ConnectorFailure(f"{entry.path} became shorter while it was read. Put new data into new files.")
    return data


@contextmanager
def store_access(path: str) -> Iterator[None]:
    """Turn errors of access to files of another machine into errors of a connector.

    :param path: the path that was requested
    :raises FileNotFoundError: when it is not there
    :raises ConnectorFailure: when access is denied
    :raises TransientConnectorFailure: when the machine is away or overloaded
    """
    try:
        yield
    except (FileNotFoundError, ConnectorFailure):
        raise
    except Exception as error:
        reason = reason_of(error)
        if AccessProblem.of(error) is not AccessProblem.UNREACHABLE:
            raise ConnectorFailure(
                f"{path} may not be read: {reason.rstrip('.')}. Check the keys or the account that the connector uses, and what it "
                "may do."
            ) from error
        raise TransientConnectorFailure(f"{path} cannot be reached: {reason}") from error

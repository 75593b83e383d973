"""A check that the files of this package are still those that this process has loaded.

A host lives for hours. If the package is reinstalled meanwhile, a process that the host starts would run the new code, and the
two would not understand each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from airflow_pipelines.streams.errors import StreamProgramError

_PACKAGE = Path(__file__).parents[1]
_ROOMS = ("streams", "datastream")
"""The subpackages that processes of stream programs load."""


class LoadedCodeChangedError(StreamProgramError):
    """An error raised because the package was changed while this process ran."""


def refuse_changed_code() -> None:
    """Make sure that a process that is started now runs the same code as this one.

    :raises LoadedCodeChangedError: if the package was changed since this process has loaded it
    """
    if frozenset(_files(_PACKAGE)) == _LOADED:
        return
    now = _version()
    by = f"version {_LOADED_VERSION} by version {now}" if now != _LOADED_VERSION else f"parts of version {now} by others"
    raise LoadedCodeChangedError(
        f"The package airflow-pipelines in {_PACKAGE.parent} was changed while the host ran: {by}. A process of a stream program"
        " would not fit to this host. Stop the host with 'airflow-pipelines hosts stop' ('hosts list' shows it), and start the"
        " pipeline again: a new host is started, and what is saved is kept."
    )


def _files(package: Path) -> Iterator[tuple[str, int, int]]:
    for room in _ROOMS:
        for path in (package / room).rglob("*.py"):
            stat = path.stat()
            yield str(path), stat.st_size, stat.st_mtime_ns


def _version() -> str:
    try:
        return version("airflow-pipelines")
    except PackageNotFoundError:
        return "0+unknown"


_LOADED = frozenset(_files(_PACKAGE))
_LOADED_VERSION = _version()

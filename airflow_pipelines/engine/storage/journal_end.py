"""The acknowledged end of the journal, in a small file beside it.

It tells a journal that was cut short from one with a torn last line.

It is overwritten in place after each record is on disk, and is not synced itself. It survives a kill; after a power failure it may
name fewer records than were acknowledged, but never more.
"""

from __future__ import annotations

import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

from airflow_pipelines.engine.storage.errors import storage_access
from airflow_pipelines.engine.storage.sealed_json import BrokenSealError, seal, unseal

FILE: Final = "journal.end"
_LENGTH: Final = 512
"""The length of the file in bytes. It is one sector, so that it is written as a whole or not at all."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """The acknowledged end of a journal.

    :param base: the base of the journal
    :param journal: the checksum of its header, which identifies the journal
    :param records: the number of acknowledged records; the last of them has the checksum ``last``, and came with ``step`` and
        ``processed_records``
    """

    base: UUID | None
    journal: str
    records: int
    last: str
    step: int
    processed_records: int


class JournalEndFile:
    """The file being written."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        with storage_access(self._path):
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)

    def write(self, end: JournalEnd) -> None:
        """Replace the content of the file."""
        base = None if end.base is None else str(end.base)
        with storage_access(self._path):
            os.pwrite(self._descriptor, seal(asdict(end) | {"base": base}).ljust(_LENGTH), 0)

    def close(self) -> None:
        """Close the file. Further calls do nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_journal_end(folder: Path) -> JournalEnd | None:
    """Return the acknowledged end of a storage folder's journal, or None if it is not known.

    :param folder: the storage folder
    :returns: the end that was written last
    :raises StorageError: when the file cannot be read
    """
    path = folder / FILE
    with storage_access(path):
        if not path.exists():
            return None
        content = path.read_bytes()
    try:
        document: dict[str, Any] = unseal(content.rstrip(b" "))
        return JournalEnd(**document | {"base": None if document["base"] is None else UUID(document["base"])})
    except (BrokenSealError, KeyError, TypeError) as error:
        # The file only serves to check the journal, which has checksums of its own.
        log.warning("%s is damaged and is not used: %s", path, error)
        return None

"""How far the journal was acknowledged: a small file beside it, without which a journal that was cut short looks like a torn one.

It is overwritten in place after each record is on disk, and is not flushed itself: it survives a kill, and after a power failure it
may say less than there was, but never more.
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
"""All of it is one sector, so that it is written as a whole or not at all."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """What had been acknowledged.

    :param base: that of the journal
    :param journal: the checksum of its header, by which journals are told apart
    :param records: how many had been acknowledged, the last of which has the checksum ``last``, came with ``step`` and
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
        """Replace what it says."""
        base = None if end.base is None else str(end.base)
        with storage_access(self._path):
            os.pwrite(self._descriptor, seal(asdict(end) | {"base": base}).ljust(_LENGTH), 0)

    def close(self) -> None:
        """Let go of the file; more than once does no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_journal_end(folder: Path) -> JournalEnd | None:
    """What a storage folder's journal had been acknowledged up to; None when it is not known.

    :param folder: the storage folder
    :returns: what was written last
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
        # It is only there to check the journal, which has checksums of its own.
        log.warning("%s is damaged and is not used: %s", path, error)
        return None

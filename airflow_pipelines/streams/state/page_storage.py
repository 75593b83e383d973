"""The storage of pages between two snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator

from airflow_pipelines.streams.state.pages import Due, PageId, StoredPage
from airflow_pipelines.streams.state.scratch_file import ScratchFile, Slot


class PageStorage(ABC):
    """A storage of pages by their ids."""

    @abstractmethod
    def __contains__(self, page_id: PageId) -> bool: ...

    @abstractmethod
    def ids(self) -> Iterator[PageId]:
        """Return the ids of all pages.

        :returns: their ids
        """

    @abstractmethod
    def read(self, page_id: PageId) -> bytes | None:
        """Read the bytes of a page.

        :param page_id: its id
        :returns: the bytes, None if there is no such page
        :raises StreamProgramError: if they cannot be read
        """

    @abstractmethod
    def read_stored(self, page_id: PageId) -> StoredPage:
        """Return a page in the form of snapshots.

        :param page_id: the id of an existing page
        :returns: the page
        :raises StreamProgramError: if it cannot be read
        """

    @abstractmethod
    def write(self, page_id: PageId, page: StoredPage) -> None:
        """Store a page, and replace the one with the same id.

        :param page_id: its id
        :param page: the page
        """

    @abstractmethod
    def remove(self, page_id: PageId) -> None:
        """Remove a page.

        :param page_id: its id; there is no effect if there is no such page
        """

    @abstractmethod
    def size(self) -> int:
        """Return the size of all pages.

        :returns: the number of bytes
        """

    def spill(self) -> None:  # noqa: B027
        """Spill pages that do not fit into memory.

        :raises StreamProgramError: if they cannot be written; no page is lost
        """

    def close(self) -> None:  # noqa: B027
        """Drop all pages."""


class MemoryPages(PageStorage):
    """A storage of pages in memory."""

    def __init__(self) -> None:
        self._pages: dict[PageId, StoredPage] = {}

    def __contains__(self, page_id: PageId) -> bool:
        return page_id in self._pages

    def ids(self) -> Iterator[PageId]:
        """Return the ids of all pages."""
        return iter(list(self._pages))

    def read(self, page_id: PageId) -> bytes | None:
        """Return the bytes of a page."""
        page = self._pages.get(page_id)
        return None if page is None else page.data

    def read_stored(self, page_id: PageId) -> StoredPage:
        """Return a page in the form of snapshots."""
        return self._pages[page_id]

    def write(self, page_id: PageId, page: StoredPage) -> None:
        """Store a page."""
        self._pages[page_id] = page

    def remove(self, page_id: PageId) -> None:
        """Remove a page."""
        self._pages.pop(page_id, None)

    def size(self) -> int:
        """Return the size of all pages."""
        return sum(len(page.data) for page in self._pages.values())

    def close(self) -> None:
        """Drop all pages."""
        self._pages.clear()


class SpilledPages(PageStorage):
    """A storage that keeps a limited number of bytes in memory, the pages written last, and spills the others to a file.

    The file vanishes with the process.

    :param most_bytes: the maximum number of bytes in memory
    :param folder: the folder of the file; None for the folder for temporary files
    """

    def __init__(self, most_bytes: int, folder: str | None = None) -> None:
        self._most_bytes = most_bytes
        self._recent: OrderedDict[PageId, StoredPage] = OrderedDict()  # finds its first key fast; a dict scans removed keys
        self._recent_bytes = 0
        self._spilled: dict[PageId, tuple[Slot, Due]] = {}
        self._file = ScratchFile(folder)

    def __contains__(self, page_id: PageId) -> bool:
        return page_id in self._recent or page_id in self._spilled

    def ids(self) -> Iterator[PageId]:
        """Return the ids of all pages."""
        return iter([*self._recent, *self._spilled])

    def read(self, page_id: PageId) -> bytes | None:
        """Read the bytes of a page."""
        page = self._recent.get(page_id)
        if page is not None:
            return page.data
        spilled = self._spilled.get(page_id)
        return None if spilled is None else self._file.read(spilled[0])

    def read_stored(self, page_id: PageId) -> StoredPage:
        """Return a page in the form of snapshots."""
        page = self._recent.get(page_id)
        if page is None:
            slot, due = self._spilled[page_id]
            page = StoredPage(self._file.read(slot), due)
        return page

    def write(self, page_id: PageId, page: StoredPage) -> None:
        """Store a page in memory, until :meth:`spill` moves it to the file."""
        self.remove(page_id)
        self._recent[page_id] = page
        self._recent_bytes += len(page.data)

    def spill(self) -> None:
        """Move the pages that were written first to the file, until the others fit into memory."""
        while self._recent_bytes > self._most_bytes:
            page_id, page = next(iter(self._recent.items()))
            self._spilled[page_id] = (self._file.write(page.data), page.due)
            del self._recent[page_id]
            self._recent_bytes -= len(page.data)

    def remove(self, page_id: PageId) -> None:
        """Remove a page."""
        page = self._recent.pop(page_id, None)
        if page is not None:
            self._recent_bytes -= len(page.data)
        spilled = self._spilled.pop(page_id, None)
        if spilled is not None:
            self._file.free(spilled[0])

    def size(self) -> int:
        """Return the size of all pages."""
        return self._recent_bytes + sum(length for (_, length), _ in self._spilled.values())

    @property
    def memory_bytes(self) -> int:
        """The number of bytes of pages in memory."""
        return self._recent_bytes

    @property
    def file_bytes(self) -> int:
        """The size of the file in bytes."""
        return self._file.size

    def close(self) -> None:
        """Drop all pages, and close the file."""
        self._recent.clear()
        self._spilled.clear()
        self._recent_bytes = 0
        self._file.close()

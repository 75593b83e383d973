"""Where pages at rest are kept between two snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator

from airflow_pipelines.streams.state.pages import Due, PageId, StoredPage
from airflow_pipelines.streams.state.scratch_file import ScratchFile, Slot


class PageStorage(ABC):
    """Keeps pages by their ids."""

    @abstractmethod
    def __contains__(self, page_id: PageId) -> bool: ...

    @abstractmethod
    def ids(self) -> Iterator[PageId]:
        """The pages.

        :returns: their ids
        """

    @abstractmethod
    def read(self, page_id: PageId) -> bytes | None:
        """The bytes of a page.

        :param page_id: its id
        :returns: the bytes, None when there is no such page
        :raises StreamProgramError: when they cannot be read
        """

    @abstractmethod
    def stored(self, page_id: PageId) -> StoredPage:
        """A page as it is in snapshots.

        :param page_id: id of a page that is there
        :returns: the page
        :raises StreamProgramError: when it cannot be read
        """

    @abstractmethod
    def write(self, page_id: PageId, page: StoredPage) -> None:
        """Keep a page in place of what was kept under its id.

        :param page_id: its id
        :param page: the page
        """

    @abstractmethod
    def remove(self, page_id: PageId) -> None:
        """Keep a page no more.

        :param page_id: its id; nothing happens when there is no such page
        """

    @abstractmethod
    def size(self) -> int:
        """How large all pages are.

        :returns: their bytes
        """

    def spill(self) -> None:  # noqa: B027
        """Bring elsewhere what does not fit into memory.

        :raises StreamProgramError: when it cannot be brought there; all pages are kept nevertheless
        """

    def close(self) -> None:  # noqa: B027
        """Keep nothing more."""


class MemoryPages(PageStorage):
    """Keeps pages in memory."""

    def __init__(self) -> None:
        self._pages: dict[PageId, StoredPage] = {}

    def __contains__(self, page_id: PageId) -> bool:
        return page_id in self._pages

    def ids(self) -> Iterator[PageId]:
        """The pages."""
        return iter(list(self._pages))

    def read(self, page_id: PageId) -> bytes | None:
        """The bytes of a page."""
        page = self._pages.get(page_id)
        return None if page is None else page.data

    def stored(self, page_id: PageId) -> StoredPage:
        """A page as it is in snapshots."""
        return self._pages[page_id]

    def write(self, page_id: PageId, page: StoredPage) -> None:
        """Keep a page."""
        self._pages[page_id] = page

    def remove(self, page_id: PageId) -> None:
        """Keep a page no more."""
        self._pages.pop(page_id, None)

    def size(self) -> int:
        """How large all pages are."""
        return sum(len(page.data) for page in self._pages.values())

    def close(self) -> None:
        """Keep nothing more."""
        self._pages.clear()


class SpilledPages(PageStorage):
    """Keeps so many bytes of pages in memory, those that were written last; the others in a file that is gone with the process.

    :param most_bytes: how many bytes in memory
    :param folder: where the file is; None for the folder for temporary files
    """

    def __init__(self, most_bytes: int, folder: str | None = None) -> None:
        self._most_bytes = most_bytes
        self._recent: OrderedDict[PageId, StoredPage] = OrderedDict()  # a dict looks for its first key among removed ones
        self._recent_bytes = 0
        self._spilled: dict[PageId, tuple[Slot, Due]] = {}
        self._file = ScratchFile(folder)

    def __contains__(self, page_id: PageId) -> bool:
        return page_id in self._recent or page_id in self._spilled

    def ids(self) -> Iterator[PageId]:
        """The pages."""
        return iter([*self._recent, *self._spilled])

    def read(self, page_id: PageId) -> bytes | None:
        """The bytes of a page."""
        page = self._recent.get(page_id)
        if page is not None:
            return page.data
        spilled = self._spilled.get(page_id)
        return None if spilled is None else self._file.read(spilled[0])

    def stored(self, page_id: PageId) -> StoredPage:
        """A page as it is in snapshots."""
        page = self._recent.get(page_id)
        if page is None:
            slot, due = self._spilled[page_id]
            page = StoredPage(self._file.read(slot), due)
        return page

    def write(self, page_id: PageId, page: StoredPage) -> None:
        """Keep a page, in memory until others were written after it."""
        self.remove(page_id)
        self._recent[page_id] = page
        self._recent_bytes += len(page.data)

    def spill(self) -> None:
        """Write the pages that were written first to the file, until the others fit into memory."""
        while self._recent_bytes > self._most_bytes:
            page_id, page = next(iter(self._recent.items()))
            self._spilled[page_id] = (self._file.write(page.data), page.due)
            del self._recent[page_id]
            self._recent_bytes -= len(page.data)

    def remove(self, page_id: PageId) -> None:
        """Keep a page no more."""
        page = self._recent.pop(page_id, None)
        if page is not None:
            self._recent_bytes -= len(page.data)
        spilled = self._spilled.pop(page_id, None)
        if spilled is not None:
            self._file.free(spilled[0])

    def size(self) -> int:
        """How large all pages are."""
        return self._recent_bytes + sum(length for (_, length), _ in self._spilled.values())

    @property
    def memory_bytes(self) -> int:
        """How many bytes of pages are in memory."""
        return self._recent_bytes

    @property
    def file_bytes(self) -> int:
        """How large the file is."""
        return self._file.size

    def close(self) -> None:
        """Give the file up."""
        self._recent.clear()
        self._spilled.clear()
        self._recent_bytes = 0
        self._file.close()

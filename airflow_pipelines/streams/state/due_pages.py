"""The times at which stored pages are due because of their timers."""

from __future__ import annotations

import heapq

from airflow_pipelines.streams.state.pages import PageId


class DuePages:
    """The earliest time of each page, for each time domain. It may be too early, never too late."""

    def __init__(self) -> None:
        self._heaps: tuple[list[tuple[int, PageId]], list[tuple[int, PageId]]] = ([], [])
        self._noted: tuple[dict[PageId, int], dict[PageId, int]] = ({}, {})

    def note(self, domain: int, timestamp: int, page_id: PageId) -> None:
        """Record a timer of a page.

        :param domain: the time domain
        :param timestamp: the timestamp of the timer in ms
        :param page_id: the id of the page
        """
        known = self._noted[domain].get(page_id)
        if known is None or timestamp < known:
            self._noted[domain][page_id] = timestamp
            heapq.heappush(self._heaps[domain], (timestamp, page_id))

    def take(self, domain: int, until: int) -> PageId | None:
        """Remove and return the page that is due first.

        :param domain: the time domain
        :param until: the current time of the domain, in ms
        :returns: its id, None if no page is due
        """
        timestamp = self.next(domain)
        if timestamp is None or timestamp > until:
            return None
        _, page_id = heapq.heappop(self._heaps[domain])
        del self._noted[domain][page_id]
        return page_id

    def next(self, domain: int) -> int | None:
        """Return the earliest time at which a page is due.

        :param domain: the time domain
        :returns: timestamp in ms, None for never
        """
        heap, noted = self._heaps[domain], self._noted[domain]
        while heap and noted.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def forget(self, page_id: PageId) -> None:
        """Forget a page that no longer exists.

        :param page_id: its id
        """
        for noted in self._noted:
            noted.pop(page_id, None)

"""The tree that leads from a key to its page.

The pages of a key group are the leaves of a binary tree: a page that outgrows its size splits by the next bit of the second hash of
its keys.
"""

from __future__ import annotations

from airflow_pipelines.streams.state.pages import PageId, key_hashes

DEEPEST = 24


class PageTree:
    """The splits of the pages of all key groups.

    :param max_parallelism: the number of key groups
    """

    def __init__(self, max_parallelism: int) -> None:
        self._max_parallelism = max_parallelism
        self._splits: dict[int, set[int]] = {}
        self._guesses: dict[int, int] = {}

    def add(self, page_id: PageId) -> None:
        """Add a page: the pages above it have been split.

        :param page_id: its id
        """
        group, depth, bits = page_id
        if not depth:
            return
        splits = self._splits.setdefault(group, set())
        for above in range(depth - 1, -1, -1):
            node = 1 << above | bits & (1 << above) - 1
            if node in splits:
                break
            splits.add(node)
        self._guesses[group] = depth

    def locate(self, data: bytes) -> tuple[PageId, int]:
        """Return the page of a key.

        :param data: the canonical bytes of the key
        :returns: the id of the page, and the second hash of the key
        """
        code, bits = key_hashes(data)
        group = code % self._max_parallelism
        splits = self._splits.get(group)
        if splits is None:
            return (group, 0, 0), bits
        depth = self._guesses[group]
        if 1 << depth | bits & (1 << depth) - 1 in splits:
            depth += 1
            while 1 << depth | bits & (1 << depth) - 1 in splits:
                depth += 1
        else:
            while depth and (1 << depth - 1 | bits & (1 << depth - 1) - 1) not in splits:
                depth -= 1
        return (group, depth, bits & (1 << depth) - 1), bits

    def leaves(self, page_id: PageId) -> list[PageId]:
        """Return the pages into which a page has been split.

        :param page_id: its id
        :returns: these pages, in the order of :func:`place`; the page itself if it was not split
        """
        group, depth, bits = page_id
        if 1 << depth | bits not in self._splits.get(group, ()):
            return [page_id]
        return [leaf for side in (0, 1) for leaf in self.leaves((group, depth + 1, bits | side << depth))]


def place(page_id: PageId) -> tuple[int, int]:
    """Return the sort key of a page. The resulting order of all keys does not depend on how pages were split.

    :param page_id: its id
    :returns: a value to sort by
    """
    return page_id[0], _reverse_bits(page_id[2])


def place_of_key(key: bytes) -> tuple[int, bytes]:
    """Return the sort key of a key in its page.

    :param key: its canonical bytes
    :returns: a value to sort by
    """
    return _reverse_bits(key_hashes(key)[1]), key


def _reverse_bits(bits: int) -> int:
    """Return a second hash with its bits in reverse order, the lowest first."""
    return int(f"{bits:032b}"[::-1], 2)

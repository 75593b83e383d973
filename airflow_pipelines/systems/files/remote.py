"""Files of other machines, fetched in blocks ahead of their reader."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

BLOCK_BYTES: Final = 8 << 20
"""The number of bytes that are fetched with one request."""
AHEAD: Final = 3
"""The number of blocks that are fetched before they are needed."""
_KEPT: Final = 2
"""The number of blocks that are kept after use: readers of columns go back within a group of rows, and to the file's end."""

Fetch = Callable[[int, int], bytes]
"""A function that returns the bytes between two offsets of a file."""


class BlockFile(io.RawIOBase):
    """A file that is read through blocks. The next blocks of a sequential reader are fetched ahead."""

    def __init__(self, fetch: Fetch, size: int, pool: ThreadPoolExecutor, block_bytes: int = BLOCK_BYTES) -> None:
        """Make a file and begin to fetch its first block.

        :param fetch: the function that fetches a part of it; called in threads of the pool
        :param size: the size of the file in bytes
        :param pool: the thread pool that fetches
        :param block_bytes: the number of bytes to fetch at once
        """
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._pool = pool
        self._block_bytes = block_bytes
        self._blocks: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._offset = 0
        if size:
            self._want(0)

    def want_end(self) -> None:
        """Begin to fetch the last block, for readers that read that first."""
        if self._size:
            self._want((self._size - 1) // self._block_bytes)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._offset

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the offset of the next byte, and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        self._offset = base + offset
        return self._offset

    def read(self, size: int | None = -1) -> bytes:
        """Return the next ``size`` bytes; fewer only at the end of the file."""
        return bytes(self.read_buffer(size))

    def read_buffer(self, size: int | None = -1) -> memoryview:
        """Return the same as :meth:`read`, without a copy where all is in one block. pyarrow looks for this method."""
        end = self._size if size is None or size < 0 else min(self._size, self._offset + size)
        parts = []
        while self._offset < end:
            number, begin = divmod(self._offset, self._block_bytes)
            part = memoryview(self._block(number))[begin : begin + end - self._offset]
            if not part:
                raise EOFError(f"a block ends before byte {self._offset}")
            parts.append(part)
            self._offset += len(part)
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def readinto(self, buffer: Any) -> int:
        """Read into an existing buffer."""
        view = memoryview(buffer).cast("B")
        data = self.read_buffer(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Discard the fetched blocks, and close the file."""
        for block in self._blocks.values():
            block.cancel()
        self._blocks.clear()
        super().close()

    def _block(self, number: int) -> bytes:
        for ahead in range(number, number + 1 + AHEAD):
            if ahead * self._block_bytes < self._size:
                self._want(ahead)
        block = self._blocks[number]
        self._blocks.move_to_end(number)
        for old in list(self._blocks)[: -(_KEPT + AHEAD + 1)]:
            self._blocks.pop(old).cancel()
        return block.result()

    def _want(self, number: int) -> None:
        if number not in self._blocks:
            begin = number * self._block_bytes
            self._blocks[number] = self._pool.submit(self._fetch, begin, min(self._size, begin + self._block_bytes))

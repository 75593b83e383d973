"""Files of other machines, fetched in blocks ahead of whoever reads them."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

BLOCK_BYTES: Final = 8 << 20
"""How much is fetched with one request."""
AHEAD: Final = 3
"""How many blocks are fetched before they are needed."""
_KEPT: Final = 2
"""How many blocks are kept after they were needed: readers of columns go back within a group of rows, and to the file's end."""

Fetch = Callable[[int, int], bytes]
"""Gives the bytes between two offsets of a file."""


class BlockFile(io.RawIOBase):
    """A file that is read through blocks. Whoever reads on finds the next ones there, or on their way."""

    def __init__(self, fetch: Fetch, size: int, pool: ThreadPoolExecutor, block_bytes: int = BLOCK_BYTES) -> None:
        """Make a file and begin to fetch its first block.

        :param fetch: gets a part of it; called in threads of the pool
        :param size: of the file, in bytes
        :param pool: fetches
        :param block_bytes: how much is fetched at once
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
        """Begin to fetch the last block, for whoever reads that first."""
        if self._size:
            self._want((self._size - 1) // self._block_bytes)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte comes from."""
        return self._offset

    def size(self) -> int:
        """How many bytes the file has."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on somewhere else."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        self._offset = base + offset
        return self._offset

    def read(self, size: int | None = -1) -> bytes:
        """As many bytes as asked for; fewer at the end of the file only."""
        return bytes(self.read_buffer(size))

    def read_buffer(self, size: int | None = -1) -> memoryview:
        """The same without a copy where all is in one block. pyarrow looks for this method."""
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
        """Read into memory that is there."""
        view = memoryview(buffer).cast("B")
        data = self.read_buffer(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Let go of what was fetched."""
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

"""A read-ahead that fetches the next block while a large block of records is parsed, which is done outside of Python."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """A block of records.

    :param parsed: a function that returns its chunk; called once, in another thread, before that of the next block
    :param is_large: True if parsing takes so long that something else should be done meanwhile
    """

    parsed: Callable[[], InputChunk]
    is_large: bool


class ReadAhead:
    """A reader that returns the chunks of blocks in order, at most one block behind what was taken."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="parse")
        self._waiting: Future[InputChunk] | None = None
        self._failure: ConnectorFailure | None = None

    def read(self, take: Callable[[float], RecordBlock | None], timeout_s: float) -> InputChunk | None:
        """Return the next chunk, or None if nothing came.

        :param take: a function that returns the block that comes within some seconds
        :param timeout_s: the time, in seconds, to wait when there is nothing
        :raises ConnectorFailure: of ``take`` or of a block, after what came before. Then nothing more comes
        """
        if self._waiting is None:
            block = self._take_block(take, timeout_s)
            if block is None or not block.is_large:
                return None if block is None else block.parsed()
            self._waiting = self._thread.submit(block.parsed)
        first, following = self._waiting, None
        try:
            following = self._take_block(take, 0.0)
        except ConnectorFailure as failure:
            self._failure = failure
        self._waiting = None if following is None else self._thread.submit(following.parsed)
        try:
            return first.result()
        except ConnectorFailure as failure:
            # Nothing may follow a block that could not be read.
            self._waiting, self._failure = None, failure
            raise

    def close(self) -> None:
        """Stop parsing."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _take_block(self, take: Callable[[float], RecordBlock | None], timeout_s: float) -> RecordBlock | None:
        if self._failure is not None:
            raise self._failure
        return take(timeout_s)

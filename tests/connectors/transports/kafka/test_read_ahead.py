"""Blocks of records that are parsed while the next ones come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk, TransientConnectorFailure
from airflow_pipelines.connectors.transports.kafka.read_ahead import ReadAhead, RecordBlock

PATIENCE_S = 10.0


class Source:
    """Gives blocks by number, nothing for None, and raises what is a failure."""

    def __init__(self, *script: Any) -> None:
        self._script = list(script)
        self.waited: list[float] = []

    def take(self, timeout_s: float) -> RecordBlock | None:
        self.waited.append(timeout_s)
        given = self._script.pop(0) if self._script else None
        if isinstance(given, ConnectorFailure):
            raise given
        return given


def block(number: int, *, large: bool, parsed: Callable[[], object] = lambda: None) -> RecordBlock:
    def chunk() -> InputChunk:
        parsed()
        return InputChunk(None, number, 0, {"number": number})

    return RecordBlock(chunk, large)


@pytest.fixture
def ahead() -> Iterator[ReadAhead]:
    reader = ReadAhead()
    yield reader
    reader.close()


def read(ahead: ReadAhead, source: Source) -> int | None:
    chunk = ahead.read(source.take, 1.0)
    return None if chunk is None else chunk.records


def test_all_blocks_come_in_order_whatever_their_sizes(ahead: ReadAhead) -> None:
    sizes = [True, True, False, True, False, False, True]
    source = Source(*(block(number, large=large) for number, large in enumerate(sizes)))
    assert [read(ahead, source) for _ in sizes] == list(range(len(sizes)))
    assert read(ahead, source) is None


def test_a_small_block_does_not_wait_for_another(ahead: ReadAhead) -> None:
    source = Source(block(1, large=False))
    assert read(ahead, source) == 1
    assert source.waited == [1.0]


def test_nobody_waits_for_more_while_a_block_is_there(ahead: ReadAhead) -> None:
    source = Source(block(1, large=True), None, None)
    assert read(ahead, source) == 1
    assert read(ahead, source) is None
    assert source.waited == [1.0, 0.0, 1.0]


def test_the_next_block_comes_while_one_is_parsed(ahead: ReadAhead) -> None:
    taken = threading.Event()

    class Next(Source):
        def take(self, timeout_s: float) -> RecordBlock | None:
            if len(self.waited) == 1:
                taken.set()
            return super().take(timeout_s)

    def parsed() -> None:
        assert taken.wait(PATIENCE_S), "the next block was not asked for"

    assert read(ahead, Next(block(1, large=True, parsed=parsed), block(2, large=True))) == 1


def test_what_came_before_a_failure_comes_first(ahead: ReadAhead) -> None:
    source = Source(block(1, large=True), TransientConnectorFailure("the broker is away"))
    assert read(ahead, source) == 1
    for _ in range(2):
        with pytest.raises(TransientConnectorFailure, match="the broker is away"):
            read(ahead, source)


def test_a_failure_with_nothing_before_is_raised_at_once(ahead: ReadAhead) -> None:
    with pytest.raises(ConnectorFailure, match="expired"):
        read(ahead, Source(ConnectorFailure("expired")))


def test_what_parsing_raises_comes_to_whoever_reads(ahead: ReadAhead) -> None:
    def parsed() -> None:
        raise TransientConnectorFailure("the registry is away")

    source = Source(block(1, large=True), block(2, large=True, parsed=parsed), block(3, large=True))
    assert read(ahead, source) == 1
    # The third must not come as if there had been no second.
    for _ in range(2):
        with pytest.raises(TransientConnectorFailure, match="the registry is away"):
            read(ahead, source)

"""Sinks that bring the elements of a stream to the program that built it, or print them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.sinks import Sink, SinkWriter, SubtaskInfo


class CollectSink(Sink):
    """A sink that keeps elements in this process until they are taken."""

    def __init__(self) -> None:
        self.values: deque[Any] = deque()

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer for one task."""
        return _CollectWriter(self.values)


class _CollectWriter(SinkWriter):
    def __init__(self, values: deque[Any]) -> None:
        self._values = values

    def write(self, batch: Batch) -> None:
        self._values.extend(batch.values)


class PrintSink(Sink):
    """A sink that writes elements as text to the standard output, as ``identifier:task> text``.

    :param identifier: the text before each element, None for none
    :param to_text: the function that converts an element to text
    """

    def __init__(self, identifier: str | None, to_text: Callable[[Any], str]) -> None:
        self._identifier = identifier
        self._to_text = to_text

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer for one task."""
        parts = [self._identifier] if self._identifier else []
        if subtask.parallelism > 1:
            parts.append(str(subtask.index + 1))
        return _PrintWriter(":".join(parts) + "> " if parts else "", self._to_text)


class _PrintWriter(SinkWriter):
    def __init__(self, prefix: str, to_text: Callable[[Any], str]) -> None:
        self._prefix = prefix
        self._to_text = to_text

    def write(self, batch: Batch) -> None:
        prefix, to_text = self._prefix, self._to_text
        sys.stdout.write("".join([f"{prefix}{to_text(value)}\n" for value in batch.values]))
        sys.stdout.flush()


class CloseableIterator(Iterator[Any]):
    """An iterator over the elements of a stream while its program runs.

    The program stops when the iterator is closed, or has no more elements.

    :param take: the function that returns the elements that are ready, or None when there are no more
    :param close: the function that stops the program

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with env.from_collection(["first", "second", "third"]).execute_and_collect() as elements:
    ...     next(elements)
    'first'
    """

    def __init__(self, take: Callable[[], deque[Any] | None], close: Callable[[], None]) -> None:
        self._take = take
        self._close = close
        self._closed = False

    def __next__(self) -> Any:
        if self._closed:
            raise StopIteration
        values = self._take()
        if values is None:
            self.close()
            raise StopIteration
        return values.popleft()

    def close(self) -> None:
        """Stop the program."""
        if not self._closed:
            self._closed = True
            self._close()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

"""Where the output of an operator goes: to operators of its chain, and through exchanges to others."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.exchanges import ExchangeWriter
from airflow_pipelines.streams.failures import last_given, note_element
from airflow_pipelines.streams.graph.chains import Step
from airflow_pipelines.streams.operators.base import Operator
from airflow_pipelines.streams.values import isolate_all


class Fanout:
    """Gives what one output of an operator makes to all who read it.

    :param owner: the operator
    :param convert: makes of a result what its declared type wants; None where nothing is to be done
    """

    def __init__(self, owner: Step, convert: Any) -> None:
        self._owner = owner
        self._convert = convert
        self._operators: list[tuple[Operator, int]] = []
        self._exchanges: list[ExchangeWriter] = []
        self._sides: list[Fanout] = []
        self._readers = 0

    def to_operator(self, operator: Operator, port: int) -> None:
        """Add an operator of the same chain.

        :param operator: reads the output
        :param port: the input by which it does
        """
        self._operators.append((operator, port))
        self._readers += 1

    def to_exchange(self, exchange: ExchangeWriter) -> None:
        """Add tasks of another chain.

        :param exchange: brings them what they read
        """
        self._exchanges.append(exchange)
        self._readers += 1

    def to_side(self, side: Fanout) -> None:
        """Add a side output of the same operator, whose event time is that of the operator.

        :param side: where its values go
        """
        self._sides.append(side)

    def emit(self, batch: Batch) -> None:
        """Give records. Each reader but the last gets a copy of what can change.

        :param batch: the records
        """
        if self._convert is not None:
            batch = Batch(self._converted(batch.values), batch.timestamps)
        remaining = self._readers
        for operator, port in self._operators:
            remaining -= 1
            operator.process(batch if remaining == 0 else _copied(batch), port)
        for exchange in self._exchanges:
            remaining -= 1
            exchange.emit(batch if remaining == 0 else _copied(batch))

    def _converted(self, values: list[Any]) -> list[Any]:
        iterator = iter(values)
        try:
            return list(map(self._convert, iterator))
        except Exception as error:
            note_element(error, self._owner.name, last_given(values, iterator), "result")
            raise

    def watermark(self, timestamp: int) -> None:
        """Give a watermark.

        :param timestamp: how far event time has come
        """
        for operator, _ in self._operators:
            operator.watermark(timestamp)
        for exchange in self._exchanges:
            exchange.watermark(timestamp)
        for side in self._sides:
            side.watermark(timestamp)

    def idleness(self, *, idle: bool) -> None:
        """Say whether nothing is to be expected.

        :param idle: whether it is so
        """
        for operator, _ in self._operators:
            operator.idleness(idle=idle)
        for exchange in self._exchanges:
            exchange.idleness(idle=idle)
        for side in self._sides:
            side.idleness(idle=idle)


def _copied(batch: Batch) -> Batch:
    return Batch(isolate_all(batch.values), list(batch.timestamps))

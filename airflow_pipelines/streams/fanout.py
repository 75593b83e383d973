"""The outputs of operators, which go to operators of the same chain and through exchanges to others."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.exchanges import ExchangeWriter
from airflow_pipelines.streams.failures import last_given, note_element
from airflow_pipelines.streams.graph.chains import Step
from airflow_pipelines.streams.operators.base import Operator
from airflow_pipelines.streams.values import isolate_all


class Fanout:
    """One output of an operator, which gives each result to all its readers.

    :param owner: the step of the operator
    :param convert: a function that converts a result to its declared type; None if no conversion is needed
    """

    def __init__(self, owner: Step, convert: Any) -> None:
        self._owner = owner
        self._convert = convert
        self._operators: list[tuple[Operator, int]] = []
        self._exchanges: list[ExchangeWriter] = []
        self._sides: list[Fanout] = []
        self._readers = 0

    def to_operator(self, operator: Operator, port: int) -> None:
        """Add an operator of the same chain as a reader.

        :param operator: the operator
        :param port: the input on which it reads
        """
        self._operators.append((operator, port))
        self._readers += 1

    def to_exchange(self, exchange: ExchangeWriter) -> None:
        """Add tasks of another chain as readers.

        :param exchange: the writer of the exchange to these tasks
        """
        self._exchanges.append(exchange)
        self._readers += 1

    def to_side(self, side: Fanout) -> None:
        """Add a side output of the same operator. It has the operator's event time.

        :param side: the fanout of the side output
        """
        self._sides.append(side)

    def emit(self, batch: Batch) -> None:
        """Give records to all readers. Each reader but the last gets a copy of mutable values.

        :param batch: the records
        """
        if self._convert is not None:
            batch = Batch(self._convert_all(batch.values), batch.timestamps)
        remaining = self._readers
        for operator, port in self._operators:
            remaining -= 1
            operator.process(batch if remaining == 0 else _copy(batch), port)
        for exchange in self._exchanges:
            remaining -= 1
            exchange.emit(batch if remaining == 0 else _copy(batch))

    def _convert_all(self, values: list[Any]) -> list[Any]:
        iterator = iter(values)
        try:
            return list(map(self._convert, iterator))
        except Exception as error:
            note_element(error, self._owner.name, last_given(values, iterator), "result")
            raise

    def watermark(self, timestamp: int) -> None:
        """Give a watermark to all readers and side outputs.

        :param timestamp: event time in ms
        """
        for operator, _ in self._operators:
            operator.watermark(timestamp)
        for exchange in self._exchanges:
            exchange.watermark(timestamp)
        for side in self._sides:
            side.watermark(timestamp)

    def idleness(self, *, idle: bool) -> None:
        """Tell all readers and side outputs whether this output is idle.

        :param idle: True if no elements are to be expected
        """
        for operator, _ in self._operators:
            operator.idleness(idle=idle)
        for exchange in self._exchanges:
            exchange.idleness(idle=idle)
        for side in self._sides:
            side.idleness(idle=idle)


def _copy(batch: Batch) -> Batch:
    return Batch(isolate_all(batch.values), list(batch.timestamps))

"""Sensors on the input connectors of a running pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_pipelines.hooks.conditions import Condition, ConnectorEndCondition, LagCondition
from airflow_pipelines.operators import arguments
from airflow_pipelines.sensors.base import PipelineSensor


class PipelineConnectorEndSensor(PipelineSensor):
    """The sensor that waits until one input connector reached the end of its input and all of it is processed and delivered.

    Other connectors may go on.

    XCom: ``{"connector", "total_records"}``. A connector that failed for good, or does not exist, fails the task at once.

    :param connector: the connector as ``table.connector``
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "connector")

    def __init__(self, *, connector: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.connector = arguments.text("connector", self.connector)

    def condition(self) -> Condition:
        """Return the condition on the connector's end."""
        return ConnectorEndCondition(self.connector)


class PipelineLagSensor(PipelineSensor):
    """The sensor that waits until the lag of inputs is within limits. Each limit that is given must hold; at least one is needed.

    Inputs whose sources do not report their size, such as rows that are pushed, are left out; at least one source has to report it.

    XCom: ``{"lag"}``, the lag of each input as ``{"records", "bytes", "seconds"}``.

    :param max_records: the maximum number of records that the source has and that are not processed
    :param max_bytes: the maximum number of bytes that the source has and that were not read
    :param max_seconds: the maximum lag in seconds
    :param connector: the connector as ``table.connector``; None for all
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "max_records", "max_bytes", "max_seconds", "connector")

    def __init__(
        self,
        *,
        max_records: int | str | None = None,
        max_bytes: int | str | None = None,
        max_seconds: float | str | None = None,
        connector: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # A limit that the DAG gives but a template loses must not count as "no limit".
        self.given = arguments.collect_given(
            max_records=max_records, max_bytes=max_bytes, max_seconds=max_seconds, connector=connector
        )
        if not self.given - {"connector"}:
            raise ValueError("a limit is needed: give max_records, max_bytes or max_seconds")
        self.max_records = max_records
        self.max_bytes = max_bytes
        self.max_seconds = max_seconds
        self.connector = connector
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        if "max_records" in self.given:
            self.max_records = arguments.whole_number("max_records", self.max_records, least=0)
        if "max_bytes" in self.given:
            self.max_bytes = arguments.whole_number("max_bytes", self.max_bytes, least=0)
        if "max_seconds" in self.given:
            self.max_seconds = arguments.number("max_seconds", self.max_seconds, least=0)
        if "connector" in self.given:
            self.connector = arguments.text("connector", self.connector)

    def condition(self) -> Condition:
        """Return the condition with the limits."""
        return LagCondition(
            None if self.max_records is None else int(self.max_records),
            None if self.max_bytes is None else int(self.max_bytes),
            None if self.max_seconds is None else float(self.max_seconds),
            self.connector,
        )

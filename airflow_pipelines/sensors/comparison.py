"""Sensors that compare figures of a running pipeline with a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_pipelines.hooks.conditions import OPERATORS, Condition, MetricCondition, ViewCondition
from airflow_pipelines.operators import arguments
from airflow_pipelines.sensors.base import PipelineSensor


class PipelineMetricSensor(PipelineSensor):
    """The sensor that waits until a metric of the pipeline compares with a value, such as ``records_input_buffered < 1000``.

    XCom: ``{"metric", "series"}``, the series as the pipeline's metrics have them: ``{"labels", "value"}``. A metric that does not
    exist fails the task at once, with the names of those that do.

    :param metric: the metric's name
    :param operator: ``<``, ``<=``, ``==``, ``!=``, ``>=`` or ``>``
    :param value: the value to compare the metric with
    :param labels: the labels that a series has to have, such as ``{"endpoint": "orders.topic"}``. The comparison has to hold for
        each series that has them
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "metric", "operator", "value", "labels")

    def __init__(
        self, *, metric: str, operator: str, value: float | str, labels: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        arguments.refuse_when_parsed(arguments.choice, "operator", operator, tuple(OPERATORS))
        self.metric = metric
        self.operator = operator
        self.value = value
        self.labels = labels
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.metric = arguments.text("metric", self.metric)
        self.operator = arguments.choice("operator", self.operator, tuple(OPERATORS))
        self.value = arguments.number("value", self.value, least=-math.inf)
        if self.labels is not None:
            labels = arguments.mapping("labels", self.labels)
            self.labels = {str(name): arguments.text(f"labels[{name!r}]", value) for name, value in labels.items()}

    def condition(self) -> Condition:
        """Return the condition with the comparison."""
        return MetricCondition(self.metric, self.operator, float(self.value), dict(self.labels or {}))


class PipelineViewSensor(PipelineSensor):
    """The sensor that waits until a query over materialized tables and views finds a row.

    With ``operator`` and ``value`` it waits until the first column of the row compares with the value.

    Only the first row is compared. The query runs on the pipeline at each poll, so choose ``poke_interval`` by the cost of the
    query. XCom: ``{"row"}``, the row by the names of its columns.

    :param query: a SELECT, or the path of a ``.sql`` file
    :param operator: ``<``, ``<=``, ``==``, ``!=``, ``>=`` or ``>``; None if any row is enough
    :param value: the value to compare the first column with: a number, a text or a truth value. A template gives a text; it is
        compared as a number with a column of numbers if it is one
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "query", "operator", "value")
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers = {"query": "sql"}

    def __init__(self, *, query: str, operator: str | None = None, value: float | str | bool | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if (operator is None) is not (value is None):
            raise ValueError("operator and value belong together: give both or neither")
        arguments.refuse_when_parsed(arguments.choice, "operator", operator, tuple(OPERATORS))
        self.is_compared = operator is not None
        self.query = query
        self.operator = operator
        self.value = value
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.query = arguments.text("query", self.query)
        if self.is_compared:
            self.operator = arguments.choice("operator", self.operator, tuple(OPERATORS))
            arguments.present("value", self.value)

    def condition(self) -> Condition:
        """Return the condition with the query and the comparison."""
        return ViewCondition(self.query, self.operator, self.value)

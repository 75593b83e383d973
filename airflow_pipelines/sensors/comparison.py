"""Sensors that compare what a running pipeline says with a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_pipelines.hooks.conditions import OPERATORS, Condition, MetricCondition, ViewCondition
from airflow_pipelines.operators import arguments
from airflow_pipelines.sensors.base import PipelineSensor


class PipelineMetricSensor(PipelineSensor):
    """Waits until a metric of the pipeline compares with a value, such as ``records_input_buffered < 1000``.

    XCom: ``{"metric", "series"}``, the series as the pipeline's metrics have them: ``{"labels", "value"}``. A metric that does not
    exist fails the task at once, with the names of those that do.

    :param metric: the metric's name
    :param operator: ``<``, ``<=``, ``==``, ``!=``, ``>=`` or ``>``
    :param value: what the metric is compared with
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
        self.constructed()

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
        """The comparison."""
        return MetricCondition(self.metric, self.operator, float(self.value), dict(self.labels or {}))


class PipelineViewSensor(PipelineSensor):
    """Waits until a query over materialized tables and views finds a row, or one whose first column compares with a value.

    Of the rows only the first is looked at. The query runs on the pipeline at each poll, so choose ``poke_interval`` by what it
    costs. XCom: ``{"row"}``, the row by the names of its columns.

    :param query: a SELECT, or the path of a ``.sql`` file
    :param operator: ``<``, ``<=``, ``==``, ``!=``, ``>=`` or ``>``; None when any row will do
    :param value: what the first column is compared with: a number, a text or a truth value. What a template gives is a text; it is
        compared as a number with a column of numbers when it is one
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
        self.constructed()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.query = arguments.text("query", self.query)
        if self.is_compared:
            self.operator = arguments.choice("operator", self.operator, tuple(OPERATORS))
            arguments.present("value", self.value)

    def condition(self) -> Condition:
        """The query and the comparison."""
        return ViewCondition(self.query, self.operator, self.value)

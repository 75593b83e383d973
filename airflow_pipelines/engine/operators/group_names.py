"""The names that a plan gives to the columns of an aggregate's input."""

from __future__ import annotations

import re

from airflow_pipelines.sql.plan.ir.aggregate import Aggregate

_COLUMN = re.compile(r"`?\b(__c\d+)\b`?")


def with_input_texts(node: Aggregate, expression: str) -> str:
    """Return a failing expression of an aggregate with the texts of its input's columns instead of their names.

    :param node: the aggregate
    :param expression: the expression as Spark SQL, in the form that Spark shows in an error
    """
    texts = {item.name: item.text for item in node.input.items}
    return _COLUMN.sub(lambda parsed: texts.get(parsed[1], parsed[1]), expression).replace("`", "")

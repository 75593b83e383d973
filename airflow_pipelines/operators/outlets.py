"""The extras of the asset events of a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

_FIGURES = (str, int, float, bool, type(None))


def tell_outlets(task: BaseOperator, context: Context, pipeline_name: str, result: Any) -> None:
    """Write the figures of a task's result to the events of its outlets, so that DAGs scheduled on them know the details.

    :param task: the task
    :param context: its context
    :param pipeline_name: the pipeline
    :param result: the XCom of the task; texts, numbers and truth values are written, lists and objects are not
    """
    outlets = [outlet for outlet in task.outlets if isinstance(outlet, Asset)]
    if not outlets:
        return
    xcom = result if isinstance(result, Mapping) else {}
    figures = {name: value for name, value in xcom.items() if isinstance(value, _FIGURES)}
    for outlet in outlets:
        context["outlet_events"][outlet].extra.update({"pipeline": pipeline_name, **figures})

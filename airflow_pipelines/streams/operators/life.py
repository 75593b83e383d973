"""The opening and closing of the user's function objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.functions import Function
from airflow_pipelines.streams.operators.base import OperatorContext
from airflow_pipelines.streams.runtime import RuntimeContext


def runtime_context(context: OperatorContext) -> RuntimeContext:
    """Return the runtime context of a function.

    :param context: the context of its operator
    :returns: the context for ``open``
    """
    return RuntimeContext(context.subtask, context.clock, context.store)


class FunctionLife:
    """The life cycle of a function object: ``open`` is called once, and ``close`` once, and only after ``open``.

    :param function: the function object
    :param finish: the function to call with what they return, such as coroutines to run; optional
    """

    def __init__(self, function: Function, finish: Callable[[Any], None] | None = None) -> None:
        self._function = function
        self._finish = finish or _ignore
        self._is_open = False
        self._name = ""

    def open(self, context: OperatorContext) -> RuntimeContext:
        """Call ``open``.

        :param context: the context of the operator
        :returns: the runtime context that the function got
        """
        self._name = context.subtask.name
        runtime = runtime_context(context)
        self._is_open = True
        try:
            self._finish(self._function.open(runtime))  # type: ignore[func-returns-value]
        except Exception as error:
            note_operator(error, self._name, "open()")
            raise
        return runtime

    def close(self) -> None:
        """Call ``close`` if ``open`` was called."""
        if self._is_open:
            self._is_open = False
            try:
                self._finish(self._function.close())  # type: ignore[func-returns-value]
            except Exception as error:
                note_operator(error, self._name, "close()")
                raise


def _ignore(result: Any) -> None:
    del result

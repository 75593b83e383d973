"""Opens and closes the user's function objects."""

from __future__ import annotations

from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.functions import Function
from airflow_pipelines.streams.operators.base import OperatorContext
from airflow_pipelines.streams.runtime import RuntimeContext


def runtime_context(context: OperatorContext) -> RuntimeContext:
    """What a function is told about where it runs.

    :param context: of its operator
    :returns: the context for ``open``
    """
    return RuntimeContext(context.subtask, context.clock, context.store)


class FunctionLife:
    """Calls ``open`` once and ``close`` once, and only after ``open``.

    :param function: the function object
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._is_open = False
        self._name = ""

    def open(self, context: OperatorContext) -> RuntimeContext:
        """Call ``open``.

        :param context: of the operator
        :returns: what the function was told
        """
        self._name = context.subtask.name
        runtime = runtime_context(context)
        self._is_open = True
        try:
            self._function.open(runtime)
        except Exception as error:
            note_operator(error, self._name, "open()")
            raise
        return runtime

    def close(self) -> None:
        """Call ``close`` if ``open`` was called."""
        if self._is_open:
            self._is_open = False
            try:
                self._function.close()
            except Exception as error:
                note_operator(error, self._name, "close()")
                raise

"""From Spark's exceptions to a short cause."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException

from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.python_worker import FAILURE
from airflow_pipelines.engine.sessions import RECURSION_LEVELS

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ([^\n]*)")
_END = re.compile(r"\s*SQLSTATE: |;? line \d+ pos \d+|\n\s*['+:]|\n\n== SQL|\n== SQL|\n\s*JVM stacktrace")
_HELP = re.compile(r"\s*Please, refer to '[^']*' for a fix\.|\s*If necessary,? set \"spark\.[^\"]*\" to \"[^\"]*\"[^.]*\.")
"""Advice that nobody can follow here: the settings of the application are not the user's."""
_LEVELS = re.compile(r", try increasing it like '[^']*'")
"""Spark's advice about endless recursion is a clause that bounds one query; the limit of all is a setting."""
_SEARCH_PATH = re.compile(r"Cannot resolve routine (`[^ ]*`) on search path .*", re.DOTALL)
_PYTHON = re.compile(re.escape(FAILURE) + r"(\{.*\})")
_FRAGMENT = re.compile(r"^== SQL.*?==\n(.*?)\n\s*\^", re.DOTALL | re.MULTILINE)


def spark_cause(error: Exception) -> str:
    """What Spark says, in one sentence: without its condition, its stack, its plan and advice about its own settings."""
    return _sentence(re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", str(error).strip()))


def spark_complaint(error: Exception) -> str:
    """:func:`spark_cause`, with the piece of SQL that it is about when Spark tells."""
    cause, fragment = spark_cause(error), failing_fragment(error)
    return f"{cause} in {fragment}" if fragment else cause


def is_of_query(error: Exception) -> bool:
    """Whether an error comes from what a query says or was cancelled, so that to run the query in another way would not help.

    What Spark's expressions and a program's Python functions raise has a condition; what breaks inside of Spark has none, or an
    internal one.
    """
    text = str(error)
    if _PYTHON.search(text) is not None or "cancel" in text.lower():
        return True
    found = _CONDITION.search(text)
    condition = (error.getCondition() if isinstance(error, PySparkException) else None) or (found[1] if found else None)
    return condition is not None and not condition.startswith("INTERNAL_ERROR")


def step_error(view: str, error: Exception) -> StepError:
    """What went wrong while ``view`` was evaluated, in Spark's words but without its stack."""
    text = str(error)
    failed = _PYTHON.search(text)
    if failed is not None:
        return StepError(view, "PYTHON_FUNCTION_FAILED", _python_failure(json.loads(failed[1])), None)
    found = _CONDITION.search(text)
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if found is not None and (condition is None or condition not in text):
        condition = found[1]
    message = _sentence(found[2]) if found is not None else (text.strip().splitlines() or [type(error).__name__])[0]
    return StepError(view, condition or type(error).__name__, message, failing_fragment(error))


def _python_failure(failed: Mapping[str, Any]) -> str:
    """What the worker says of a Python function: which one, with what it was called, and what it raised."""
    call = f"{failed['function']}({', '.join(failed['arguments'])})"
    place = f" (udf_python, line {failed['line']})" if failed["line"] else ""
    return f"The Python function {call} raised {failed['type']}: {failed['message']}{place}"


def failing_fragment(error: Exception) -> str | None:
    """The piece of SQL that failed, when Spark tells."""
    if isinstance(error, PySparkException):
        for context in error.getQueryContext() or []:
            fragment = str(context.fragment()) if context.contextType().name == "SQL" else ""
            if fragment:
                return fragment
    found = _FRAGMENT.search(str(error))
    return found[1].strip() if found else None


def _sentence(text: str) -> str:
    end = _END.search(text)
    if end is not None:
        text = text[: end.start()]
    text = _HELP.sub("", " ".join(text.split()))
    text = _LEVELS.sub(f"; {RECURSION_LEVELS} sets it", text)
    return _SEARCH_PATH.sub(r"Function \1 does not exist", text)

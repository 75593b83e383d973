"""From Spark's exceptions to a short cause."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from airflow_pipelines.engine.errors import StepError

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ([^\n]*)")
_FRAGMENT = re.compile(r"^== SQL.*?==\n(.*?)\n\s*\^", re.DOTALL | re.MULTILINE)


def step_error(view: str, error: Exception) -> StepError:
    """What went wrong while ``view`` was evaluated, in Spark's words but without its stack."""
    text = str(error)
    found = _CONDITION.search(text)
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if found is not None and (condition is None or condition not in text):
        condition = found[1]
    message = found[2] if found is not None else (text.strip().splitlines() or [type(error).__name__])[0]
    return StepError(view, condition or type(error).__name__, message, _fragment(error, text))


def _fragment(error: Exception, text: str) -> str | None:
    """The piece of SQL that failed, when Spark tells."""
    if isinstance(error, PySparkException):
        for context in error.getQueryContext() or []:
            fragment = str(context.fragment()) if context.contextType().name == "SQL" else ""
            if fragment:
                return fragment
    found = _FRAGMENT.search(text)
    return found[1].strip() if found else None

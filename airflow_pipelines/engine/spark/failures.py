"""Conversion of Spark's exceptions to short messages and the errors of steps."""

from __future__ import annotations

import errno
import json
import os
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from airflow_pipelines.engine.errors import StepError, mask_secrets
from airflow_pipelines.engine.spark.java_errors import java_causes, java_stack
from airflow_pipelines.engine.spark.python_worker import FAILURE
from airflow_pipelines.engine.spark.sessions import RECURSION_LEVELS
from airflow_pipelines.engine.storage.errors import StorageError, storage_error

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ([^\n]*)")
_END = re.compile(r"\s*SQLSTATE: |;? line \d+ pos \d+|\n\s*['+:]|\n\n== SQL|\n== SQL|\n\s*JVM stacktrace")
_HELP = re.compile(r"\s*Please, refer to '[^']*' for a fix\.|\s*If necessary,? set \"spark\.[^\"]*\" to \"[^\"]*\"[^.]*\.")
"""The pattern of advice that users cannot follow, because they cannot change the application's settings."""
_LEVELS = re.compile(r", try increasing it like '[^']*'")
"""The pattern of Spark's advice of a clause that bounds the recursion of one query. Here a setting bounds all recursions."""
_SEARCH_PATH = re.compile(r"Cannot resolve routine (`[^ ]*`) on search path .*", re.DOTALL)
_PYTHON = re.compile(re.escape(FAILURE) + r"(\{.*\})")
_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""The error numbers that Java reports with the operating system's text."""
_LONGEST = 1000
"""The length at which texts of Java are cut."""
_NAME = re.compile(r"`?\b(\w+)\b`?")
_FRAGMENT = re.compile(r"^== SQL.*?==\n(.*?)\n\s*\^", re.DOTALL | re.MULTILINE)


def spark_cause(error: Exception) -> str:
    """Return Spark's message in one sentence, without the condition, stack, plan, and advice about Spark's settings."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        # PySpark has no class for it, so its text is the whole stack.
        text = _message_with_condition(error) or failure_text(error)
    return _to_sentence(re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", text.strip())) or type(error).__name__


def spark_complaint(error: Exception) -> str:
    """Return :func:`spark_cause` with the piece of SQL that it is about, if Spark names one.
    :func:`spark_cause`, with the piece of SQL that it is about where Spark says so.
    """
    cause, fragment = spark_cause(error), failing_fragment(error)
    return f"{cause} in {fragment}" if fragment else cause


def with_texts_of_names(fragment: str, texts: Mapping[str, str]) -> str:
    """Return a piece of SQL from an error of Spark with other texts for some names.

    >>> with_texts_of_names("(`__c1` / __c10)", {"__c1": "amount", "__c10": "s.n"})
    '(amount / s.n)'

    :param fragment: the piece
    :param texts: the texts, by name
    """
    return _NAME.sub(lambda name: texts.get(name[1], name[1]), fragment).replace("`", "")


def refused_write(folder: Path, error: BaseException) -> StorageError | None:
    """Return the storage error if the file system refused a write of Spark's, or None for any other error.

    :param folder: the storage's folder
    :param error: the error that Spark raised
    :returns: the error of the storage
    """
    causes = java_causes(error)
    message = causes[-1].message if causes else ""
    refused = next((number for number in _REFUSALS if os.strerror(number) in message), None)
    return None if refused is None else storage_error(folder, OSError(refused, os.strerror(refused)))


def is_of_query(error: Exception) -> bool:
    """Return True if an error comes from the query itself or a cancellation, so that planning it in another way would not help.

    Errors of expressions have an error condition, and errors of Python functions a mark of their own. Faults within Spark have no
    condition, or an internal one.
    """
    text = str(error)
    if _PYTHON.search(text) is not None or "cancel" in text.lower():
        return True
    parsed = _CONDITION.search(text)
    condition = (error.getCondition() if isinstance(error, PySparkException) else None) or (parsed[1] if parsed else None)
    return condition is not None and not condition.startswith("INTERNAL_ERROR")


def step_error(view: str, error: Exception) -> StepError:
    """Return the step error for an error that Spark raised during the evaluation of a view: Spark's message without its stack."""
    text = str(error)
    failed = _PYTHON.search(text)
    if failed is not None:
        return StepError(view, "PYTHON_FUNCTION_FAILED", _python_failure(json.loads(failed[1])), None)
    parsed = _CONDITION.search(_message_with_condition(error) or "" if isinstance(error, Py4JJavaError) else text)
    if parsed is None:
        return _build_without_condition(view, error)
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is None or condition not in text:
        condition = parsed[1]
    cause = _innermost_cause(error, parsed[2])
    message = _to_sentence(parsed[2]) + (f"; caused by {cause}" if cause is not None else "")
    trace = full_trace(error) if cause is not None else None
    return StepError(view, condition, message, failing_fragment(error), trace=trace)


def _build_without_condition(view: str, error: Exception) -> StepError:
    """Return the step error for an exception without a condition: Java's innermost cause, or Python's error."""
    innermost = next(reversed(java_causes(error)), None)
    name = innermost.name if innermost is not None else type(error).__name__
    message = innermost.message if innermost is not None else next(iter(str(error).strip().splitlines()), "")
    return StepError(view, name, _shorten(message or name), failing_fragment(error), trace=full_trace(error))


def failure_text(error: BaseException) -> str:
    """Return the message of an error outside of a step in one line: the innermost cause if it comes from Java."""
    causes = java_causes(error)
    if causes:
        return _shorten(str(causes[-1]))
    return f"{type(error).__name__}: {mask_secrets(str(error))}"


def _message_with_condition(error: Exception) -> str | None:
    """Return the message of the innermost cause that has an error condition."""
    return next((cause.message for cause in reversed(java_causes(error)) if cause.condition is not None), None)


def _innermost_cause(error: Exception, message: str) -> str | None:
    """Return the innermost cause of an error that has a condition, unless the message includes it already."""
    causes = java_causes(error)
    places = [at for at, cause in enumerate(causes) if cause.condition is not None]
    innermost = causes[-1] if places and places[-1] < len(causes) - 1 else None
    if innermost is None or (innermost.message and innermost.message in " ".join(message.split())):
        return None
    return _shorten(str(innermost))


def full_trace(error: BaseException) -> str:
    """Return all stacks of an error for a log, with Java's and without secrets."""
    text = "".join(traceback.format_exception(error)).rstrip()
    # The text of a captured exception has no stack.
    stack = java_stack(error) if isinstance(error, CapturedException) else None
    return mask_secrets(text) + (f"\n\nJava:\n{stack}" if stack else "")


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _python_failure(failed: Mapping[str, Any]) -> str:
    """Return the message for a Python function that raised: its name, its arguments, and the error."""
    call = f"{failed['function']}({', '.join(failed['arguments'])})"
    place = f" (udf_python, line {failed['line']})" if failed["line"] else ""
    return f"The Python function {call} raised {failed['type']}: {failed['message']}{place}"


def failing_fragment(error: Exception) -> str | None:
    """Return the piece of SQL that failed, if Spark names one."""
    if isinstance(error, PySparkException):
        for context in error.getQueryContext() or []:
            fragment = str(context.fragment()) if context.contextType().name == "SQL" else ""
            if fragment:
                return fragment
    parsed = _FRAGMENT.search(str(error))
    return parsed[1].strip() if parsed else None


def _to_sentence(text: str) -> str:
    end = _END.search(text)
    if end is not None:
        text = text[: end.start()]
    text = _HELP.sub("", " ".join(text.split()))
    text = _LEVELS.sub(f"; {RECURSION_LEVELS} sets it", text)
    return _SEARCH_PATH.sub(r"Function \1 does not exist", text)

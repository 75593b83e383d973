"""Parser of Java's stacks: the chain of causes, and those of them that describe the fault."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from airflow_pipelines.engine.errors import mask_secrets

SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)
"""The errors that running or planning a query raises: those that PySpark has classes for, and any other exception of the JVM."""
_CLASS = r"(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*"
_ENTRY = re.compile(rf"^(?:: |Caused by: )?(?P<name>{_CLASS})(?:: (?P<message>.*))?$")
_TASK = re.compile(rf"Lost task [^(\n]*(?:\([^()]*\)\s*)+: (?:(?P<name>{_CLASS})(?:: )?)?(?P<message>[^\n]*)")
_FRAME = re.compile(r"^\s+(?:at (?P<place>[^\n(]+\([^)\n]*\))|\.\.\. \d+ |Suppressed: )")
_WRAPPERS = frozenset({"ExecutionException", "InvocationTargetException", "UndeclaredThrowableException"})
"""Exceptions that only wrap another one."""
_TOO_LARGE = frozenset(
    {
        "OutOfMemoryError",
        "SparkOutOfMemoryError",
        "NegativeArraySizeException",
        # Arrow's exceptions.
        "OutOfMemoryException",
        "OversizedAllocationException",
    }
)
_TOO_LARGE_TEXTS = ("OutOfMemoryError", "Cannot grow BufferHolder", "[COLLECTION_SIZE_LIMIT_EXCEEDED", "exceeds VM limit")
"""The texts of memory errors in messages of exceptions of another class, or that only report one in a task."""
_CONDITION = re.compile(r"^\s*\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")


@dataclass(frozen=True, slots=True)
class JavaCause:
    """One exception of a chain of causes.

    :param name: its class without the package
    :param message: its message on one line
    """

    name: str
    message: str

    @property
    def condition(self) -> str | None:
        """Spark's error condition, if it has one."""
        parsed = _CONDITION.match(self.message)
        return parsed[1] if parsed is not None else None

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name


def java_stack(error: BaseException) -> str | None:
    """Return the stack of the Java exception behind an error, with all its causes and without secrets, or None if there is none."""
    if isinstance(error, Py4JJavaError):
        try:
            text = str(error)
        except Py4JError:
            # The JVM provides the text, and may have died of the error.
            text = str(error.errmsg)
        # The first line names the object that was called.
        return mask_secrets(text.split("\n", 1)[-1].removeprefix(": "))
    if isinstance(error, CapturedException):
        return mask_secrets(str(error._stackTrace))
    return None


def is_stack_overflow(error: BaseException | None) -> bool:
    """Return True if a query is nested so deeply that it exhausted a stack of the JVM.

    :param error: the error that Spark raised; None for no error
    :returns: True if that is the reason
    """
    return error is not None and any(cause.name == "StackOverflowError" for cause in java_causes(error))


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return True if a query makes a value or needs rows at once that exceed the JVM's memory, or the length of an array.

    :param error: the error that Spark raised; None for no error
    """
    if isinstance(error, MemoryError):
        return True
    causes = () if error is None else java_causes(error)
    return any(cause.name in _TOO_LARGE or any(text in cause.message for text in _TOO_LARGE_TEXTS) for cause in causes)


def java_causes(error: BaseException) -> tuple[JavaCause, ...]:
    """Return the exceptions behind an error, the innermost last; empty if it does not come from Java."""
    stack = java_stack(error)
    chain = list(dict.fromkeys(_parse_chain(stack))) if stack is not None else []
    causes = [cause for cause in chain if cause.name not in _WRAPPERS and not _is_aborted(cause)]
    return tuple(causes or chain)


def _parse_chain(stack: str) -> Iterator[JavaCause]:
    """Yield the exceptions of a stack, the outermost first. One without a message gets the place where it was raised."""
    name, lines, place = "", [""], ""

    def finish_cause() -> Iterator[JavaCause]:
        if not name:
            return
        text = "\n".join(lines)
        task = _TASK.search(text)
        message = " ".join(text.split())
        yield JavaCause(name.rsplit(".", 1)[-1], message or (f"at {place}" if place else ""))
        if task is not None and (task["name"] or task["message"]):
            # The driver knows only this text of a task on another machine.
            inner = (task["name"] or name).rsplit(".", 1)[-1]
            yield JavaCause(inner, " ".join(task["message"].split()))

    reading = True
    for line in stack.splitlines():
        entry = _ENTRY.match(line) if line.startswith("Caused by: ") or not name else None
        frame = _FRAME.match(line)
        if entry is not None:
            yield from finish_cause()
            name, lines, place, reading = entry["name"], [entry["message"] or ""], "", True
        elif frame is not None:
            place = place or frame["place"] or ""
            reading = False
        elif reading and name:
            lines.append(line)
    yield from finish_cause()


def _is_aborted(cause: JavaCause) -> bool:
    return cause.condition is None and cause.message.startswith(("Job aborted", "Exception thrown in awaitResult"))

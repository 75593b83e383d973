"""The text of a Java stack gives the cause that is worth telling."""

from __future__ import annotations

import pytest

from airflow_pipelines.engine.errors import mask_secrets
from airflow_pipelines.engine.spark import java_errors
from airflow_pipelines.engine.spark.java_errors import is_out_of_memory, is_stack_overflow, java_causes

ABORTED = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: "
)
FRAME = "\n\tat org.example.Some.method(Some.scala:12)"

# What a stack looks like, and the innermost cause that is told of it.
STACKS = {
    "one": ("java.lang.OutOfMemoryError: Java heap space" + FRAME, "OutOfMemoryError: Java heap space"),
    "no message": ("java.lang.StackOverflowError" + FRAME, "StackOverflowError: at org.example.Some.method(Some.scala:12)"),
    "lines": ("java.lang.IllegalStateException: two\nlines" + FRAME, "IllegalStateException: two lines"),
    "chain": (
        "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows." + FRAME
        + "\nCaused by: java.io.IOException: No space left on device" + FRAME + "\n\t... 12 more",
        "IOException: No space left on device",
    ),
    "handed on": (
        "java.util.concurrent.ExecutionException: java.lang.IllegalStateException: closed" + FRAME
        + "\nCaused by: java.lang.IllegalStateException: closed" + FRAME,
        "IllegalStateException: closed",
    ),
    "suppressed": (
        "java.lang.IllegalStateException: first" + FRAME + "\n\tSuppressed: java.lang.IllegalStateException: second"
        + "\n\tCaused by: java.lang.Error: third",
        "IllegalStateException: first",
    ),
    "task of this process": (
        ABORTED + "Lost task 0.0 in stage 1.0 (TID 1) (10.0.0.1 executor driver): java.lang.reflect.InvocationTargetException"
        + FRAME + '\nCaused by: java.lang.NumberFormatException: For input string: "x"' + FRAME + "\n\nDriver stacktrace:" + FRAME
        + "\nCaused by: java.lang.reflect.InvocationTargetException" + FRAME
        + '\nCaused by: java.lang.NumberFormatException: For input string: "x"' + FRAME,
        'NumberFormatException: For input string: "x"',
    ),
    "task of a cluster": (
        ABORTED + "Lost task 0.3 in stage 1.0 (TID 9) (10.0.0.7 executor 3): java.lang.OutOfMemoryError: Java heap space" + FRAME
        + "\n\nDriver stacktrace:" + FRAME,
        "OutOfMemoryError: Java heap space",
    ),
    "lost executor": (
        ABORTED + "Lost task 0.3 in stage 1.0 (TID 9) (10.0.0.7 executor 3): ExecutorLostFailure (executor 3 exited caused by one "
        "of the running tasks) Reason: Remote RPC client disassociated.\n\nDriver stacktrace:" + FRAME,
        "SparkException: ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Remote RPC client "
        "disassociated.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STACKS)
def test_the_innermost_cause(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stack, told = STACKS[name]
    monkeypatch.setattr(java_errors, "java_stack", lambda _: stack)
    assert str(java_causes(Exception())[-1]) == told


@pytest.mark.parametrize("name", STACKS)
def test_only_an_exhausted_stack_is_a_stack_overflow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_errors, "java_stack", lambda _: STACKS[name][0])
    assert is_stack_overflow(Exception()) == (name == "no message")


def test_an_error_of_pythons_has_no_java() -> None:
    assert java_causes(ValueError("no")) == ()


def test_secrets_do_not_reach_a_log() -> None:
    text = "cannot connect to jdbc:postgresql://me:hunter2@host/db with fs.s3a.secret.key=abc123, token: 'xyz', a=1"
    assert mask_secrets(text) == "cannot connect to jdbc:postgresql://***@host/db with fs.s3a.secret.key=*** token: *** a=1"


@pytest.mark.parametrize(
    ("stack", "found"),
    [
        ("java.lang.OutOfMemoryError: Java heap space" + FRAME, True),
        ("java.lang.OutOfMemoryError: Requested array size exceeds VM limit" + FRAME, True),
        ("java.lang.NegativeArraySizeException: -294967296" + FRAME, True),
        ("org.apache.spark.SparkRuntimeException: [COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER] Can't create array" + FRAME, True),
        ("java.lang.IllegalArgumentException: Cannot grow BufferHolder by size 4 because the size is negative" + FRAME, True),
        ("org.apache.arrow.memory.OutOfMemoryException: Failure allocating buffer." + FRAME, True),
        ("org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero" + FRAME, False),
        (STACKS["task of a cluster"][0], True),
        (STACKS["lost executor"][0], False),
    ],
)
def test_what_has_no_memory(stack: str, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_errors, "java_stack", lambda _: stack)
    assert is_out_of_memory(Exception()) is found
    assert not is_out_of_memory(None)
    assert is_out_of_memory(MemoryError())

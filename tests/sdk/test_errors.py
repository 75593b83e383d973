"""Errors: readable, catchable as documented, and able to cross a process boundary."""

from __future__ import annotations

import pickle

import pytest

from airflow_pipelines.sdk.errors import (
    PipelineAPIError,
    PipelineConnectionError,
    PipelineFailedError,
    PipelinesError,
    PipelineTimeoutError,
    ProgramCompilationError,
    describe_program_error,
)


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        (PipelineAPIError(400, "X", "m", {"a": 1}), ()),
        (PipelineConnectionError("m"), (ConnectionError,)),
        (PipelineTimeoutError("m"), (TimeoutError, RuntimeError)),
        (PipelineFailedError("m", {"message": "x"}), (RuntimeError,)),
        (ProgramCompilationError("m", {"a": 1}), (RuntimeError,)),
    ],
)
def test_errors_keep_their_kind_and_contents(error: PipelinesError, kinds: tuple[type, ...]) -> None:
    again = pickle.loads(pickle.dumps(error))
    for each in (error, again):
        assert isinstance(each, (PipelinesError, *kinds))
        assert all(isinstance(each, kind) for kind in kinds)
        assert str(each).startswith("m")
    assert vars(again) == vars(error)


def test_a_program_error_reads_well() -> None:
    error = {
        "sql_compilation": {
            "exit_code": 1,
            "messages": [
                {
                    "start_line_number": 1,
                    "start_column": 2,
                    "warning": True,
                    "error_type": "Unused",
                    "message": "m1",
                    "snippet": "s",
                },
                {"start_line_number": 0, "start_column": 0, "warning": False, "error_type": "", "message": "m2", "snippet": None},
            ],
        },
        "rust_compilation": {"exit_code": 101, "stdout": "", "stderr": "linker"},
        "system_error": "no host",
    }
    assert describe_program_error(error) == "1:2: warning: Unused: m1\ns\nError: m2\nlinker\nSystem error: no host"
    assert describe_program_error({"sql_compilation": None, "rust_compilation": {"exit_code": 0}, "system_error": None}) == ""

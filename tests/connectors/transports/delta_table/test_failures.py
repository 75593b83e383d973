"""Which errors of the client library go away by themselves."""

from __future__ import annotations

import pytest

from airflow_pipelines.connectors.base import TransientConnectorFailure
from airflow_pipelines.connectors.transports.delta_table.failures import failure, is_denied, is_missing


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("Unable to copy data to file: No space left on device (os error 28)", "make room there"),
        ("HTTP status server error (503 Slow Down) for url (http://s3/t)", "check that the store runs"),
        ("Server returned non-2xx status code: 500", "check that the store runs"),
        ("502 Bad Gateway", "check that the store runs"),
        ("error sending request for url (http://127.0.0.1:1/t)", "check that the store runs"),
        ("error sending request for url (http://169.254.169.254/iam/security-credentials)", "check that the store runs"),
        ("Object at location user_permissions/_delta_log/0.json: connection reset by peer", "check that the store runs"),
        ("status code: 503, <Code>SlowDown</Code><Resource>/lake/signatures/0.parquet</Resource>", "check that the store runs"),
    ],
)
def test_what_goes_away_by_itself(text: str, advice: str) -> None:
    found = failure("delta_table_output cannot write t", OSError(text))
    assert isinstance(found, TransientConnectorFailure)
    assert str(found).startswith(f"delta_table_output cannot write t: {text}. It is tried again; ")
    assert advice in str(found)


def test_numbers_in_paths_are_no_answers_of_servers() -> None:
    for number in (401, 403, 404, 500, 503):
        error = OSError(f"Kernel error: the file /data/{number}/t/part-{number}.parquet is damaged")
        assert not is_denied(error)
        assert not is_missing(error)
        assert not isinstance(failure("x", error), TransientConnectorFailure)
    assert is_denied(OSError("Client error with status 403: no such key"))
    assert is_denied(OSError("Client error with status 403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code></Error>"))
    assert is_missing(OSError("Client error with status 404"))

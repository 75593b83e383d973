"""Compressed bodies become what was compressed, or a problem that says why not."""

from __future__ import annotations

import gzip
import zlib

import pytest

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.serving import bounds
from airflow_pipelines.serving.bounds import expand_body

ROWS = b'{"insert": {"id": 1}}\n' * 1000


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (ROWS, ""),
        (ROWS, "identity"),
        (gzip.compress(ROWS), "gzip"),
        (gzip.compress(ROWS), "X-GZIP"),
        (gzip.compress(ROWS[:1100]) + gzip.compress(ROWS[1100:]), "gzip"),
        (zlib.compress(ROWS), "deflate"),
        (gzip.compress(zlib.compress(ROWS)), "deflate, gzip"),
    ],
    # Without them the last body, which has the time in it, is in the id of its test, and two processes collect different ones.
    ids=["none", "identity", "gzip", "former name", "two parts", "deflate", "twice"],
)
def test_a_body_becomes_what_was_compressed(body: bytes, encoding: str) -> None:
    assert expand_body(body, encoding) == ROWS


@pytest.mark.parametrize(
    ("body", "encoding", "code", "says"),
    [
        (b"", "br", ErrorCode.UNSUPPORTED_MEDIA_TYPE, "'br' is not known; known are deflate, gzip, identity, x-gzip"),
        (ROWS, "gzip", ErrorCode.INVALID_PARAM, "not compressed by gzip"),
        (b"", "gzip", ErrorCode.INVALID_PARAM, "gzip data have no end"),
        (gzip.compress(ROWS)[:-3], "gzip", ErrorCode.INVALID_PARAM, "gzip data have no end"),
        (gzip.compress(ROWS) + b"more", "gzip", ErrorCode.INVALID_PARAM, "not compressed by gzip"),
    ],
)
def test_a_body_that_is_none_says_why(body: bytes, encoding: str, code: ErrorCode, says: str) -> None:
    with pytest.raises(Problem, match=says) as caught:
        expand_body(body, encoding)
    assert caught.value.code is code


def test_a_small_body_cannot_become_a_huge_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_EXPANDED_BYTES", len(ROWS) + 1)
    assert expand_body(gzip.compress(ROWS), "gzip") == ROWS
    for body in (gzip.compress(ROWS + b"xx"), gzip.compress(ROWS) + gzip.compress(b"xx"), gzip.compress(bytes(10_000_000))):
        with pytest.raises(Problem) as caught:
            expand_body(body, "gzip")
        assert caught.value.code is ErrorCode.PAYLOAD_TOO_LARGE

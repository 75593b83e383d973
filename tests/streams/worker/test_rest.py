"""What is kept besides pages: a part for anybody, and a part for the program alone."""

import json

import pytest

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.snapshots import TaskSnapshot
from airflow_pipelines.streams.state.description import StateDescription
from airflow_pipelines.streams.worker.rest import KeptOperator, Rest, StateHeader, read_header

HEADER = StateHeader(5, {"a": KeptOperator("näme", True, 2, 128, (StateDescription("n", "value", "LONG", "5 ms"),))})


class Gone:
    """What only the program knows."""

    def __reduce__(self):
        return _no_such_class, ()


def _no_such_class():
    raise AssertionError("the header was not read without the program's classes")


def test_all_of_it_comes_back():
    rest = Rest(HEADER, {"a": [TaskSnapshot(operators={"a": b"x"}, turns=[1], watermarks={"a": 7})]})
    assert Rest.from_bytes(rest.to_bytes()) == rest


def test_the_header_is_read_without_the_rest():
    data = Rest(HEADER, {"a": [Gone()]}).to_bytes()
    assert read_header(data) == HEADER
    with pytest.raises(AssertionError):
        Rest.from_bytes(data)


def test_the_header_is_json():
    data = Rest(HEADER, {}).to_bytes()
    start = data.index(b"{")
    assert json.JSONDecoder().raw_decode(data[start:].decode("utf-8", "replace"))[0]["operators"]["a"]["max_parallelism"] == 128


@pytest.mark.parametrize("cut", [0, 5, 13, 20, 40])
def test_damaged_bytes_are_refused(cut):
    data = Rest(HEADER, {}).to_bytes()
    with pytest.raises(StreamProgramError, match="damaged"):
        read_header(data[:cut])
    with pytest.raises(StreamProgramError, match="damaged"):
        Rest.from_bytes(b"x" + data[1:])

"""The bytes of positions: whose they are, and that they stay what they were."""

from __future__ import annotations

import pickle

import pytest

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.reading.positions import KeptPosition, SourcePosition


def test_positions_of_splits_are_kept_beside_those_that_were_not_begun() -> None:
    begun = SourcePosition("Files", pickle.dumps(["a", "b", "c"]))
    later = begun.after({0: pickle.dumps(7)}, ()).after({2: pickle.dumps([1])}, [0])
    read = SourcePosition.from_bytes(later.to_bytes(), "files", "Files")
    assert read == later
    assert list(read.split_descriptions()) == ["a", "b", "c"]
    assert [read.of_split(number) for number in range(3)] == [7, None, [1]]
    assert read.ended == {0}
    assert begun.positions == {}


def test_another_kind_of_source_does_not_even_look_at_what_is_in_it() -> None:
    data = SourcePosition("Files", b"no pickle", {0: b"nor this"}).to_bytes()
    with pytest.raises(StreamProgramError, match="'x' is a Tables, and was a Files"):
        SourcePosition.from_bytes(data, "x", "Tables")


@pytest.mark.parametrize("position", [None, True, 7, 1.5, "a", b"b", [1, {"a": 2}], (1, [2])])
def test_a_kept_position_gives_what_it_was(position: object) -> None:
    kept = KeptPosition(position, "it")
    if isinstance(position, list):
        position = list(position)
    assert pickle.loads(kept.to_bytes()) == position


def test_a_position_that_its_reader_changes_later_stays_as_it_was() -> None:
    position = [1]
    kept = KeptPosition(position, "it")
    position[0] = 2
    assert pickle.loads(kept.to_bytes()) == [1]

"""Canonical bytes of keys, and which task works on a key."""

import datetime
import enum
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.streams.errors import NoKeyError, StreamProgramError
from airflow_pipelines.streams.keys import canonical_bytes, group_to_task, key_group, task_of

Pair = namedtuple("Pair", "a b")


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


@dataclass(frozen=True)
class User:
    name: str
    number: int


class Plain:
    pass


class Stubborn:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def __reduce_ex__(self, protocol):
        raise TypeError("it stays where it is")


EQUAL = [
    (1, True), (1, 1.0), (1, Decimal("1.0")), (0.5, Decimal("0.5")), (0.5, Fraction(1, 2)), (Level.LOW, 1), ((1, 2), Pair(1, 2.0)),
    (0.0, -0.0), (2**70, float(2**70)), (Decimal("0.10"), Decimal("0.1")), (User("a", 1), User("a", True)), ({"a": 1,
    "b": 2}, {"b": 2.0, "a": 1}),
    (frozenset({1, 2}), frozenset({2, 1})), (1 + 0j, 1), (bytearray(b"x"), b"x"),
    (datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC), datetime.datetime(2026, 1, 1, 13,
    tzinfo=datetime.timezone(datetime.timedelta(hours=1)))),
]  # fmt: skip
DIFFERENT = [
    1, "1", b"1", (1,), [1], ("a", "b"), ("ab",), ("a", ("b",)), 1.5, 0.1, Decimal("0.1"), Colour.RED, User("a", 1),
    User("a", 2), "", (),
    datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1), float("inf"), float("-inf"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_keys_that_python_takes_for_equal_have_the_same_bytes(one, other):
    assert one == other
    assert canonical_bytes(one) == canonical_bytes(other)


def test_keys_that_differ_have_other_bytes():
    assert len({canonical_bytes(key) for key in DIFFERENT}) == len(DIFFERENT)
    assert canonical_bytes(float("nan")) == canonical_bytes(float("nan"))


@pytest.mark.rest
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False),
        lambda inner: st.tuples(inner, inner),
    ),
    st.integers(1, 300),
)
def test_every_task_agrees_on_the_group_of_a_key(key, parallelism):
    if key is None:
        return
    number = 300
    group = key_group(canonical_bytes(key), number)
    assert 0 <= group < number
    assert 0 <= group_to_task(group, parallelism, number) == task_of(key, parallelism, number) < parallelism


def test_groups_are_spread_over_all_tasks_and_pinned():
    assert {group_to_task(group, 5, 128) for group in range(128)} == set(range(5))
    # State is found by these numbers: they must never change.
    assert [key_group(canonical_bytes(key), 128) for key in ("a", 1, (1, "x"), 2.5)] == [4, 43, 24, 126]


def test_keys_that_cannot_be_are_refused():
    with pytest.raises(NoKeyError, match="key of a record is None"):
        canonical_bytes(None)
    with pytest.raises(StreamProgramError, match="Plain is equal only to itself"):
        canonical_bytes(Plain())
    with pytest.raises(StreamProgramError, match="cannot be a key"):
        canonical_bytes(Stubborn())

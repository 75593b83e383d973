"""Values become columns as they are, or not at all."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_pipelines.streams.worker.columns import MisfitError, column_of

POINT = pa.struct([("x", pa.int32()), ("at", pa.date32())])
NOON = dt.datetime(2024, 5, 6, 12)
DAY = dt.date(2024, 5, 6)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), [1, None, -(2**31)]),
        (pa.float64(), [1.5, None]),
        (pa.decimal128(4, 2), [Decimal("1.25"), None]),
        (pa.string(), ["a", None, ""]),
        (pa.binary(), [b"\xff", None]),
        (pa.bool_(), [True, None, False]),
        (pa.date32(), [DAY, None]),
        (pa.timestamp("us"), [NOON, None]),
        (pa.time64("us"), [NOON.time(), None]),
        (pa.list_(pa.int32()), [[1, None], [], None]),
        (pa.map_(pa.string(), pa.list_(pa.date32())), [[("a", [DAY])], [], None]),
        (POINT, [{"x": 1, "at": DAY}, {"x": None, "at": None}, None]),
    ],
)
def test_values_that_fit_stay_what_they_are(kind, values):
    assert column_of(values, pa.field("c", kind)).to_pylist() == values


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [(pa.int64(), 2.0, 2), (pa.int64(), Decimal(3), 3), (pa.float64(), 4, 4.0), (POINT, (5, DAY), {"x": 5, "at": DAY})],
)
def test_values_that_are_equal_may_be_of_another_type(kind, value, kept):
    assert column_of([value, None], pa.field("c", kind)).to_pylist() == [kept, None]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int32(), 1.5),
        (pa.int32(), float("nan")),
        (pa.int32(), float("inf")),
        (pa.int32(), Decimal("1.5")),
        (pa.int32(), 2**31),
        (pa.int32(), True),
        (pa.int32(), "1"),
        (pa.decimal128(3, 1), Decimal("1.25")),
        (pa.string(), 1),
        (pa.string(), b"\xff"),
        (pa.string(), b"a"),
        (pa.binary(), "a"),
        (pa.time64("us"), 5),
        (pa.list_(pa.string()), "abc"),
        (pa.list_(pa.string()), [b"abc"]),
        (pa.date32(), NOON),
        (pa.date32(), 5),
        (pa.timestamp("us"), DAY),
        (pa.timestamp("us"), 5),
        (pa.list_(pa.int32()), [1, 1.5]),
        (pa.list_(pa.list_(pa.int32())), [[1], [1.5]]),
        (pa.map_(pa.int32(), pa.string()), {1.5: "a"}),
        (pa.map_(pa.string(), pa.int32()), [("a", 1.5)]),
        (POINT, {"x": 1.5}),
        (POINT, {"x": 1, "y": 2}),
        (POINT, (1,)),
        (POINT, (1, NOON)),
    ],
)
def test_a_value_that_would_become_another_one_is_refused_with_its_position(kind, value):
    with pytest.raises(MisfitError) as misfit:
        column_of([None, value, None], pa.field("c", kind))
    assert misfit.value.position == 1


def test_a_value_must_be_there_where_none_may_be_missing():
    assert column_of([1], pa.field("c", pa.int32(), nullable=False)).to_pylist() == [1]
    with pytest.raises(MisfitError, match="must have a value") as misfit:
        column_of([1, None], pa.field("c", pa.int32(), nullable=False))
    assert misfit.value.position == 1

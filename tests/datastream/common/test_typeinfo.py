from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.datastream.common.row import Row, RowKind
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.datastream.common.tuples import Tuple2
from airflow_pipelines.datastream.common.type_information import TypeConversionError, TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types

NOON = datetime(2021, 2, 3, 12, microsecond=120000)
PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


@pytest.mark.parametrize(
    ("type_", "value", "expected", "text"),
    [
        (Types.STRING(), "a", "a", "a"),
        (Types.BYTE(), 200, -56, "-56"),
        (Types.SHORT(), 43878, -21658, "-21658"),
        (Types.INT(), 2**31, -(2**31), "-2147483648"),
        (Types.INT(), True, 1, "1"),
        (Types.LONG(), -(2**63), -(2**63), "-9223372036854775808"),
        (Types.BIG_INT(), 2**70, 2**70, "1180591620717411303424"),
        (Types.BOOLEAN(), True, True, "true"),
        (Types.BOOLEAN(), 0, False, "false"),
        (Types.CHAR(), "x", "x", "x"),
        (Types.FLOAT(), 1.1, 1.100000023841858, "1.1"),
        (Types.FLOAT(), 1e10, 1e10, "1.0E10"),
        (Types.DOUBLE(), 3, 3.0, "3.0"),
        (Types.DOUBLE(), 1234567.5, 1234567.5, "1234567.5"),
        (Types.DOUBLE(), 12345678.0, 12345678.0, "1.2345678E7"),
        (Types.DOUBLE(), 0.001, 0.001, "0.001"),
        (Types.DOUBLE(), -0.00012, -0.00012, "-1.2E-4"),
        (Types.DOUBLE(), -0.0, -0.0, "-0.0"),
        (Types.DOUBLE(), float("inf"), float("inf"), "Infinity"),
        (Types.BIG_DEC(), Decimal("1.20"), Decimal("1.20"), "1.20"),
        (Types.BIG_DEC(), 7, Decimal(7), "7"),
        (Types.SQL_DATE(), datetime(2021, 2, 3, 4), date(2021, 2, 3), "2021-02-03"),
        (Types.SQL_TIME(), time(4, 5, 6, 7), time(4, 5, 6, 7), "04:05:06"),
        (Types.SQL_TIMESTAMP(), datetime(2021, 2, 3, 4), datetime(2021, 2, 3, 4), "2021-02-03 04:00:00.0"),
        (Types.SQL_TIMESTAMP(), NOON, NOON, "2021-02-03 12:00:00.12"),
        (Types.INSTANT(), datetime(1970, 1, 1, 0, 0, 1, 5000, tzinfo=UTC), Instant(1, 5_000_000), "1970-01-01T00:00:01.005Z"),
        (Types.PICKLED_BYTE_ARRAY(), Row("a", 2), Row("a", 2), "<Row('a', 2)>"),
        (Types.PICKLED_BYTE_ARRAY(), None, None, "None"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"fl\xff"), b"fl\xff", "[102, 108, -1]"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), [1, -1, 257], b"\x01\xff\x01", "[1, -1, 1]"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), (1, 2), [1, 2], "[1, 2]"),
        (Types.BASIC_ARRAY(Types.STRING()), ["a", None], ["a", None], "[a, null]"),
        (Types.OBJECT_ARRAY(PERSON), [("a", 1)], [Row(name="a", age=1)], "[+I[a, 1]]"),
        (Types.LIST(Types.DOUBLE()), (1, None), [1.0, None], "[1.0, null]"),
        (Types.MAP(Types.STRING(), Types.SHORT()), {"a": 43878}, {"a": -21658}, "{a=-21658}"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ["a", 1], ("a", 1), "(a,1)"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), Row("a", None), ("a", None), "(a,null)"),
        (Types.ROW([Types.STRING(), Types.INT()]), ("a", 1), Row(f0="a", f1=1), "+I[a, 1]"),
        (PERSON, Row("a", 2**31), Row(name="a", age=-(2**31)), "+I[a, -2147483648]"),
        (PERSON, Row(age=1, name="a"), Row(name="a", age=1), "+I[a, 1]"),
        (PERSON, Row(x="a", y=1), Row(name="a", age=1), "+I[a, 1]"),
        (PERSON, {"name": "a"}, Row(name="a", age=None), "+I[a, null]"),
        (PERSON, Row.of_kind(RowKind.DELETE, "a", 1), Row.of_kind(RowKind.DELETE, name="a", age=1), "-D[a, 1]"),
        (PERSON, None, None, "null"),
    ],
    ids=repr,
)  # fmt: skip
def test_coerces_and_writes(type_: TypeInformation, value: Any, expected: Any, text: str) -> None:
    converted = type_.convert(value)
    assert converted == expected
    assert type(converted) is type(expected)
    assert type_.to_text(converted) == text
    assert type_.convert(converted) == converted
    assert pickle.loads(pickle.dumps(type_)) == type_
    assert eval(repr(type_)) == type_  # a type is shown as the program writes it


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        (Types.STRING(), 5, r"Types.STRING\(\) does not take 5 \(int\): it takes a str; use str"),
        (Types.INT(), 1.5, r"does not take 1.5 \(float\): it takes an int; use int"),
        (Types.LONG(), 2**63, r"declare Types.BIG_INT"),
        (Types.FLOAT(), 1e300, "declare Types.DOUBLE"),
        (Types.DOUBLE(), "1", r"use float\("),
        (Types.DOUBLE(), 10**400, "declare Types.BIG_DEC"),
        (Types.BOOLEAN(), "yes", r"use bool\("),
        (Types.CHAR(), "ab", "one character"),
        (Types.BIG_DEC(), 1.5, r"use Decimal\(str"),
        (Types.SQL_DATE(), "2021-01-01", "fromisoformat"),
        (Types.SQL_TIME(), 5, "datetime.time"),
        (Types.SQL_TIMESTAMP(), datetime(2021, 1, 1, tzinfo=UTC), "declare Types.INSTANT"),
        (Types.INSTANT(), 5, "of_epoch_milli"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [1, None], r"element 1: .* cannot hold None: declare Types.BASIC_ARRAY"),
        (Types.LIST(Types.INT()), "12", "it takes a list"),
        (Types.MAP(Types.STRING(), Types.INT()), [1], "it takes a dict"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": "b"}, "value of key 'a': Types.INT"),
        (Types.TUPLE([Types.INT()]), (1, 2), "it has 1 fields, and the value has 2"),
        (PERSON, 5, "takes a Row, a tuple, a list or a dict"),
        (PERSON, {"nme": "a"}, "has no field 'nme'"),
        (Types.LIST(PERSON), [("a", 1), ("b", "x")], r"^element 1, field 'age': Types.INT\(\) does not take 'x'"),
    ],
    ids=repr,
)
def test_says_where_a_value_does_not_fit(type_: TypeInformation, value: Any, message: str) -> None:
    with pytest.raises(TypeConversionError, match=message):
        type_.convert(value)


def test_refuses_types_that_make_no_sense() -> None:
    with pytest.raises(TypeError, match=r"use Types.OBJECT_ARRAY\(Types.STRING\(\)\)"):
        Types.PRIMITIVE_ARRAY(Types.STRING())
    with pytest.raises(TypeError, match=r"Types.ROW takes types such as Types.STRING\(\), not <class 'str'>"):
        Types.ROW([str])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="a name for each type: 1 names, 2 types"):
        Types.ROW_NAMED(["a"], [Types.INT(), Types.INT()])
    with pytest.raises(ValueError, match="names that differ"):
        Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()])


def test_tuple_keeps_the_class_of_its_value() -> None:
    converted = Types.TUPLE([Types.SHORT(), Types.STRING()]).convert(Tuple2(43878, "a"))
    assert (converted.f0, converted.f1) == (-21658, "a")


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_text_of_floats_reads_as_the_same_number(double: float, single: float) -> None:
    assert float(Types.DOUBLE().to_text(double)) == double
    assert Types.FLOAT().convert(float(Types.FLOAT().to_text(single))) == single


@given(st.integers())
def test_ints_wrap_as_machine_words_do(value: int) -> None:
    for type_, size in ((Types.BYTE(), 1), (Types.SHORT(), 2), (Types.INT(), 4)):
        expected = int.from_bytes((value % (1 << 8 * size)).to_bytes(size, "big"), "big", signed=True)
        assert type_.convert(value) == expected

"""What SQL types ask of the values that a stream program gives to a relation."""

import json
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_pipelines.rows.schema import arrow_type
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.streams.worker.columns import MisfitError, column_of
from airflow_pipelines.streams.worker.declared_types import DECLARED, stored_by

ID = "0b9b2c4e-5a0f-4c0e-9d55-0c4d9c1f7a11"
THREE = ColumnType("VARCHAR", precision=3)
LIST = ColumnType("ARRAY", component=THREE)
POINT = ColumnType("STRUCT", fields=(("note", THREE), ("x", ColumnType("INTEGER"))))
MAP = ColumnType("MAP", key=ColumnType("CHAR", precision=2), value=ColumnType("UUID"))


def stored(kind, values):
    column = pa.field("c", arrow_type(kind), metadata={DECLARED: json.dumps(kind.to_wire())})
    return column_of(values, column, stored_by(column)).to_pylist()


@pytest.mark.parametrize(
    ("kind", "values", "kept"),
    [
        (THREE, ["abc", "", None], ["abc", "", None]),
        (THREE, ["äöü"], ["äöü"]),
        (ColumnType("VARCHAR"), ["a" * 9], ["a" * 9]),
        (ColumnType("CHAR", precision=3), ["abc", "a", "", None], ["abc", "a", "", None]),
        (ColumnType("VARBINARY", precision=2), [b"ab", None], [b"ab", None]),
        (ColumnType("BINARY", precision=2), [b"ab", b"a", bytearray(b"b"), None], [b"ab", b"a\0", b"b\0", None]),
        (ColumnType("UUID"), [ID, ID.upper(), uuid.UUID(ID), None], [ID, ID, ID, None]),
        (ColumnType("UTINYINT"), [0, 255, 7.0, None], [0, 255, 7, None]),
        (ColumnType("UBIGINT"), [2**64 - 1, Decimal(1)], [2**64 - 1, 1]),
        (LIST, [["abc", None], (), None], [["abc", None], [], None]),
        (POINT, [{"note": "abc"}, None], [{"note": "abc", "x": None}, None]),
        (POINT, [("ab", 1), None], [{"note": "ab", "x": 1}, None]),
        (MAP, [{"a": uuid.UUID(ID)}, [("b", None)], None], [[("a", ID)], [("b", None)], None]),
    ],
)
def test_what_fits_is_stored_as_sql_stores_it(kind, values, kept):
    assert stored(kind, values) == kept


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (THREE, "abcd", "it has 4 characters, and VARCHAR(3) takes at most 3"),
        (THREE, "äöüß", "it has 4 characters, and VARCHAR(3) takes at most 3"),
        (ColumnType("CHAR", precision=3), "abc ", "it has 4 characters, and CHAR(3) takes at most 3"),
        (ColumnType("VARBINARY", precision=2), b"abc", "it has 3 bytes, and VARBINARY(2) takes at most 2"),
        (ColumnType("BINARY", precision=2), b"abc", "it has 3 bytes, and BINARY(2) takes at most 2"),
        (ColumnType("UUID"), "12", "it is no UUID"),
        (ColumnType("UUID"), f"{{{ID[1:-1]}}}", "it is no UUID"),
        (ColumnType("UUID"), ID.replace("-", ""), "it is no UUID"),
        (ColumnType("UTINYINT"), 256, "it is not between 0 and 255"),
        (ColumnType("UTINYINT"), -1, "it is not between 0 and 255"),
        (ColumnType("UBIGINT"), Decimal(2**64), "it is not between 0 and 18446744073709551615"),
        (LIST, ["abc", "abcd"], "it has 4 characters"),
        (POINT, {"note": "abcd"}, "it has 4 characters"),
        (POINT, ("abcd", 1), "it has 4 characters"),
        (MAP, {"abc": None}, "it has 3 characters"),
        (MAP, {"a": "b"}, "it is no UUID"),
        # Values of other types are refused as for any column.
        (THREE, 5, "'int'"),
        (ColumnType("UUID"), 5, "'int'"),
        (ColumnType("UTINYINT"), "5", "'5'"),
        (ColumnType("BINARY", precision=2), 5, "'int'"),
        (LIST, "abc", ""),
        (LIST, 5, "int"),
        (POINT, ("a", 1, 2), ""),
        (POINT, 5, "int"),
        (MAP, 5, "int"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_position(kind, value, reason):
    with pytest.raises(MisfitError) as misfit:
        stored(kind, [None, value, None])
    assert misfit.value.position == 1
    assert reason in misfit.value.reason

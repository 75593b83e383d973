from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_pipelines.rows.arrow import fixed_width

FIXED = [
    pa.bool_(),
    pa.int8(),
    pa.int64(),
    pa.float64(),
    pa.decimal128(38, 2),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.time64("us"),
]


def test_a_row_of_numbers_takes_what_arrow_takes_for_it() -> None:
    schema = pa.schema([(f"c{at}", kind) for at, kind in enumerate(FIXED)])
    rows = pa.Table.from_arrays([pa.array([None] * 8000, column.type) for column in schema], schema=schema)
    width = fixed_width(schema)
    assert width is not None
    assert rows.nbytes <= 8000 * width <= 1.05 * rows.nbytes
    assert fixed_width(pa.schema([])) == 0


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.null()], ids=str)
def test_a_text_takes_what_it_needs(kind: pa.DataType) -> None:
    assert fixed_width(pa.schema([("n", pa.int64()), ("v", kind)])) is None

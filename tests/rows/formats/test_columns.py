"""Reading whole columns gives exactly what reading row by row gives, whatever the bytes are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_pipelines.rows.formats import columns
from airflow_pipelines.rows.formats.csv import CsvOptions, CsvParser
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import NoColumns, col, relation
from tests.tiers import examples


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_too_small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "SMALL_BYTES", 0)
        yield


COLUMNS = {
    "b": col("b", "BOOLEAN"),
    "i8": col("i8", "TINYINT"),
    "i64": col("i64", "BIGINT", null=False),
    "r": col("r", "REAL"),
    "f": col("f", "DOUBLE"),
    "dec": col("dec", "DECIMAL", precision=5, scale=2),
    "big": col("big", "DECIMAL", precision=38, scale=0),
    "s": col("s", "VARCHAR"),
    "s3": col("s3", "CHAR", precision=3),
    "d": col("d", "DATE"),
    "t": col("t", "TIME"),
    "ts": col("ts", "TIMESTAMP"),
    "tz": col("tz", "TIMESTAMP_TZ"),
    "u": col("u", "UUID"),
    "u8": col("u8", "UTINYINT"),
    "u32": col("u32", "UINTEGER"),
    "q": col("Q", "INTEGER", quoted=True),
    "x": col("x", "INTEGER", default="7"),
}
TEXTS = st.sampled_from(
    [
        "",
        "null",
        "NULL",
        "true",
        "False",
        "t",
        "0",
        "-0",
        "1",
        "+1",
        "007",
        "0x1f",
        "127",
        "255",
        "256",
        "4294967296",
        "18446744073709551615",
        "128",
        "-129",
        "1.5",
        "1.",
        ".5",
        "99.995",
        "999.994",
        "1e2",
        "1E-400",
        "1e400",
        "3.4028235e38",
        "3.4028235677973362e38",
        "3.4028235677973366e38",
        "3.5e38",
        "NaN",
        "inf",
        "9223372036854775807",
        "9223372036854775808",
        "9" * 38,
        "9" * 39,
        "0.1",
        "16777217",
        "2025-01-02",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "2025-02-29",
        "2025-1-2",
        "10:11:12",
        "23:59:60",
        "24:00:00",
        "10:11",
        "10:11:12.123456",
        "10:11:12.1234567",
        "2025-01-02 10:11:12",
        "2025-01-02T10:11:12.5",
        "2025-01-02 10:11:12Z",
        "2025-01-02T10:11:12+01:00",
        "2025-01-02 10:11",
        "123e4567-e89b-12d3-a456-426614174000",
        "123E4567-E89B-12D3-A456-426614174000",
        "{123e4567-e89b-12d3-a456-426614174000}",
        " 1",
        "1 ",
        "\t1",
        "\u00a01",
        "abc",
        "abcd",
        "é",
        "日本語",
        "a\u2028b",
        "a\x0bb",
        "a\x85b",
        "a\x00b",
        "\ufeff",
        "٣",
    ]
)
SCHEMAS = st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True).map(
    lambda names: relation(*(COLUMNS[name] for name in names))
)
TAME = {
    "b": ["true", "FALSE"],
    "i8": ["1", "-128"],
    "i64": ["5", "-9000000000"],
    "u8": ["0", "255"],
    "u32": ["4294967295", "7"],
    "r": ["1.1", "16777217"],
    "f": ["0.1", "1e300"],
    "dec": ["999.99", "1", "-0.5"],
    "big": ["1", "9" * 38],
    "s": ["x", "é", ""],
    "s3": ["a", "abc"],
    "d": ["2025-01-02"],
    "t": ["10:11:12.5"],
    "ts": ["2025-01-02 10:11:12.000001"],
    "tz": ["2025-01-02T10:11:12"],
    "u": ["123E4567-E89B-12D3-A456-426614174000"],
    "q": ["1"],
    "x": ["2"],
}


def outcome(parser: Any, data: bytes, prefix: bool) -> tuple[Any, ...]:
    parsed = parser.parse_prefix(data, 3) if prefix else parser.parse(data, 3)
    rows = None if parsed.changes is None else parsed.changes.rows.combine_chunks()
    return parsed.records, parsed.errors, parsed.num_errors, parsed.consumed, parsed.next_index, rows


def assert_both_ways_agree(parser_type: Any, schema: RelationSchema, options: Any, data: bytes, prefix: bool) -> bool:
    fast, slow = parser_type(schema, options), parser_type(schema, options)
    used = []
    if fast._vectorised is not None:
        read = fast._vectorised.read
        fast._vectorised.read = lambda *given: used.append(read(*given)) or used[-1]
    slow._vectorised = NoColumns()
    *fast_counts, fast_rows = outcome(fast, data, prefix)
    *slow_counts, slow_rows = outcome(slow, data, prefix)
    assert fast_counts == slow_counts
    assert (fast_rows is None) == (slow_rows is None)
    if fast_rows is not None:
        assert fast_rows.schema == slow_rows.schema
        assert fast_rows.equals(slow_rows) or fast_rows.to_pylist() == slow_rows.to_pylist()
    return any(arrays is not None for arrays in used)


@st.composite
def csv_cases(draw: st.DrawFn) -> tuple[RelationSchema, bytes]:
    schema = draw(SCHEMAS)
    tame = draw(st.booleans())
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n", "\r", "\n\n"]]))
    text = ""
    for _ in range(draw(st.integers(0, 5))):
        width = len(schema.columns) + (0 if tame else draw(st.sampled_from([0, 0, 0, 1, -1])))
        fields = []
        for number in range(width):
            name = schema.columns[number].name.lower() if number < len(schema.columns) else "s"
            value = draw(st.sampled_from(TAME[name]) if tame else TEXTS)
            if draw(st.booleans()):
                value = (
                    '"'
                    + value.replace('"', '""')
                    + draw(st.sampled_from(["", "", '""', "\n", "\r\n", ","] if not tame else [""]))
                    + '"'
                )
            elif not tame:
                value += draw(st.sampled_from(["", "", "", "", '"', '"x']))
            fields.append(value)
        text += ",".join(fields) + draw(st.sampled_from(ends))
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    data = text.encode()
    return schema, data + b"\xff" if not tame and draw(st.integers(0, 20)) == 0 else data


@settings(max_examples=examples("FORMAT_EXAMPLES", 200), deadline=None)
@given(csv_cases(), st.booleans(), st.booleans())
@example((relation(COLUMNS["s"]), b'""\n\na'), False, False)
@example((relation(COLUMNS["s"], COLUMNS["i8"]), b'"a\nb",1\r\n"c",2'), False, False)
@example((relation(COLUMNS["s"]), b"\xef\xbb\xbfa\nb\n"), False, True)
@example((relation(COLUMNS["s"]), b"\xef\xbb\xbf\xef\xbb\xbfa\nb\n"), False, False)
@example((relation(COLUMNS["s"]), b"s\n\xef\xbb\xbfa\nb\n"), True, True)
def test_csv(case: tuple[RelationSchema, bytes], headers: bool, prefix: bool) -> None:
    schema, data = case
    assert_both_ways_agree(CsvParser, schema, CsvOptions(headers=headers), data, prefix)


NUMBERS = st.sampled_from(
    [
        "0",
        "-0",
        "1",
        "01",
        "1.0",
        "127",
        "128",
        "1e2",
        "1.5",
        "99.995",
        "999.995",
        "9" * 38,
        "9" * 39,
        "1e400",
        "16777217",
        "3.4028235e38",
        "3.4028235677973362e38",
        "3.4028235677973366e38",
        "3.5e38",
        "NaN",
    ]
)
JSON_VALUES = st.one_of(
    TEXTS.map(json.dumps),
    NUMBERS,
    st.sampled_from(["null", "true", "false", "[]", "{}", '"\\ud800"', '"\\u0000"', '"\\ud83d\\ude00"', '"a\tb"']),
)


@st.composite
def json_cases(draw: st.DrawFn) -> tuple[RelationSchema, JsonOptions, bytes]:
    schema = draw(SCHEMAS)
    update_format = draw(st.sampled_from(["raw", "insert_delete", "weighted", "debezium"]))
    options = JsonOptions(update_format=update_format, array=draw(st.booleans()))
    tame = draw(st.booleans())
    records = []
    for _ in range(draw(st.integers(0, 4))):
        members = []
        for column in schema.columns:
            name = (
                column.name
                if tame
                else draw(st.sampled_from([column.name, column.name, column.name, column.name.upper(), "other", "b"]))
            )
            value = draw(_tame_json(column.name.lower()) if tame else st.one_of(_tame_json(column.name.lower()), JSON_VALUES))
            members.append(f"{json.dumps(name)}: {value}")
        record = "{" + ", ".join(members) + "}"
        records.append(draw(_json_record(update_format, record, tame)))
    glue = draw(st.sampled_from(["\n", "\n", "\r\n", " ", ""]))
    if options.array:
        text = (
            "["
            + ",".join(records)
            + "]"
            + draw(st.sampled_from(["\n", "", "]", ',"records":[]', "} {", "\n[]"] if not tame else ["\n"]))
        )
    else:
        text = glue.join(records) + draw(st.sampled_from(["\n", "", "x"] if not tame else ["\n"]))
    return schema, options, text.encode("utf-8", "surrogatepass")


@st.composite
def _json_record(draw: st.DrawFn, update_format: str, row: str, tame: bool) -> str:
    """A record with a row, which may be broken in every way when it is not tame."""
    row = row if tame else draw(st.sampled_from([row, row, row, row, "null", "[]"]))
    other = draw(st.sampled_from(["null", row])) if tame else draw(st.sampled_from(["null", row, "{}", "1", "[]"]))
    match update_format:
        case "insert_delete":
            action = draw(st.sampled_from(["insert", "insert", "delete"] if tame else ["insert", "delete", "update", "x"]))
            beside = draw(st.sampled_from(["", "", ', "update": null', ', "delete": null', ', "insert": null', ', "x": null']))
            return f'{{"{action}": {row}{beside if not tame else ""}}}'
        case "weighted":
            weights = ["1", "1", "-1", "3", "-2"] if tame else ["1", "-1", "0", "2", "10001", "1.0", "null", "true", '"1"']
            return f'{{"weight": {draw(st.sampled_from(weights))}, "data": {row}}}'
        case "debezium":
            op = draw(st.sampled_from(["c", "r", "u", "d"] if tame else ["c", "u", "d", "x"]))
            before, after = (row, other) if op == "d" else (other, row)
            payload = f'{{"before": {before}, "after": {after}, "op": "{op}"}}'
            if not tame and draw(st.booleans()):
                payload = payload.replace(f'"{op}"', draw(st.sampled_from(["null", "[]", "1", '"c"'])))
            whole = draw(st.sampled_from(["alone", "wrapped"])) if tame else draw(st.sampled_from(["alone", "wrapped", "both"]))
            beside = ', "op": "c", "after": {}' if whole == "both" else ""
            return payload if whole == "alone" else f'{{"payload": {payload}{beside}}}'
        case _:
            return row


def _tame_json(name: str) -> st.SearchStrategy[str]:
    numeric = name in {"i8", "i64", "u8", "u32", "r", "f", "dec", "big", "q", "x"}
    return st.sampled_from(TAME[name]).map(
        lambda text: text if numeric else text.lower() if name == "b" else json.dumps(text, ensure_ascii=False)
    )


@settings(max_examples=examples("FORMAT_EXAMPLES", 200), deadline=None)
@given(json_cases(), st.booleans())
@example((relation(COLUMNS["s"]), JsonOptions(update_format="raw", array=True), b'[{"s":"a"}],"records":[{"s":"b"}]'), False)
@example((relation(COLUMNS["s"]), JsonOptions(update_format="raw", array=True), b'[{"s":"a"}]} {"records":[{"s":"b"}]'), False)
@example((relation(COLUMNS["s"]), JsonOptions(update_format="raw"), b'{"s":"a"}{"s":"b"}\n{"s":\n"c"}'), False)
@example((relation(COLUMNS["s"]), JsonOptions(update_format="raw"), b'{"s":"a","s":"b"}'), False)
@example((relation(COLUMNS["s"]), JsonOptions(update_format="raw"), b'null\n{"s":"a"}'), False)
@example((relation(COLUMNS["s"]), JsonOptions(update_format="raw"), b'\xef\xbb\xbf{"s":"a"}\n{"s":"b"}\n'), True)
@example((relation(COLUMNS["s"]), JsonOptions(update_format="raw"), b'{"s":"a"}\nnull\n{"s":"b"}'), False)
def test_json(case: tuple[RelationSchema, JsonOptions, bytes], prefix: bool) -> None:
    schema, options, data = case
    assert_both_ways_agree(JsonParser, schema, options, data, prefix)


def test_plain_data_is_read_by_column() -> None:
    schema = relation(*(column for name, column in COLUMNS.items() if name != "x"))
    values = {column.name: TAME[column.name.lower()][0] for column in schema.columns}
    line = ",".join(values.values()) + "\n"
    assert assert_both_ways_agree(CsvParser, schema, CsvOptions(), line.encode() * 3, False)
    assert assert_both_ways_agree(CsvParser, schema, CsvOptions(), line.replace("x", '"a, ""\nb"').encode() * 3, False)
    record = (
        "{"
        + ",".join(f'"{n}": {v if n not in {"s", "s3", "d", "t", "ts", "tz", "u"} else json.dumps(v)}' for n, v in values.items())
        + "}"
    )
    insert = f'{{"insert": {record}}}'
    assert assert_both_ways_agree(JsonParser, schema, JsonOptions(update_format="raw"), f"{record}\n{record}".encode(), False)
    assert assert_both_ways_agree(
        JsonParser, schema, JsonOptions(update_format="raw", array=True), f"[{record},{record}]".encode(), False
    )
    assert assert_both_ways_agree(JsonParser, schema, JsonOptions(), f"{insert}\n{insert}".encode(), False)
    assert assert_both_ways_agree(JsonParser, schema, JsonOptions(array=True), f"[{insert},{insert}]".encode(), False)
    mixed = f"{insert}\n{insert.replace('insert', 'delete')}\n{insert}"
    assert assert_both_ways_agree(JsonParser, schema, JsonOptions(), mixed.encode(), False)
    weighted = f'{{"weight": 2, "data": {record}}}\n{{"weight": -1, "data": {record}}}'
    assert assert_both_ways_agree(JsonParser, schema, JsonOptions(update_format="weighted"), weighted.encode(), False)
    payloads = [
        f'{{"op": "c", "before": null, "after": {record}}}',
        f'{{"op": "u", "before": {record}, "after": {record}, "source": {{"lsn": 1}}}}',
        f'{{"op": "d", "before": {record}, "after": null}}',
    ]
    for records in (payloads, [f'{{"payload": {payload}}}' for payload in payloads]):
        data = "\n".join(records).encode()
        assert assert_both_ways_agree(JsonParser, schema, JsonOptions(update_format="debezium"), data, False)

"""Writing a view to a table: upserts and deletes, a log, all types, each step once, and what a table must be like."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import CommitsSteps, ConnectorFailure, OutputTransport, TransientConnectorFailure
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.common_options import OnError
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.opening import open_output
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.engine.storage.fence import Fence, OvertakenError
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats import variant
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.odd_texts import texts
from tests.connectors.relations import col, relation
from tests.connectors.transports.postgresql.sources import PIPELINE
from tests.fixtures.postgresql import Database

pytestmark = pytest.mark.core

TOTALS = relation(col("name", "VARCHAR"), col("total", "BIGINT"), name="totals")
TABLE = "CREATE TABLE totals (name text PRIMARY KEY, total bigint, note text DEFAULT 'new')"


def declared(config: dict[str, Any], index: str | None) -> Connector:
    options = {} if index is None else {"index": index}
    return Connector("totals", "out", ConnectorDirection.OUTPUT, "postgres_output", config, options=options)


def opened(
    database: Database,
    schema: RelationSchema = TOTALS,
    key: Sequence[str] = ("name",),
    *,
    resumed: bool = False,
    fence: Fence | None = None,
    left_out: LeftOutRows | None = None,
    **config: Any,
) -> OutputTransport:
    options = {"uri": database.url, "table": "totals", **config}
    connector = declared(options, "by_key" if key else None)
    output = open_output(connector, schema, NO_REFERENCES, PIPELINE, key=tuple(key), fence=fence, left_out=left_out)
    output.open(resumed)
    return output


def changes(schema: RelationSchema, *rows: tuple[Any, ...], key: Sequence[str] = ("name",)) -> ChangesInMemory:
    """Changes of rows whose last value is a weight."""
    fields = [*schema.arrow, pa.field(WEIGHT, pa.int64())]
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in fields]
    arrays = [
        texts(values) if pa.types.is_string(field.type) else pa.array(list(values), field.type)
        for values, field in zip(columns, fields, strict=True)
    ]
    return ChangesInMemory(pa.table(arrays, names=[field.name for field in fields]), tuple(key))


def step(output: OutputTransport, number: int, *rows: tuple[Any, ...], key: Sequence[str] = ("name",)) -> tuple[int, int]:
    return output.write(number, changes(TOTALS, *rows, key=key))


def contents(database: Database) -> list[tuple[Any, ...]]:
    return database.rows("SELECT name, total FROM totals ORDER BY name")


def test_the_table_equals_the_view_after_each_step(database: Database) -> None:
    database.execute(TABLE)
    output = opened(database)
    records, size = step(output, 1, ("a", 1, 1), ("b", 2, 1), ("c", None, 1))
    assert (records, size > 0) == (3, True)
    assert contents(database) == [("a", 1), ("b", 2), ("c", None)]
    assert step(output, 2, ("a", 1, -1), ("a", 5, 1), ("b", 2, -1), ("d", 4, 1))[0] == 3
    assert contents(database) == [("a", 5), ("c", None), ("d", 4)]
    database.execute("UPDATE totals SET note = 'mine'")
    step(output, 3, ("a", 5, -1), ("a", 6, 1))
    # Columns that the view does not have stay as they are.
    assert database.rows("SELECT DISTINCT note FROM totals") == [("mine",)]
    output.close()


def test_a_step_is_there_with_its_number_or_not_at_all(database: Database) -> None:
    database.execute(TABLE, "ALTER TABLE totals ADD CHECK (total < 100)")
    output = opened(database, left_out=LeftOutRows(["name"], OnError.STOP))
    assert isinstance(output, CommitsSteps)
    assert output.committed_step() is None
    step(output, 7, ("a", 1, 1))
    with pytest.raises(ConnectorFailure, match=r'row \(name = "b"\): .*violates check constraint'):
        step(output, 8, ("a", 1, -1), ("b", 100, 1))
    assert output.committed_step() == 7
    assert contents(database) == [("a", 1)]
    step(output, 9, ("b", 99, 1))
    output.close()
    resumed = opened(database, resumed=True)
    assert isinstance(resumed, CommitsSteps)
    assert resumed.committed_step() == 9
    resumed.close()
    fresh = opened(database)
    assert isinstance(fresh, CommitsSteps)
    assert fresh.committed_step() is None
    fresh.close()


ROWS_WITHOUT_ROOM = {
    "a text that is too long": (
        "CREATE TABLE totals (name varchar(5) PRIMARY KEY, total bigint)",
        ("too long", 1),
        "row (name = \"too long\"): column 'name': value too long for type character varying(5). Make the column wider",
    ),
    "a NUL": (TABLE, ("a\0b", 1), "invalid byte sequence for encoding"),
    "a text that is none": (TABLE, (b"\xff", 1), "invalid byte sequence for encoding"),
    "a check": (
        TABLE.replace("bigint", "bigint CHECK (total < 100)"),
        ("bad", 100),
        "violates check constraint",
    ),
    "a NULL": (TABLE.replace("bigint", "bigint NOT NULL"), ("bad", None), "column 'total': null value in column"),
    "another unique column": (TABLE.replace("bigint", "bigint UNIQUE"), ("bad", 2), "duplicate key value violates unique"),
    "a foreign key": (
        f"CREATE TABLE known (n bigint PRIMARY KEY); INSERT INTO known VALUES (1), (2), (3); "
        f"{TABLE.replace('bigint', 'bigint REFERENCES known DEFERRABLE INITIALLY DEFERRED')}",
        ("bad", 4),
        "violates foreign key constraint",
    ),
    "a partition": (
        "CREATE TABLE totals (name text PRIMARY KEY, total bigint) PARTITION BY RANGE (name); "
        "CREATE TABLE first PARTITION OF totals FOR VALUES FROM ('a') TO ('n')",
        ("zzz", 1),
        'no partition of relation "totals" found for row',
    ),
    "a trigger": (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN IF NEW.total > 50 THEN RAISE EXCEPTION 'too much'; END IF; RETURN NEW; END$$; "
        f"{TABLE}; CREATE TRIGGER refuse BEFORE INSERT ON totals FOR EACH ROW EXECUTE FUNCTION refuse()",
        ("bad", 51),
        "too much",
    ),
    "an index": (TABLE, ("".join(chr(0x4E00 + n * 7 % 20_000) for n in range(9000)), 1), "index row"),
}


@pytest.mark.parametrize("case", ROWS_WITHOUT_ROOM)
def test_a_row_that_does_not_fit_is_left_out_and_listed(case: str, database: Database) -> None:
    statement, bad, reason = ROWS_WITHOUT_ROOM[case]
    database.execute(statement)
    left_out = LeftOutRows(["name"])
    output = opened(database, left_out=left_out)
    step(output, 1, ("b", 2, 1))
    assert step(output, 2, ("a", 1, 1), (*bad, 1), ("c", 3, 1))[0] == 2
    assert contents(database) == [("a", 1), ("b", 2), ("c", 3)]
    (error,), count = left_out.take()
    assert (count, error.tag) == (1, "encode")
    assert reason in error.message
    assert isinstance(output, CommitsSteps)
    assert output.committed_step() == 2
    # It goes as any other row, and its key may come again.
    step(output, 3, (*bad, -1), ("a", 1, -1))
    step(output, 4, ("a", 1, 1))
    assert left_out.take() == ([], 0)
    assert contents(database) == [("a", 1), ("b", 2), ("c", 3)]
    output.close()


def test_the_new_values_of_a_row_that_do_not_fit(database: Database) -> None:
    database.execute(TABLE.replace("bigint", "bigint CHECK (total < 100)"))
    left_out = LeftOutRows(["name"])
    output = opened(database, left_out=left_out)
    step(output, 1, ("a", 1, 1), ("b", 2, 1))
    step(output, 2, ("a", 1, -1), ("a", 100, 1), ("b", 2, -1), ("b", 3, 1))
    # The row of before says what is not so any more.
    assert contents(database) == [("b", 3)]
    assert left_out.take()[1] == 1
    step(output, 3, ("a", 100, -1), ("a", 4, 1))
    assert left_out.take()[1] == 0
    assert contents(database) == [("a", 4), ("b", 3)]
    output.close()


def test_rows_of_a_step_that_need_each_other_beside_one_that_does_not_fit(database: Database) -> None:
    database.execute("CREATE TABLE totals (name text PRIMARY KEY, total text UNIQUE REFERENCES totals CHECK (total < 'x'))")
    schema = relation(col("name", "VARCHAR"), col("total", "VARCHAR"), name="totals")
    left_out = LeftOutRows(["name"])
    output = opened(database, schema, left_out=left_out)
    # Each is about the next one.
    chain = [(f"n{number}", f"n{number + 1}", 1) for number in range(7)]
    output.write(1, changes(schema, *chain, ("n7", None, 1), ("bad", "x", 1)))
    assert [error.message.partition(":")[0] for error in left_out.take()[0]] == ['row (name = "bad")']
    assert database.rows("SELECT count(*) FROM totals") == [(8,)]
    # A unique value goes from one row to another that is before it.
    output.write(2, changes(schema, ("n0", "n1", -1), ("a", "n1", 1), ("bad", "x", -1), ("bad", "y", 1)))
    assert left_out.take()[1] == 1
    assert database.rows("SELECT name FROM totals WHERE total = 'n1'") == [("a",)]
    # A row that others need does not go.
    output.write(3, changes(schema, ("n7", None, -1), ("b", None, 1)))
    ((error,), _) = left_out.take()
    assert error.message.startswith('a row that goes (name = "n7"): ')
    assert "violates foreign key constraint" in error.message
    assert database.rows("SELECT name FROM totals WHERE total IS NULL ORDER BY 1") == [("b",), ("n7",)]
    output.close()


def test_changes_that_do_not_fit_into_a_log(database: Database) -> None:
    database.execute("CREATE TABLE totals (__ts bigint, name varchar(5), total int8 CHECK (total < 100), __op char(1), id serial)")
    left_out = LeftOutRows()
    output = opened(database, mode="cdc", left_out=left_out)
    step(output, 1, ("a", 1, 1), ("much too long", 1, 1), ("z", 2, 1))
    step(output, 2, ("a", 1, -1), ("a", 100, 1), ("b", 1, 1), ("much too long", 1, -1))
    log = database.rows("SELECT __ts, __op, name, total FROM totals ORDER BY id")
    assert log == [(1, "i", "a", 1), (1, "i", "z", 2), (2, "d", "a", 1), (2, "i", "b", 1)]
    assert [error.message.partition(":")[0] for error in left_out.take()[0]] == [
        'row (name = "much too long", total = 1)',
        'row (name = "a", total = 100)',
        'a row that goes (name = "much too long", total = 1)',
    ]
    output.close()


@pytest.mark.rest
def test_many_rows_that_do_not_fit(database: Database) -> None:
    database.execute(TABLE.replace("bigint", "bigint CHECK (total % 20 <> 0)"))
    left_out = LeftOutRows(["name"])
    output = opened(database, left_out=left_out)
    assert step(output, 1, *((f"n{number}", number, 1) for number in range(400)))[0] == 380
    errors, count = left_out.take()
    assert (count, len(errors)) == (20, 20)
    assert database.rows("SELECT count(*), count(*) FILTER (WHERE total % 20 = 0) FROM totals") == [(380, 0)]
    output.close()


def test_what_concerns_the_whole_table_ends_the_output(database: Database) -> None:
    database.execute(TABLE)
    left_out = LeftOutRows(["name"])
    output = opened(database, left_out=left_out)
    database.execute("DROP TABLE totals")
    with pytest.raises(ConnectorFailure, match=r"relation .public\.totals. does not exist"):
        step(output, 1, ("a", 1, 1))
    assert left_out.take() == ([], 0)
    output.close()


def test_a_lost_connection_loses_no_half_of_a_step(database: Database) -> None:
    database.execute(TABLE)
    output = opened(database)
    terminate = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    database.execute(terminate)
    with pytest.raises(TransientConnectorFailure, match="cannot write step 1"):
        step(output, 1, ("a", 1, 1))
    output.close()
    assert contents(database) == []
    again = opened(database, resumed=True)
    step(again, 1, ("a", 1, 1))
    again.close()
    assert contents(database) == [("a", 1)]


def test_closing_ends_a_step_that_waits_for_others(database: Database) -> None:
    database.execute(TABLE, "INSERT INTO totals VALUES ('a', 0)")
    output = opened(database)
    failures: list[BaseException] = []

    def write() -> None:
        try:
            step(output, 1, ("a", 1, 1))
        except ConnectorFailure as error:
            failures.append(error)

    with psycopg.connect(database.url) as blocking:
        blocking.execute("UPDATE totals SET total = 7")
        writer = threading.Thread(target=write)
        writer.start()
        deadline = time.monotonic() + 20
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        while not database.rows(waits):
            assert time.monotonic() < deadline
        output.close()
        writer.join(10)
        assert not writer.is_alive()
    assert isinstance(failures[0], TransientConnectorFailure)
    output.close()
    assert contents(database) == [("a", 7)]


def test_a_later_run_ends_an_earlier_one(database: Database, tmp_path: Path) -> None:
    database.execute(TABLE)
    first_epoch = Fence.take(tmp_path, lambda: 0)
    first = opened(database, fence=first_epoch)
    step(first, 1, ("a", 1, 1))
    second = opened(database, fence=Fence.take(tmp_path, lambda: 0), resumed=True)
    with pytest.raises(OvertakenError):
        step(first, 2, ("a", 1, -1))
    step(second, 2, ("b", 1, 1))
    # Where the storage does not tell, the database does.
    blind = opened(database, fence=_Blind(first_epoch.epoch), resumed=True)  # type: ignore[arg-type]
    with pytest.raises(ConnectorFailure, match="a later run of the pipeline writes totals"):
        step(blind, 3, ("c", 1, 1))
    assert contents(database) == [("a", 1), ("b", 1)]
    for output in (first, second, blind):
        output.close()


class _Blind:
    """An epoch of a run that does not notice others."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def check(self) -> None:
        """Nothing is noticed."""


def test_two_outputs_count_for_themselves(database: Database) -> None:
    database.execute(TABLE, "CREATE TABLE other (name text PRIMARY KEY, total bigint)")
    one = opened(database)
    config = {"uri": database.url, "table": "other"}
    connector = Connector("totals", "second", ConnectorDirection.OUTPUT, "postgres_output", config, options={"index": "by_key"})
    other = open_output(connector, TOTALS, NO_REFERENCES, PIPELINE, key=("name",))
    other.open(False)
    step(one, 5, ("a", 1, 1))
    assert isinstance(other, CommitsSteps)
    assert other.committed_step() is None
    one.close()
    other.close()


def test_a_log_of_changes(database: Database) -> None:
    database.execute("CREATE TABLE totals (at bigint, name text, total int8, op char(1), id serial)")
    output = opened(database, mode="cdc", cdc_op_column="op", cdc_ts_column="at")
    step(output, 3, ("a", 1, 1), ("b", 2, 1))
    step(output, 4, ("a", 1, -1), ("a", 5, 1), ("b", 2, -1))
    log = database.rows("SELECT at, op, name, total FROM totals ORDER BY id")
    assert log == [(3, "i", "a", 1), (3, "i", "b", 2), (4, "u", "a", 5), (4, "d", "b", 2)]
    output.close()
    # Without an index nobody can say what belongs together.
    plain = opened(database, key=(), mode="cdc", cdc_op_column="op", cdc_ts_column="at", resumed=True)
    step(plain, 5, ("a", 5, -1), ("a", 6, 1), ("a", 6, 1), key=())
    assert database.rows("SELECT op, total FROM totals WHERE at = 5 ORDER BY id") == [("d", 5), ("i", 6), ("i", 6)]
    plain.close()


def test_a_new_row_may_leave_one_alone_that_is_there(database: Database) -> None:
    database.execute(TABLE, "INSERT INTO totals VALUES ('a', 100, 'theirs')")
    output = opened(database, on_conflict_do_nothing=True)
    step(output, 1, ("a", 1, 1), ("b", 2, 1))
    assert contents(database) == [("a", 100), ("b", 2)]
    step(output, 2, ("b", 2, -1), ("b", 3, 1), ("a", 1, -1))
    assert contents(database) == [("b", 3)]
    output.close()


def test_rows_that_the_index_does_not_tell_apart(database: Database) -> None:
    database.execute(TABLE)
    output = opened(database)
    with pytest.raises(
        ConnectorFailure, match=r"more than one row with the same values of \(name\), the columns of index 'by_key'"
    ):
        step(output, 1, ("a", 1, 1), ("a", 2, 1))
    assert contents(database) == []
    # Where one is left of several, it is the one.
    step(output, 2, ("a", 1, -1), ("a", 2, -1), ("a", 3, 1))
    assert contents(database) == [("a", 3)]
    output.close()


def test_large_steps(database: Database) -> None:
    database.execute(TABLE)
    output = opened(database)
    step(output, 1, *((f"n{number}", number, 1) for number in range(25_000)))
    step(output, 2, *((f"n{number}", number, -1) for number in range(25_000)), *((f"n{n}", -n, 1) for n in range(12_500)))
    assert database.rows("SELECT count(*), sum(total), count(DISTINCT name) FROM totals") == [(12_500, -78_118_750, 12_500)]
    output.close()


ALL = relation(
    col("k", "INTEGER", null=False),
    col("b", "BOOLEAN"),
    col("r", "REAL"),
    col("f", "DOUBLE"),
    col("dec", "DECIMAL", precision=12, scale=8),
    col("u64", "UBIGINT"),
    col("s", "VARCHAR"),
    col("c", "CHAR", precision=3),
    col("d", "DATE"),
    col("t", "TIME"),
    col("ts", "TIMESTAMP"),
    col("tz", "TIMESTAMP_TZ"),
    col("u", "UUID"),
    col("bin", "VARBINARY"),
    col("arr", "ARRAY", component=ColumnType("VARCHAR")),
    col("matrix", "ARRAY", component=ColumnType("ARRAY", component=ColumnType("INTEGER"))),
    col("m", "MAP", key=ColumnType("VARCHAR", False), value=ColumnType("INTEGER")),
    col("st", "STRUCT", fields=(("x", ColumnType("INTEGER")),)),
    col("v", "VARIANT"),
    name="totals",
)
ALL_TABLE = """CREATE TABLE totals (k int PRIMARY KEY, b bool, r float4, f float8, dec numeric,
    u64 numeric(20), s text, c text, d date,
    t time, ts timestamp, tz timestamptz, u uuid, bin bytea, arr text[], matrix jsonb, m jsonb, st json, v jsonb)"""


def test_values_of_all_types(database: Database) -> None:
    database.execute(ALL_TABLE)
    moment = dt.datetime(2024, 2, 29, 1, 2, 3, 45)
    odd = 'tab\t back\\slash\r\nline "é" \\N {},'
    row = {
        "k": 1,
        "b": True,
        "r": 0.1,
        "f": 1e300,
        "dec": Decimal("0.00000001"),
        "u64": Decimal(2**64 - 1),
        "s": odd,
        "c": "a  ",
        "d": dt.date(2024, 2, 29),
        "t": dt.time(1, 2, 3, 45),
        "ts": moment,
        "tz": moment.replace(tzinfo=dt.UTC),
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "bin": b"\x00\\\xff",
        "arr": ["a", None, "NULL", odd, ""],
        "matrix": [[1, None], []],
        "m": [("k", 1)],
        "st": {"x": 1},
        "v": variant.encode({"a": [1, None, "x"]}),
    }
    empty = {**dict.fromkeys(row), "k": 2}
    output = opened(database, ALL, ("k",))
    rows = [(*each.values(), 1) for each in (row, empty)]
    output.write(1, changes(ALL, *rows, key=("k",)))
    output.close()
    found, nulls = database.rows("SELECT * FROM totals ORDER BY k")
    shown = dict(zip(row, found, strict=True))
    assert str(shown.pop("u")) == row.pop("u")
    assert shown.pop("m") == {"k": 1}
    assert shown.pop("v") == {"a": [1, None, "x"]}
    assert {**shown, "r": round(shown["r"], 6)} == {name: value for name, value in row.items() if name in shown}
    assert nulls == (2, *[None] * (len(nulls) - 1))


NO_TABLE = [
    ("SELECT 1", "there is no table totals. Make it with CREATE TABLE"),
    ("CREATE VIEW totals AS SELECT 'a' AS name, 1::int8 AS total", "totals is not a table"),
    ("CREATE TABLE totals (name text PRIMARY KEY)", "has no column 'total'; its columns: name. Add it"),
    (
        "CREATE TABLE totals (name text PRIMARY KEY, total int)",
        "column 'total' of table public.totals is integer, which does not take BIGINT",
    ),
    ("CREATE TABLE totals (name text PRIMARY KEY, total bool)", "is boolean, which does not take BIGINT"),
    ("CREATE TABLE totals (name text, total bigint)", 'has no primary key or unique constraint on ("name")'),
    (
        "CREATE TABLE totals (name text UNIQUE, total bigint)",
        "column 'name' of table public.totals is part of the key and may be NULL",
    ),
    (
        "CREATE TABLE totals (name text PRIMARY KEY, total bigint, x int NOT NULL)",
        "column 'x' of table public.totals is NOT NULL without",
    ),
    ("CREATE TABLE totals (name text PRIMARY KEY, total bigint GENERATED ALWAYS AS (1) STORED)", "is generated by the server"),
]


def test_tables_that_cannot_take_the_view(database: Database) -> None:
    for statement, reason in NO_TABLE:
        database.execute(statement)
        with pytest.raises(ConnectorFailure) as failure:
            opened(database)
        assert reason in str(failure.value)
        assert database.url not in str(failure.value)
        database.execute("DROP VIEW IF EXISTS totals" if "VIEW" in statement else "DROP TABLE IF EXISTS totals")
    database.execute("CREATE TABLE totals (name text, total bigint)")
    with pytest.raises(
        ConnectorFailure, match=r"has no column '__op', which mode 'cdc' writes. Add it: ALTER TABLE \"public\".\"totals\""
    ):
        opened(database, mode="cdc")


def test_a_user_who_may_not_make_tables_is_told_which_one(database: Database) -> None:
    role = f"writer_{database.name}"
    database.execute(TABLE, f"CREATE ROLE {role} LOGIN", f"GRANT ALL ON totals TO {role}")
    url = database.url.replace("pipelines@", f"{role}@")
    with pytest.raises(ConnectorFailure) as failure:
        opened(database, uri=url)
    statement = str(failure.value).split("do it: ")[1].split("; and GRANT")[0]
    database.execute(statement, f"GRANT SELECT, INSERT, UPDATE, DELETE ON airflow_pipelines_steps TO {role}")
    output = opened(database, uri=url)
    step(output, 1, ("a", 1, 1))
    output.close()
    assert contents(database) == [("a", 1)]
    database.execute(f"REASSIGN OWNED BY {role} TO pipelines", f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_names_in_other_schemas_and_cases(database: Database) -> None:
    database.execute('CREATE SCHEMA "Sales"', 'CREATE TABLE "Sales"."Totals" ("Name" text PRIMARY KEY, "TOTAL" bigint)')
    output = opened(database, table='"Sales"."Totals"')
    step(output, 1, ("a", 1, 1))
    output.close()
    assert database.rows('SELECT * FROM "Sales"."Totals"') == [("a", 1)]
    assert database.rows('SELECT step FROM "Sales".airflow_pipelines_steps') == [(1,)]
    with pytest.raises(ConnectorFailure, match=r"is not the name of a table: write table or schema.table"):
        opened(database, table="a.b.c")


def test_wrong_credentials_are_not_shown(database: Database, password_user: str) -> None:
    with pytest.raises(ConnectorFailure, match="password authentication failed") as failure:
        opened(database, uri=f"postgresql://{password_user}:s3cret@127.0.0.1:{database.server.port}/{database.name}")
    assert "s3cret" not in str(failure.value)
    assert not isinstance(failure.value, TransientConnectorFailure)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(f"postgresql://{password_user}:s3cret@127.0.0.1:{database.server.port}/{database.name}")


def test_a_table_that_is_to_equal_the_view_needs_an_index() -> None:
    config = {"uri": "postgresql://x/y", "table": "totals"}
    with pytest.raises(InvalidOptionError, match=r"needs an index.*CREATE INDEX name ON totals\(columns\)"):
        validate(declared(config, None), TOTALS)
    validate(declared({**config, "mode": "cdc"}, None), TOTALS)
    with pytest.raises(InvalidOptionError, match="on_conflict_do_nothing is for mode 'materialized'"):
        validate(declared({**config, "mode": "cdc", "on_conflict_do_nothing": True}, None), TOTALS)

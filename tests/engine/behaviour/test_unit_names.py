"""A column that is called like a unit of time is a column in every function that takes a unit."""

from __future__ import annotations

import datetime

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.programs import Running

UNITS = (
    "microsecond", "millisecond", "second", "minute", "hour", "day", "dayofyear", "week", "month", "quarter", "year", "decade",
    "century", "millennium", "isoweek", "epoch", "mon", "dd",
)  # fmt: skip
CALLS = (
    "date_trunc('month', {x})", "date_trunc('HOUR', {x})", "date_trunc('mon', {x})", "date_trunc({x}, month)",
    "timestamp_trunc({x}, month)", "trunc({x}, 'year')", "extract(year from {x})", "date_part('month', {x})",
    "timestampadd(day, 1, {x})", "timestampdiff(day, {x}, timestamp '2027-01-01 00:00:00')", "dateadd(day, 1, {x})",
    "datediff({x}, {x})", "datediff(day, {x}, {x})", "date_add({x}, 1)", "date_sub({x}, 1)", "add_months({x}, 1)",
    "months_between({x}, {x})", "next_day({x}, 'MON')", "last_day({x})", "floor({x} to month)", "ceil({x} to year)",
    "{x} + interval 1 day", "{x} - interval '1' month", "year({x})", "month({x})", "dayofweek({x})", "hour({x})", "weekofyear({x})",
)  # fmt: skip
AT = datetime.datetime(2026, 11, 26, 13, 45, 56, 123456)


def test_columns_called_like_units_are_columns(sessions: SparkSessions) -> None:
    columns = ", ".join(f"{name} timestamp" for name in ("x", *UNITS))
    views = {
        unit: ", ".join(
            f"{call.format(x='x')} as e{number}, {call.format(x=unit)} as f{number}" for number, call in enumerate(CALLS)
        )
        for unit in UNITS
    }
    program = f"create table t ({columns}) with ('materialized' = 'true');\n" + "".join(
        f"create materialized view v_{unit} as select {items} from t;\n" for unit, items in views.items()
    )
    running = Running(program, sessions)
    running.insert("t", [AT] * (1 + len(UNITS)))
    for unit in UNITS:
        [row] = running.rows(f"v_{unit}")
        assert {call: row[2 * at + 1] for at, call in enumerate(CALLS)} == {call: row[2 * at] for at, call in enumerate(CALLS)}, (
            unit
        )
        assert None not in row
    running.circuit.close()

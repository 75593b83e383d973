"""The average of decimals over a sum and a count is what Spark's AVG gives, digit for digit."""

from __future__ import annotations

import random
from decimal import Decimal

from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.sql.plan.blocks.decimal_average import decimal_average, is_exact

KINDS = [(1, 0), (2, 1), (5, 2), (11, 0), (11, 2), (6, 6), (12, 2), (15, 2), (18, 6), (27, 4), (32, 0), (33, 1), (33, 6)]
COUNTS = [1, 2, 3, 7, 16, 64, 320]


def _values(draw: random.Random, precision: int, scale: int, count: int) -> list[Decimal]:
    """Values whose average lies on or beside the middle of two decimals, or anywhere."""
    # The sum of Spark's average has 38 digits, too.
    most = 10 ** min(precision, 35) - 1
    near = draw.randrange(-most, most)
    return [Decimal(max(-most, min(most, near + draw.choice([-1, 0, 0, 1])))).scaleb(-scale) for _ in range(count)]


def test_every_kind_of_decimal_has_sparks_average(sessions: SparkSessions) -> None:
    draw = random.Random(11)
    for precision, scale in KINDS:
        assert is_exact(precision, scale)
        groups = [_values(draw, precision, scale, count) for count in COUNTS for _ in range(4)]
        rows = ", ".join(f"({number}, {value:f})" for number, group in enumerate(groups) for value in group)
        sums = f"CAST(SUM(x) AS DECIMAL(38,{scale})) AS t, COUNT(x) AS n, AVG(x) AS spark"
        given = f"SELECT g, CAST(x AS DECIMAL({precision},{scale})) AS x FROM VALUES {rows} AS v (g, x)"
        answer = decimal_average("t", "n", precision, scale)
        frame = sessions.small.sql(f"SELECT spark, {answer} AS ours FROM (SELECT {sums} FROM ({given}) GROUP BY g)")
        assert frame.schema["spark"].dataType == frame.schema["ours"].dataType
        assert [(row.spark, precision, scale) for row in frame.collect() if row.spark != row.ours] == []

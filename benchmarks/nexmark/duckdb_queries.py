"""The Nexmark queries in DuckDB's SQL: over tables, with windows of time written out."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot

from benchmarks.nexmark.queries import Query

_TEN = "INTERVAL '10 seconds'"
_REWRITTEN: Mapping[str, str] = {
    "q5": """
        WITH counts AS (
            SELECT auction, COUNT(*) AS num, starttime
            FROM (
                SELECT auction, time_bucket(INTERVAL '2 seconds', date_time) - shift * INTERVAL '2 seconds' AS starttime
                FROM bid CROSS JOIN range(5) AS shifts(shift)
            )
            GROUP BY auction, starttime
        )
        SELECT counts.auction, counts.num
        FROM counts JOIN (SELECT MAX(num) AS maxn, starttime FROM counts GROUP BY starttime) AS most
        ON counts.starttime = most.starttime AND counts.num >= most.maxn
        """,
    "q7": f"""
        SELECT b.auction, b.bidder, b.price, b.date_time, b.extra
        FROM bid AS b
        JOIN (
            SELECT MAX(price) AS maxprice, time_bucket({_TEN}, date_time) + {_TEN} AS endtime
            FROM bid GROUP BY time_bucket({_TEN}, date_time)
        ) AS m
        ON b.price = m.maxprice
        WHERE b.date_time BETWEEN m.endtime - {_TEN} AND m.endtime
        """,
    "q8": f"""
        SELECT p.id, p.name, p.starttime
        FROM (SELECT DISTINCT id, name, time_bucket({_TEN}, date_time) AS starttime FROM person) AS p
        JOIN (SELECT DISTINCT seller, time_bucket({_TEN}, date_time) AS starttime FROM auction) AS a
        ON p.id = a.seller AND p.starttime = a.starttime
        """,
    "q11": f"""
        SELECT bidder, COUNT(*) AS bid_count, MIN(date_time) AS starttime, MAX(date_time) + {_TEN} AS endtime
        FROM (
            SELECT *, SUM(first) OVER (PARTITION BY bidder ORDER BY date_time RANGE UNBOUNDED PRECEDING) AS number
            FROM (
                SELECT bidder, date_time,
                    CASE WHEN date_time - LAG(date_time) OVER (PARTITION BY bidder ORDER BY date_time) <= {_TEN} THEN 0 ELSE 1 END
                    AS first
                FROM bid
            )
        )
        GROUP BY bidder, number
        """,
    "q12": f"""
        SELECT bidder, COUNT(*) AS bid_count, time_bucket({_TEN}, date_time) AS starttime,
            time_bucket({_TEN}, date_time) + {_TEN} AS endtime
        FROM bid GROUP BY bidder, time_bucket({_TEN}, date_time)
        """,
}
"""Queries by windows of time, which Spark has functions for."""


def in_duckdb(query: Query) -> str:
    """Return a query in DuckDB's SQL.

    :param query: the query, in Spark's SQL
    """
    return _REWRITTEN.get(query.name) or sqlglot.transpile(query.text, read="spark", write="duckdb")[0]

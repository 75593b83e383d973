"""The pipelines of a soak: their programs, and the actions on each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_pipelines.sdk.runtime_config import RuntimeConfig

CUSTOMERS = 40
"""The number of rows of the table with which ``t`` is joined."""

_TABLE = "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, customer BIGINT, v BIGINT) WITH ('materialized' = 'true');"
_JOINED = (
    "CREATE TABLE customers (id BIGINT NOT NULL PRIMARY KEY, region VARCHAR) WITH ('materialized' = 'true');"
    "CREATE FUNCTION discounted(v BIGINT) RETURNS BIGINT;"
)
_PYTHON = "def discounted(v):\n    return None if v is None else v * 9 // 10 + 0 * {variant}\n"


@dataclass(frozen=True, slots=True)
class Workload:
    """One pipeline: its tables and views, and the possible actions on it.

    ``views``: name and query of each materialized view; ``emitting``: further statements, with ``{variant}`` if programs differ.
    ``listened``: the view that a listener follows. ``python``: the module of its functions.
    ``output``: the file that gets ``id, v`` of all rows; ``lines``: the file that feeds table ``lines``.
    ``copies``: True if checkpoints are copied to a bucket; ``changes``: True if the program is changed now and then.
    """

    name: str
    tables: str
    views: Mapping[str, str]
    runtime_config: Mapping[str, Any]
    listened: str
    emitting: str = ""
    python: str = ""
    output: Path | None = None
    lines: Path | None = None
    copies: bool = False
    changes: bool = False
    joined: bool = False

    def program(self, variant: int) -> str:
        """Return the program; another variant differs in one view."""
        views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in self.views.items())
        changed = f"CREATE MATERIALIZED VIEW changed AS {self.changed(variant)};"
        return self.tables + views + self.emitting + changed

    def changed(self, variant: int) -> str:
        """Return the query of the view in which programs differ."""
        return f"SELECT id + {variant} AS x FROM t WHERE id % 5 = 0"

    def udf_python(self, variant: int) -> str:
        """Return the Python module of a variant of the program; empty if it has no functions."""
        return self.python.format(variant=variant) if self.python else ""

    def config(self) -> RuntimeConfig:
        """Return the runtime configuration of the pipeline."""
        return RuntimeConfig.from_dict({"storage": True, **self.runtime_config})


def difference(view: str, query: str) -> str:
    """Return a query for the rows in which a view differs from its query over the tables, all of one step."""
    return (
        f"(SELECT * FROM {view} EXCEPT ALL SELECT * FROM ({query}) wanted) UNION ALL "
        f"(SELECT * FROM ({query}) wanted EXCEPT ALL SELECT * FROM {view})"
    )


def workloads(folder: Path) -> list[Workload]:
    """Return the three pipelines that run all the time. Their files are in ``folder``."""
    return [_shop(folder), _meters(folder), _clock()]


def _shop(folder: Path) -> Workload:
    """Return a pipeline with joins, a window and a Python function over upserts and deletes; its program changes."""
    output = folder / "shop.csv"
    connectors = _connector("out", "file_output", str(output))
    sync = {"bucket": f"file://{folder / 'bucket'}"}
    return Workload(
        name="shop",
        tables=_TABLE + _JOINED,
        views={
            "totals": "SELECT COUNT(*) AS n, SUM(v) AS total FROM t",
            "regions": "SELECT c.region, COUNT(*) AS n, SUM(t.v) AS total, MAX(t.v) AS greatest "
            "FROM t JOIN customers c ON t.customer = c.id GROUP BY c.region",
            "ranks": "SELECT id, v, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY v DESC, id) AS place FROM t",
            "cheaper": "SELECT id, discounted(v) AS v FROM t WHERE id % 3 = 0",
        },
        emitting=f"CREATE VIEW written WITH ('connectors' = '{connectors}') AS SELECT id, v FROM t;",
        python=_PYTHON,
        runtime_config={
            "fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": 10},
            "storage": {"backend": {"name": "file", "config": {"sync": sync}}},
        },
        listened="regions",
        output=output,
        copies=True,
        changes=True,
        joined=True,
    )


def _meters(folder: Path) -> Workload:
    """Return a pipeline with sets, outer and semi joins, first rows, and a table without a key that a followed file feeds."""
    lines = folder / "lines.csv"
    connectors = _connector("lines", "file_input", str(lines), follow=True)
    return Workload(
        name="meters",
        tables=_TABLE
        + "CREATE TABLE lines (a BIGINT, b BIGINT) WITH ("
        + f"'materialized' = 'true', 'connectors' = '{connectors}');",
        views={
            "highest": "SELECT customer, MAX(v) AS most, MIN(v) AS least, COUNT(DISTINCT v % 100) AS kinds "
            "FROM t GROUP BY customer",
            "lonely": "SELECT t.id, lines.a FROM t LEFT JOIN lines ON t.id = lines.b",
            "seen": "SELECT DISTINCT b FROM lines",
            "known": "SELECT id FROM t WHERE id IN (SELECT b FROM lines)",
            "first": "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 10",
            "either": "SELECT customer AS x FROM t UNION SELECT b FROM lines",
        },
        runtime_config={"fault_tolerance": {"model": "at_least_once", "checkpoint_interval_secs": 5}},
        listened="highest",
        lines=lines,
        changes=True,
    )


def _clock() -> Workload:
    """Return a pipeline that depends on time: a view with the current time, and windows of rows that come in roughly in order."""
    return Workload(
        name="clock",
        tables=_TABLE
        + "CREATE TABLE ticks (at TIMESTAMP NOT NULL LATENESS INTERVAL 10 SECONDS, v BIGINT) WITH ('append_only' = 'true');",
        views={"sums": "SELECT customer, SUM(v) AS total, AVG(v) AS average FROM t GROUP BY customer HAVING COUNT(*) > 1"},
        emitting=(
            "CREATE VIEW recent AS SELECT v FROM ticks WHERE at >= NOW() - INTERVAL 30 SECONDS;"
            "CREATE VIEW spans WITH ('emit_final' = 'span') AS SELECT DATE_TRUNC('SECOND', at) AS span, COUNT(*) AS n, "
            "SUM(v) AS total FROM ticks GROUP BY DATE_TRUNC('SECOND', at);"
        ),
        runtime_config={"fault_tolerance": {"model": "none"}},
        listened="sums",
    )


def _connector(name: str, transport: str, path: str, **options: Any) -> str:
    config = {"path": path, **options}
    return json.dumps([{"name": name, "transport": {"name": transport, "config": config}, "format": {"name": "csv"}}])

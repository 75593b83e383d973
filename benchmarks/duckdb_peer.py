"""DuckDB in the process, with tables in its memory: what recomputing a query costs with a fast engine of a single machine.

A query is computed to its last row and the result is thrown away, which is the least that recomputing can cost.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.measure import median_seconds

MEMORY = "8GB"
_ROWS_AT_A_TIME = 100_000


@dataclass(frozen=True)
class DuckDb:
    """A database in memory. It uses all cores.

    :param connection: DuckDB's
    """

    connection: Any

    @classmethod
    def open(cls) -> Self:
        """Open an empty database.

        :raises ModuleNotFoundError: if DuckDB is not installed; the extra ``bench`` has it
        """
        import duckdb

        return cls(duckdb.connect(":memory:", config={"memory_limit": MEMORY}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.connection.close()

    def load(self, table: str, files: list[Path]) -> None:
        """Read Parquet files into a table, which is made anew.

        :param table: its name
        :param files: with the same columns
        """
        names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
        self.connection.execute(f'CREATE OR REPLACE TABLE "{table}" AS SELECT * FROM read_parquet([{names}])')

    def seconds(self, query: str, repeats: int) -> float:
        """Measure the median time in which a query is computed, in seconds.

        :param query: the query, in DuckDB's SQL
        :param repeats: the number of runs; one more before these does not count
        """
        self._run(query)
        return median_seconds(lambda _: self._run(query), repeats)

    def answer(self, query: str) -> Any:
        """Return the rows of a query, as an Arrow table.

        :param query: the query, in DuckDB's SQL
        """
        return self.connection.sql(query).to_arrow_table()

    def _run(self, query: str) -> None:
        for _ in self.connection.sql(query).to_arrow_reader(_ROWS_AT_A_TIME):
            pass


def even_at(recomputing: Mapping[int, float], steps: Mapping[int, float]) -> float | None:
    """From which size of the input on a step is cheaper than recomputing.

    Between two measured sizes both times are taken to grow in proportion to the size, and so above the largest one. Nothing is
    concluded below the smallest one: when a step is cheaper there, that size is the answer.

    :param recomputing: seconds by the size of the input, at least two sizes
    :param steps: seconds of a step at the same sizes
    :return: None when recomputing does not come closer to a step as the input grows
    """
    saved = [(size, recomputing[size] - steps[size]) for size in sorted(recomputing)]
    smallest, at_smallest = saved[0]
    if at_smallest >= 0:
        return float(smallest)
    pairs = list(itertools.pairwise(saved))
    (lower, before), (upper, after) = next((pair for pair in pairs if pair[1][1] >= 0), pairs[-1])
    if after <= before:
        return None
    return lower - before * (upper - lower) / (after - before)

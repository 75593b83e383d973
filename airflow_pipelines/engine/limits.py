"""The sizes by which the engine decides where to compute and when to merge. They change only the work, never the result."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """The limits at which the batches of a trace are merged.

    :param memory_batches: the number of batches in memory above which a trace is worth merging
    :param file_batches: the number of batches in files above which a trace is worth merging
    :param hard_limit: the number of batches above which a trace is merged before the next step, idle or not
    :param bundled_rows: the maximum number of rows of the newest batches in memory that are read as one bundle
    :param retention_rows: the number of rows that a trace must have beyond twice what the last retention left, before it is
        searched again
    """

    memory_batches: int = 8
    file_batches: int = 8
    hard_limit: int = 24
    bundled_rows: int = 10_000
    retention_rows: int = 10_000


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """The limits of plans that are kept and run again in the driver.

    :param queries: the maximum number of plans in the cache, least recently used out first (0: every query is planned for each
        run) ...
    :param bytes: ... and the maximum number of bytes of all their leaves together
    :param leaf_bytes: the maximum number of bytes of batches that are worth copying for each query
    :param piece_bytes: the number of bytes of rows that a task reads at a time
    :param compiled_rows: the number of rows above which a query is compiled
    """

    queries: int = 300
    bytes: int = 128 << 20
    leaf_bytes: int = 16 << 20
    piece_bytes: int = 4 << 20
    compiled_rows: int = 4_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes that count as small, few and many.

    :param tiny: the maximum number of rows that are shown to Spark as they are; of more rows, only the relevant ones are looked up
        first
    :param small_rows: the maximum number of rows of a small batch, which lives in the driver's memory ...
    :param small_bytes: ... unless it takes more bytes than this
    :param held_bytes: the maximum number of bytes of a batch that is not small but lives in the driver's memory if there is room
        (see :mod:`airflow_pipelines.engine.held_memory`); a larger one goes to files, of which Spark reads only the columns that a
        query needs
    :param small_input: the maximum number of input rows, all in memory, of an operator that runs in one task and returns its result
        to the driver ...
    :param fan_out: ... unless its result has more rows than this: then it is run again and writes files
    :param driver_rows: the maximum number of rows that the driver joins, evaluates or keeps of groups, by Arrow and by plans of its
        own ...
    :param driver_bytes: ... and the maximum number of bytes that they take
    :param read_rows: the maximum number of rows that the driver reads to add them up
    :param indexed_rows: the maximum number of rows over which a query builds an index; an existing index over more rows is used
    :param merged_on_read: the maximum number of rows in batches with deletions, for a relation to be merged on read
    :param few_losses: the maximum number of lost rows for which a recursion is maintained incrementally, however few rows it has
    :param stream_elements: the number of elements of a step below which operators of a stream program run in the program's process
        and not in Spark tasks
    :param merges: the limits at which batches are merged
    :param plans: the limits of plans that are kept
    """

    tiny: int = 5_000
    small_rows: int = 50_000
    small_bytes: int = 64 << 20
    held_bytes: int = 64 << 20
    small_input: int = 100_000
    fan_out: int = 200_000
    driver_rows: int = 2_000_000
    driver_bytes: int = 256 << 20
    read_rows: int = 5_000_000
    indexed_rows: int = 500_000
    merged_on_read: int = 1_000_000
    few_losses: int = 1_000
    stream_elements: int = 2_000_000
    merges: MergeLimits = field(default_factory=MergeLimits)
    plans: PlanLimits = field(default_factory=PlanLimits)

    def most_groups(self, row_bytes: int) -> int:
        """Return the maximum number of groups that the driver keeps, given the size of one group in bytes."""
        return min(self.driver_rows, self.driver_bytes // max(1, row_bytes))


DEFAULT_LIMITS = Limits()
"""The limits of a pipeline."""

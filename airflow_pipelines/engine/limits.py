"""The sizes by which the engine decides how to evaluate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes that count as small, few and many. They change only the work, never the result.

    :param small_rows: the maximum number of rows of a small batch, which lives in the driver's memory ...
    :param small_bytes: ... unless it takes more bytes than this
    :param held_bytes: the maximum number of bytes of a batch that is not small but lives in the driver's memory if there is room
        (see :mod:`airflow_pipelines.engine.held_memory`); a larger one goes to files, of which Spark reads only the columns that a
        query needs
    :param small_input: the maximum number of input rows, all in memory, of an operator that runs in one task and returns its result
        to the driver ...
    :param fan_out: ... unless its result has more rows than this: then it is run again and writes files
    :param tiny: the maximum number of rows that are shown to Spark as they are; of more rows, only the relevant ones are looked up
        first
    :param most: the share of an operator's input rows; a step that changes more of them counts as changing all of them
    :param joined_rows: the maximum number of rows in the deltas of a join, and of rows that they match, for the join to run in the
        driver ...
    :param joined_bytes: ... unless the rows that it reads of a delta, or gives, take more bytes than this
    :param computed_rows: the maximum number of rows in memory over which the expressions of a block are evaluated in the driver ...
    :param computed_bytes: ... while their values take at most this many bytes ...
    :param piece_bytes: ... by tasks that read this many bytes at a time
    :param compiled_rows: the number of rows above which a query is compiled
    :param added_up_rows: the maximum number of new rows that are aggregated by group in the driver, if no expression has to be
        evaluated
    :param grouped_rows: the maximum number of groups, or first rows of groups, that are computed in the driver ...
    :param grouped_bytes: ... and the maximum number of bytes that they take
    :param indexed: the number of columns by which whole rows are looked up; the others are compared afterwards
    :param indexed_at_once: the maximum number of rows over which a query builds an index; an existing index over more rows is used
    :param merged_on_read: the maximum number of rows in batches with deletions, for a relation to be merged on read
    :param memory_batches: the number of batches in memory above which a trace is worth merging
    :param file_batches: the number of batches in files above which a trace is worth merging
    :param growth: the growth factor of merges: a batch in a file is merged with smaller ones unless it has more than this many
        times their rows
    :param hard_limit: the number of batches above which a trace is merged before the next step, idle or not
    :param bundled_rows: the maximum number of rows of the newest batches in memory that are read as one bundle
    :param bundles: the number of bundles that are cached
    :param dead_views: the number of views of released batches that Spark may keep while there is no idle moment to drop them
    :param prepared_queries: the maximum number of plans in the cache, least recently used out first (0: every query is planned for
        each run) ...
    :param prepared_bytes: ... and the maximum number of bytes of all their leaves together
    :param leaf_bytes: the maximum number of bytes of batches that are worth copying for each query
    :param few_losses: the maximum number of lost rows for which a recursion is maintained incrementally, however few rows it has
    :param parts: the number of small batches of a recursion's sum that are left unmerged
    :param retention_rows: the number of rows that a trace must have beyond twice what the last retention left, before it is
        searched again
    :param stream_elements: the number of elements of a step below which operators of a stream program run in the program's process
        and not in Spark tasks
    """

    small_rows: int = 50_000
    small_bytes: int = 64 << 20
    held_bytes: int = 64 << 20
    small_input: int = 100_000
    fan_out: int = 200_000
    tiny: int = 5_000
    most: float = 0.3
    joined_rows: int = 1_000_000
    joined_bytes: int = 256 << 20
    computed_rows: int = 2_000_000
    computed_bytes: int = 256 << 20
    piece_bytes: int = 4 << 20
    compiled_rows: int = 4_000
    added_up_rows: int = 5_000_000
    grouped_rows: int = 2_000_000
    grouped_bytes: int = 256 << 20
    indexed: int = 3
    indexed_at_once: int = 500_000
    merged_on_read: int = 1_000_000
    memory_batches: int = 8
    file_batches: int = 8
    growth: int = 2
    hard_limit: int = 24
    bundled_rows: int = 10_000
    bundles: int = 200
    dead_views: int = 200
    prepared_queries: int = 300
    prepared_bytes: int = 128 << 20
    leaf_bytes: int = 16 << 20
    few_losses: int = 1_000
    parts: int = 4
    retention_rows: int = 10_000
    stream_elements: int = 2_000_000

    def most_groups(self, row_bytes: int) -> int:
        """Return the maximum number of groups to aggregate in the driver, given the size of one group."""
        return min(self.grouped_rows, self.grouped_bytes // max(1, row_bytes))


DEFAULT_LIMITS = Limits()
"""The limits of a pipeline."""

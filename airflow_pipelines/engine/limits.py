"""The sizes by which the engine decides how it evaluates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as small, as few and as many. Every answer is the same whatever these are; only the work differs.

    :param small_rows: a batch of at most this many rows counts as small: it lives in the driver's memory ...
    :param small_bytes: ... unless it takes more bytes than this
    :param held_bytes: a batch that is not small lives in the driver's memory, too, when it takes at most this many bytes and there
        is room (see :mod:`airflow_pipelines.engine.held_memory`); else it goes to files, of which Spark reads only the columns that
        a query needs
    :param small_input: an operator whose inputs together have at most this many rows, all in memory, runs in one task and answers
        to the driver ...
    :param fan_out: ... unless its result has more rows than this: then it is run again and writes files
    :param tiny: what has at most this many rows is shown to Spark as it is; of more, only the rows that matter are looked up first
    :param most: a step that changes more than this share of the rows that an operator reads counts as changing all of them
    :param joined_rows: a join whose deltas have at most this many rows, and find at most this many, is evaluated in the driver ...
    :param joined_bytes: ... unless the rows that it reads of a delta, or gives, take more bytes than this
    :param computed_rows: the expressions of a block over at most so many rows in memory are evaluated in the driver ...
    :param computed_bytes: ... while their values take at most so many bytes ...
    :param piece_bytes: ... by tasks that read so many bytes at a time
    :param compiled_rows: a query over more rows than this is compiled
    :param added_up_rows: at most so many new rows are added up by group in the driver, where no expression has to be evaluated
    :param grouped_rows: groups, and first rows of groups, are found out in the driver while there are at most so many of them ...
    :param grouped_bytes: ... and they take at most so many bytes
    :param indexed: whole rows are looked up by so many of their columns; the others are compared afterwards
    :param indexed_at_once: a query makes an index over at most so many rows; it uses one over more rows that is there
    :param merged_on_read: a relation is merged while it is read when at most so many of its rows are in batches that take rows away
    :param memory_batches: more batches of a trace in memory than this are worth merging
    :param file_batches: more batches of a trace in files than this are worth merging
    :param growth: a batch in a file is merged with smaller ones unless it has more than so many times their rows
    :param hard_limit: a trace with more batches than this is merged before the next step, idle or not
    :param bundled_rows: the newest batches in memory that together have at most this many rows are read as one
    :param bundles: so many of these are remembered
    :param dead_views: Spark may remember this many batches that are gone while there is no idle moment to forget them
    :param prepared_queries: at most so many plans are kept, those that were used last (0: every query is planned for each run) ...
    :param prepared_bytes: ... and only while their leaves together have at most so many bytes
    :param leaf_bytes: batches that together have more bytes are not worth being copied for each query
    :param few_losses: a recursion that loses at most this many rows is maintained, however few rows it has
    :param parts: so many small batches of a recursion's sum are left as they are
    :param retention_rows: a trace is looked through for rows that may go when it has this many more than twice what was left the
        last time
    :param stream_elements: operators of a stream program that get fewer elements in a step run in the process of the program, and
        not in tasks of Spark
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
        """So many groups are found out in the driver when each takes some bytes."""
        return min(self.grouped_rows, self.grouped_bytes // max(1, row_bytes))


DEFAULT_LIMITS = Limits()
"""Those of a pipeline."""

"""The merging of journal steps if only their sum matters, so that a replay takes fewer steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.storage.journal import JournalRecord
from airflow_pipelines.rows.zsets import can_group, consolidate_groupable

RecordedStep = tuple[JournalRecord, Mapping[str, Batch]]
"""A journal's record and the deltas of its step."""


def merged_steps(recorded: Iterable[RecordedStep], limits: Limits) -> Iterator[RecordedStep]:
    """Yield the same deltas in fewer steps, each small enough for the driver's memory.

    :param recorded: the steps in order
    :param limits: the limits of small deltas
    :returns: the merged steps, each with the last of their records
    """
    waiting: dict[str, list[Batch]] = {}
    rows = 0
    last: JournalRecord | None = None
    for record, deltas in recorded:
        if not all(delta.is_small(limits) for delta in deltas.values()):
            if last is not None and waiting:
                yield last, {name: _sum(parts) for name, parts in waiting.items()}
                waiting, rows = {}, 0
            yield record, deltas
            continue
        last = record
        for name, delta in deltas.items():
            waiting.setdefault(name, []).append(delta)
            rows += delta.rows
        if rows >= limits.small_rows:
            yield last, {name: _sum(parts) for name, parts in waiting.items()}
            waiting, rows = {}, 0
    if last is not None and waiting:
        yield last, {name: _sum(parts) for name, parts in waiting.items()}


def _sum(parts: list[Batch]) -> Batch:
    if len(parts) == 1:
        return parts[0]
    table = pa.concat_tables([part.to_arrow() for part in parts])
    return Batch.in_memory(parts[0].schema, consolidate_groupable(table) if can_group(table.schema) else table)

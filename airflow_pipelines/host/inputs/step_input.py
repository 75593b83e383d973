"""The input of one step, its sources, and its rows that tables did not take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from airflow_pipelines.connectors.base import CountedError, InputChunk
from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.host.inputs.inputs import Consumed, InputEndpoint
from airflow_pipelines.host.inputs.intake import Push
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.rows.changes import TableChanges


@dataclass(frozen=True, slots=True)
class Consumption:
    """The rows that a step, or a transaction so far, takes from inputs.

    :param records: the number of rows
    :param size_bytes: their bytes
    :param parts: the part of each endpoint
    :param transactions: the number of transactions that end with it
    :param push_keys: the keys of pushes, each with the time it was taken in seconds since the epoch
    """

    records: int = 0
    size_bytes: int = 0
    parts: Mapping[InputEndpoint, Consumed] = field(default_factory=dict)
    transactions: int = 0
    push_keys: Mapping[str, int] = field(default_factory=dict)

    def plus(self, later: Consumption) -> Consumption:
        """Return the sum of this and of a later consumption."""
        parts = dict(self.parts)
        for endpoint, part in later.parts.items():
            parts[endpoint] = parts[endpoint].plus(part) if endpoint in parts else part
        transactions = self.transactions + later.transactions
        keys = {**self.push_keys, **later.push_keys}
        return Consumption(self.records + later.records, self.size_bytes + later.size_bytes, parts, transactions, keys)


@dataclass(frozen=True, slots=True)
class StepInput:
    """The input of one step: pushed rows, and chunks of connectors."""

    pushes: list[Push]
    chunks: Mapping[InputEndpoint, list[InputChunk]]

    @property
    def is_empty(self) -> bool:
        """True if there is nothing in it, not even the end of an input."""
        return not self.pushes and not self.chunks

    @property
    def sources(self) -> list[tuple[InputEndpoint | None, TableChanges]]:
        """All changes with the input that they came from (None: an ad-hoc statement), those of one input in order."""
        from_connectors = [
            (endpoint, chunk.changes) for endpoint, chunks in self.chunks.items() for chunk in chunks if chunk.changes is not None
        ]
        return [*from_connectors, *((push.endpoint, changes) for push in self.pushes for changes in push.changes)]

    @property
    def changes(self) -> list[TableChanges]:
        """All changes, those of one input in order."""
        return [changes for _, changes in self.sources]

    @property
    def records(self) -> int:
        """The number of rows."""
        return sum(push.records for push in self.pushes) + sum(c.records for chunks in self.chunks.values() for c in chunks)

    @property
    def size_bytes(self) -> int:
        """The number of bytes."""
        return sum(push.size_bytes for push in self.pushes) + sum(c.size_bytes for chunks in self.chunks.values() for c in chunks)

    def consumption(self) -> Consumption:
        """Return the rows that it takes from inputs."""
        now = int(time.time())
        keys = {push.key: now for push in self.pushes if push.key is not None}
        return Consumption(self.records, self.size_bytes, self._parts(), push_keys=keys)

    def _parts(self) -> dict[InputEndpoint, Consumed]:
        """Return the part of each endpoint."""
        parts = {
            endpoint: Consumed(sum(c.records for c in chunks), sum(c.size_bytes for c in chunks), chunks[-1].position)
            for endpoint, chunks in self.chunks.items()
        }
        for push in self.pushes:
            if push.endpoint is not None:
                before = parts.get(push.endpoint, Consumed(0, 0))
                parts[push.endpoint] = Consumed(before.records + push.records, before.size_bytes + push.size_bytes, before.position)
        return parts

    def origins(self, table: str) -> list[tuple[InputEndpoint | None, int]]:
        """Return, for each change of a table, its input and the number of the table's rows from that input before it."""
        origins = []
        before: dict[InputEndpoint | None, int] = {}
        for endpoint, changes in self.sources:
            if changes.table == table:
                origins.append((endpoint, before.get(endpoint, 0)))
                before[endpoint] = before.get(endpoint, 0) + changes.rows.num_rows
        return origins


def report_rejected(log: PipelineLog, rejections: Iterable[Rejected], taken: StepInput) -> None:
    """Count rejected changes with the input that they came from, and log the first row of each kind.

    :param log: the pipeline's log
    :param rejections: the changes that the engine left out
    :param taken: the input of the step
    """
    for rejected in rejections:
        sources = taken.origins(rejected.table)
        for part in rejected.parts:
            source, before = sources[part.change]
            text = f"{part.count} changes of table {rejected.table} were left out: {rejected.reason}, for example {part.first}"
            if source is None:
                log.warn_limited(f"rejected {rejected.table}", "an ad-hoc statement: %s", text)
                continue
            row = source.metrics.processed_records + source.metrics.collected_records + before + part.first_row
            log.warn_limited(f"rejected {source.name}", "connector %s: row %d: %s", source.name, row, text)
            source.metrics.parse_errors.extend([CountedError("rejected", f"row {row}: {text}", row)], part.count)

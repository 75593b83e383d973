"""All inputs of one running pipeline: connectors that read, and pushes of requests. Steps take the rows that have arrived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from airflow_pipelines.connectors.base import FatalConnectorFailure, InputChunk
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.storage.connector_state import InputState
from airflow_pipelines.host.inputs.connector_input import ConnectorInput
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.program.streams import STREAM_END

Wanted = Callable[[InputEndpoint], bool]
"""A predicate that selects inputs."""


def _all(_: InputEndpoint) -> bool:
    return True


class InputEndpoints:
    """The inputs of one incarnation, by name."""

    def __init__(self) -> None:
        """Start without inputs."""
        self._endpoints: dict[str, InputEndpoint] = {}
        self._readers: dict[str, ConnectorInput] = {}

    def add(self, reader: ConnectorInput) -> None:
        """Add an input that a connector reads.

        :param reader: the connector's reader
        """
        self._endpoints[reader.endpoint.name] = reader.endpoint
        self._readers[reader.endpoint.name] = reader

    def get_push_endpoint(self, name: str, table: str) -> InputEndpoint:
        """Return the input of rows pushed into ``table`` under ``name``. It is created on first use."""
        return self._endpoints.setdefault(name, InputEndpoint(name, table))

    def get(self, name: str) -> InputEndpoint | None:
        """Return the input with a name, or None if there is none.

        :param name: ``table.connector``
        """
        return self._endpoints.get(name)

    @property
    def all(self) -> list[InputEndpoint]:
        """Every input. Requests may add some meanwhile."""
        return list(self._endpoints.values())

    @property
    def shown(self) -> list[InputEndpoint]:
        """Every input that users know, without those that only signal the end of a relation to a stream program."""
        return [endpoint for endpoint in self.all if endpoint.connector is None or endpoint.connector.transport != STREAM_END]

    def check_open(self, tables: Set[str]) -> None:
        """Refuse rows that a stream program would no longer read.

        :param tables: the tables of the rows
        :raises Problem: if a stream has ended that gets rows of one of them
        """
        for endpoint in self.all:
            if endpoint.connector is None or endpoint.connector.transport != STREAM_END:
                continue
            if not endpoint.metrics.end_of_input and endpoint.position is None:
                continue
            names = endpoint.connector.transport_config["ends_with"]
            ended = tables & {self._endpoints[name].table for name in names}
            if ended:
                uid = endpoint.connector.transport_config["uid"]
                raise Problem(
                    ErrorCode.STREAM_ENDED,
                    f"No row was taken for table {', '.join(sorted(ended))}: the stream program would not read it, since its "
                    f"stream {uid!r} has ended with all connectors that it gets rows from ({', '.join(names)}). Stop the pipeline, "
                    "have the program read the relation with from_relation(..., stays_open=True), start it, and push them again.",
                )

    def restore(self, name: str, state: InputState, kept: frozenset[str], relations: frozenset[str]) -> None:
        """Restore the saved state of an input.

        :param name: the input
        :param state: its saved state
        :param kept: the connectors that go on; others keep their counters but start from scratch
        :param relations: the unchanged relations; the inputs of requests to other tables are dropped
        """
        if name in self._endpoints:
            self._endpoints[name].restore(state, same=name in kept)
            self._readers[name].note_restored(was_started=not state.waiting and name in kept)
        elif not state.declared and state.table in relations:
            self.get_push_endpoint(name, state.table).restore(state, same=True)

    def start(self) -> None:
        """Start the connectors' threads; they read once the pipeline is active."""
        for reader in self._readers.values():
            reader.start()

    def set_active(self, active: bool) -> None:
        """Let the connectors read, or not."""
        for reader in self._readers.values():
            reader.set_active(active)

    def set_paused(self, endpoint: str, paused: bool) -> None:
        """Pause or start one connector."""
        self._readers[endpoint].set_paused(paused)

    def have_work(self, wanted: Wanted = _all) -> bool:
        """Return True if a connector has rows for a step.

        :param wanted: selects the connectors
        """
        return any(reader.has_work for reader in self._readers.values() if wanted(reader.endpoint))

    def take(self, wanted: Wanted = _all) -> dict[InputEndpoint, list[InputChunk]]:
        """Remove and return the chunks that each connector has for the next step.

        :param wanted: selects the connectors
        """
        return self._take_from(wanted, ConnectorInput.take)

    def take_all(self, wanted: Wanted) -> dict[InputEndpoint, list[InputChunk]]:
        """Remove and return all chunks that each connector has read.

        :param wanted: selects the connectors
        """
        return self._take_from(wanted, ConnectorInput.take_all)

    def _take_from(
        self, wanted: Wanted, take: Callable[[ConnectorInput], list[InputChunk]]
    ) -> dict[InputEndpoint, list[InputChunk]]:
        taken = {reader.endpoint: take(reader) for reader in self._readers.values() if wanted(reader.endpoint)}
        return {endpoint: chunks for endpoint, chunks in taken.items() if chunks}

    def release_labels(self) -> None:
        """Start the connectors whose ``start_after`` labels have all been processed."""
        unfinished = {
            label
            for reader in self._readers.values()
            if not (reader.endpoint.metrics.end_of_input and reader.drained)
            for label in reader.labels
        }
        for reader in self._readers.values():
            if reader.waiting_for_labels and not reader.start_after & unfinished:
                reader.labels_done()

    @property
    def all_ended(self) -> bool:
        """True if every declared input has reached its end and has been consumed."""
        return all(reader.endpoint.metrics.end_of_input and reader.drained for reader in self._readers.values())

    @property
    def have_ended(self) -> bool:
        """True if there are declared inputs, and none has any more rows."""
        return bool(self._readers) and self.all_ended

    @property
    def without_position(self) -> tuple[str, ...]:
        """The inputs that are in the middle of a source that can be read from its beginning only."""
        return tuple(name for name, reader in self._readers.items() if reader.is_without_position)

    @property
    def have_moved(self) -> bool:
        """True if the position of a source differs from the one in the newest checkpoint and the journal."""
        return any(endpoint.has_moved for endpoint in self.all)

    @property
    def num_errors(self) -> int:
        """The number of errors of all inputs."""
        return sum(endpoint.metrics.parse_errors.count + endpoint.metrics.transport_errors.count for endpoint in self.all)

    @property
    def failure(self) -> FatalConnectorFailure | None:
        """The error for which the pipeline cannot go on, of the first connector that has one, or None."""
        return next((reader.failure for reader in self._readers.values() if reader.failure is not None), None)

    def states(self) -> dict[str, InputState]:
        """Return the state of all inputs for a checkpoint."""
        states = {endpoint.name: endpoint.to_state() for endpoint in self.all}
        for name, reader in self._readers.items():
            states[name] = replace(states[name], waiting=reader.waiting_for_labels)
        return states

    def count_processed(self) -> dict[InputEndpoint, int]:
        """Return the number of records of each input that steps have taken."""
        return {endpoint: endpoint.metrics.processed_records for endpoint in self.all}

    def count_completed(self) -> dict[InputEndpoint, int]:
        """Return for each input the number of records whose results all outputs have delivered."""
        return {endpoint: endpoint.metrics.completed_records for endpoint in self.all}

    def complete(self) -> None:
        """Note that the results of everything consumed so far have been delivered."""
        for endpoint in self.all:
            endpoint.complete()

    def complete_until(self, records: Mapping[InputEndpoint, int]) -> None:
        """Note that the results of everything consumed up to an earlier time have been delivered.

        :param records: the number of records consumed of each input by that time
        """
        for endpoint, count in records.items():
            endpoint.complete_until(count)

    def keep_positions(self) -> None:
        """Note that a checkpoint has the positions of all sources."""
        for endpoint in self.all:
            endpoint.keep(endpoint.position)

    def count_durable(self) -> None:
        """Note that the effect of everything consumed so far is on disk, and commit the positions in the sources."""
        for endpoint in self.all:
            endpoint.secure()
        for reader in self._readers.values():
            reader.commit()

    def close(self) -> None:
        """Stop all connectors."""
        for reader in self._readers.values():
            reader.close()

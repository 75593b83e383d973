"""Conditions on the input connectors of a running pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.hooks.conditions.condition import PollOutcome, RuntimeCondition, Verdict, pending
from airflow_pipelines.hooks.conditions.observation import Observation, Request


class _UnknownConnector(Exception):
    """A connector that is named but does not exist."""


def _connector(inputs: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    for one in inputs:
        if one["endpoint_name"] == name:
            return one
    known = ", ".join(sorted(str(one["endpoint_name"]) for one in inputs)) or "none"
    raise _UnknownConnector(f"there is no input connector {name!r}; known: {known}")


def _fail_connector(connector: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a connector that failed for good."""
    error = connector["fatal_error"]
    return Verdict(
        PollOutcome.FAILED,
        f"connector {connector['endpoint_name']!r} has given up: {error}",
        {"connector": connector["endpoint_name"]},
    )


@dataclass(frozen=True)
class ConnectorEndCondition(RuntimeCondition):
    """The condition that one input connector reached the end of its input, and all of it is processed and delivered.

    Other connectors may go on.

    :param connector: the connector as ``table.connector``
    """

    kind = "connector_end"
    connector: str

    @property
    def goal(self) -> str:
        """The goal, with the connector."""
        return f"the end of the input of connector {self.connector!r}"

    def request(self) -> Request:
        """Request the statistics."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        try:
            connector = _connector(answer["inputs"], self.connector)
        except _UnknownConnector as error:
            return Verdict(PollOutcome.FAILED, str(error), {"status": seen.status.name})
        if connector.get("fatal_error"):
            return _fail_connector(connector)
        records = connector["metrics"]["total_records"]
        if not connector["metrics"]["end_of_input"]:
            return pending(seen, f"{records} records received")
        # The records of one connector are not counted by themselves; but all records that came before its end include them.
        metrics = answer["global_metrics"]
        incarnation, upto = metrics.get("incarnation_uuid"), metrics["total_input_records"]
        if memory and memory["incarnation"] == incarnation:
            upto = memory["records"]
        if metrics["total_completed_records"] >= upto:
            return Verdict(PollOutcome.REACHED, f"end of {self.connector}", {"connector": self.connector, "total_records": records})
        note = f"the input has ended, {metrics['total_completed_records']} of {upto} records completed"
        return pending(seen, note, {"incarnation": incarnation, "records": upto})


@dataclass(frozen=True)
class LagCondition(RuntimeCondition):
    """The condition that the lag of inputs is within limits. At least one limit is needed, and each that is given must hold.

    :param max_records: the maximum number of records that the sources have and no step has taken
    :param max_bytes: the maximum number of bytes that the sources have and that were not read
    :param max_seconds: the maximum lag in seconds
    :param connector: the connector as ``table.connector``; None for all that report a lag
    """

    kind = "lag"
    max_records: int | None = None
    max_bytes: int | None = None
    max_seconds: float | None = None
    connector: str | None = None

    def __post_init__(self) -> None:
        if not self._limits:
            raise ValueError("a limit is needed: give max_records, max_bytes or max_seconds")

    @property
    def _limits(self) -> dict[str, float]:
        limits = {"records": self.max_records, "bytes": self.max_bytes, "seconds": self.max_seconds}
        return {unit: limit for unit, limit in limits.items() if limit is not None}

    @property
    def goal(self) -> str:
        """The goal, with the limits."""
        limits = " and ".join(f"{limit:g} {unit}" for unit, limit in self._limits.items())
        return f"a lag of at most {limits}{f' of connector {self.connector!r}' if self.connector else ''}"

    def request(self) -> Request:
        """Request the statistics."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        try:
            inputs = [_connector(answer["inputs"], self.connector)] if self.connector else answer["inputs"]
        except _UnknownConnector as error:
            return Verdict(PollOutcome.FAILED, str(error), {"status": seen.status.name})
        for connector in inputs:
            if connector.get("fatal_error"):
                return _fail_connector(connector)
        lags = {str(connector["endpoint_name"]): _lag(connector["metrics"]) for connector in inputs}
        known = {name: lag for name, lag in lags.items() if lag is not None}
        unknown = [f"{name} in {unit}" for name, lag in known.items() for unit in self._limits if lag[unit] is None]
        if not known:
            return pending(seen, "no input says how far behind it is")
        if unknown:
            return pending(seen, f"not known how far behind: {', '.join(unknown)}")
        beyond = [
            f"{name} is {lag[unit]:g} {unit} behind"
            for name, lag in known.items()
            for unit, limit in self._limits.items()
            if (lag[unit] or 0) > limit
        ]
        if beyond:
            return pending(seen, ", ".join(beyond))
        return Verdict(PollOutcome.REACHED, "the inputs have caught up", {"lag": known})


def _lag(metrics: Mapping[str, Any]) -> dict[str, float | None] | None:
    """Return the lag of an input, or None if it reports none. An input that has ended lags only by its buffer."""
    buffered = metrics["buffered_records"]
    if metrics["end_of_input"]:
        return {"records": buffered, "bytes": metrics["buffered_bytes"], "seconds": 0.0}
    lag = metrics.get("lag")
    if lag is None:
        return None
    records = lag.get("records")
    return {
        "records": None if records is None else records + buffered,
        "bytes": lag.get("bytes"),
        "seconds": lag.get("seconds"),
    }

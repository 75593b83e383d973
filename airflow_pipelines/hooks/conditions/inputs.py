"""Conditions on the input connectors of a running pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.hooks.conditions.condition import Outcome, RuntimeCondition, Verdict, pending
from airflow_pipelines.hooks.conditions.observation import Observation, Request


class _UnknownConnector(Exception):
    """A connector that is named is not there."""


def _connector(inputs: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    for one in inputs:
        if one["endpoint_name"] == name:
            return one
    known = ", ".join(sorted(str(one["endpoint_name"]) for one in inputs)) or "none"
    raise _UnknownConnector(f"there is no input connector {name!r}; known: {known}")


def _broken(connector: Mapping[str, Any]) -> Verdict:
    """The verdict on a connector that has given up."""
    error = connector["fatal_error"]
    return Verdict(
        Outcome.FAILED, f"connector {connector['endpoint_name']!r} has given up: {error}", {"connector": connector["endpoint_name"]}
    )


@dataclass(frozen=True)
class ConnectorEndCondition(RuntimeCondition):
    """One input connector reached the end of its input, and all of it is processed and delivered. Others may go on.

    :param connector: the connector as ``table.connector``
    """

    kind = "connector_end"
    connector: str

    @property
    def goal(self) -> str:
        """Whose end."""
        return f"the end of the input of connector {self.connector!r}"

    def request(self) -> Request:
        """Ask for the counters."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        try:
            connector = _connector(answer["inputs"], self.connector)
        except _UnknownConnector as error:
            return Verdict(Outcome.FAILED, str(error), {"status": seen.status.name})
        if connector.get("fatal_error"):
            return _broken(connector)
        records = connector["metrics"]["total_records"]
        if not connector["metrics"]["end_of_input"]:
            return pending(seen, f"{records} records received")
        # Which of the pipeline's records are the connector's nobody counts; but all that came before its end are.
        metrics = answer["global_metrics"]
        incarnation, upto = metrics.get("incarnation_uuid"), metrics["total_input_records"]
        if memory and memory["incarnation"] == incarnation:
            upto = memory["records"]
        if metrics["total_completed_records"] >= upto:
            return Verdict(Outcome.REACHED, f"end of {self.connector}", {"connector": self.connector, "total_records": records})
        note = f"the input has ended, {metrics['total_completed_records']} of {upto} records completed"
        return pending(seen, note, {"incarnation": incarnation, "records": upto})


@dataclass(frozen=True)
class LagCondition(RuntimeCondition):
    """Inputs are at most so far behind their sources. At least one of the limits is needed, and each that is given has to be kept.

    :param max_records: records that the sources have and that no step has taken, at most
    :param max_bytes: bytes that the sources have and that were not read, at most
    :param max_seconds: how far behind in time, at most
    :param connector: the connector as ``table.connector``; None for all that know how far behind they are
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
        """The limits."""
        limits = " and ".join(f"{limit:g} {unit}" for unit, limit in self._limits.items())
        return f"a lag of at most {limits}{f' of connector {self.connector!r}' if self.connector else ''}"

    def request(self) -> Request:
        """Ask for the counters."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        try:
            inputs = [_connector(answer["inputs"], self.connector)] if self.connector else answer["inputs"]
        except _UnknownConnector as error:
            return Verdict(Outcome.FAILED, str(error), {"status": seen.status.name})
        for connector in inputs:
            if connector.get("fatal_error"):
                return _broken(connector)
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
        return Verdict(Outcome.REACHED, "the inputs have caught up", {"lag": known})


def _lag(metrics: Mapping[str, Any]) -> dict[str, float | None] | None:
    """How far behind an input is; None when it does not say. One that has ended is behind by what it keeps only."""
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

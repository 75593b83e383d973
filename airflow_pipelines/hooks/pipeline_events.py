"""The events of a pipeline, found by comparing each poll with a watermark.

Only changes are reported, each once. State that was there before the watch began is not reported, nor state that is the same at the
next poll. The watermark is a JSON object, so that it outlives the process that watches. Nothing here does I/O or imports Airflow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final
from uuid import UUID

from airflow_pipelines.hooks.conditions.checkpoint import time_of


class PipelineEventKind(StrEnum):
    """The kinds of events."""

    CHECKPOINT = "checkpoint"
    """A new checkpoint."""
    SYNC = "sync"
    """A copy of a checkpoint in the object store."""
    IDLE = "idle"
    """The end of activity: rows came in, all are processed, and no more came for a while."""
    FAILURE = "failure"
    """The end of a pipeline with an error."""
    PROGRAM_CHANGE = "program_change"
    """A new version of the program that was saved and compiles."""

    @classmethod
    def of(cls, text: str) -> PipelineEventKind:
        """Return the kind with a name.

        :param text: the name
        :raises ValueError: if there is no such kind; the message lists the known ones
        """
        try:
            return cls(text)
        except ValueError:
            raise ValueError(f"unknown kind of event {text!r}; known: {', '.join(cls)}") from None


@dataclass(frozen=True)
class Poll:
    """The result of one poll of a pipeline.

    :param descriptor: the pipeline with the status selector
    :param at: the time of the poll, in seconds since the epoch
    :param stats: the pipeline's statistics; None if they were not requested or the pipeline does not run
    :param events: the pipeline's events with all details, newest first; None if they were not requested, or there are no new ones
    """

    descriptor: Mapping[str, Any]
    at: float
    stats: Mapping[str, Any] | None = None
    events: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Judgement:
    """The result of one detector at a poll: the mark to remember, and the figures of the events, oldest first."""

    mark: Any
    happened: Sequence[dict[str, Any]] = ()


class _Detector(ABC):
    """A detector of one kind of event."""

    kind: ClassVar[PipelineEventKind]
    needs_stats: ClassVar[bool] = False
    needs_events: ClassVar[bool] = False

    @abstractmethod
    def begin(self, poll: Poll) -> Any:
        """Return the mark to remember at the first poll of a watch, which reports nothing."""

    @abstractmethod
    def judge(self, poll: Poll, mark: Any) -> Judgement:
        """Compare the poll with the mark."""


def _storage(poll: Poll) -> Mapping[str, Any]:
    return poll.descriptor.get("storage_status_details") or {}


class _Checkpoints(_Detector):
    kind = PipelineEventKind.CHECKPOINT

    def begin(self, poll: Poll) -> Any:
        return max((str(entry["uuid"]) for entry in _storage(poll).get("checkpoints") or []), default="")

    def judge(self, poll: Poll, mark: Any) -> Judgement:
        newest = max(_storage(poll).get("checkpoints") or [], key=lambda entry: str(entry["uuid"]), default=None)
        if newest is None or str(newest["uuid"]) <= mark:
            return Judgement(mark)
        figures = {name: newest.get(name) for name in ("steps", "processed_records", "size")}
        uuid = str(newest["uuid"])
        return Judgement(uuid, [{"checkpoint": uuid, "taken_at": time_of(UUID(uuid)).isoformat(), **figures}])


class _Copies(_Detector):
    kind = PipelineEventKind.SYNC

    def begin(self, poll: Poll) -> Any:
        return str((_storage(poll).get("last_sync") or {}).get("synced_at", ""))

    def judge(self, poll: Poll, mark: Any) -> Judgement:
        last = _storage(poll).get("last_sync")
        if not last or str(last["synced_at"]) <= mark:
            return Judgement(mark)
        return Judgement(str(last["synced_at"]), [{"checkpoint": str(last["uuid"]), "synced_at": str(last["synced_at"])}])


@dataclass
class _Idleness(_Detector):
    kind = PipelineEventKind.IDLE
    needs_stats = True
    interval_s: float
    _quiet: tuple[tuple[Any, int], float] | None = field(default=None, init=False)
    """The counters that have not moved, and the time since when they have not."""

    def begin(self, poll: Poll) -> Any:
        # A pipeline that is still at work will become idle, which is an event.
        return None if poll.stats is None or self._is_at_work(poll.stats) else list(self._counters(poll.stats))

    def judge(self, poll: Poll, mark: Any) -> Judgement:
        if poll.stats is None:
            self._quiet = None
            return Judgement(mark)
        metrics = poll.stats["global_metrics"]
        now = self._counters(poll.stats)
        if self._is_at_work(poll.stats):
            self._quiet = None
            return Judgement(mark)
        if self._quiet is None or self._quiet[0] != now:
            self._quiet = now, poll.at
        if list(now) == mark or now[1] == 0 or poll.at - self._quiet[1] < self.interval_s:
            return Judgement(mark)
        names = ("total_input_records", "total_processed_records", "total_completed_records", "total_completed_steps")
        return Judgement(list(now), [{name: metrics.get(name) for name in names}])

    @staticmethod
    def _is_at_work(stats: Mapping[str, Any]) -> bool:
        metrics = stats["global_metrics"]
        return bool(metrics["total_processed_records"] != metrics["total_input_records"])

    @staticmethod
    def _counters(stats: Mapping[str, Any]) -> tuple[Any, int]:
        # Counters only grow within an incarnation, so equal ones mean that nothing came in between.
        metrics = stats["global_metrics"]
        return metrics.get("incarnation_uuid"), metrics["total_input_records"]


class _Failures(_Detector):
    kind = PipelineEventKind.FAILURE
    needs_events = True

    def begin(self, poll: Poll) -> Any:
        return str(poll.events[0]["event_id"]) if poll.events else ""

    def judge(self, poll: Poll, mark: Any) -> Judgement:
        if not poll.events:
            return Judgement(mark)
        happened, had_error = [], False
        for event in reversed(poll.events):
            error = event.get("deployment_error")
            if error and not had_error and str(event["event_id"]) > mark:
                failure = {"error_code": error.get("error_code"), "message": str(error.get("message", ""))}
                happened.append({**failure, "at": event["recorded_at"]})
            had_error = bool(error)
        return Judgement(str(poll.events[0]["event_id"]), happened)


class _Programs(_Detector):
    kind = PipelineEventKind.PROGRAM_CHANGE

    def begin(self, poll: Poll) -> Any:
        return poll.descriptor["program_version"]

    def judge(self, poll: Poll, mark: Any) -> Judgement:
        version = poll.descriptor["program_version"]
        # A version that does not compile cannot run, so it is no change yet.
        if version <= mark or poll.descriptor["program_status"] != "Success":
            return Judgement(mark)
        return Judgement(version, [{"program_version": version, "version": poll.descriptor["version"]}])


_PIPELINE: Final = "pipeline"


def _statuses(descriptor: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statuses with their times, and the error."""
    return {name: value for name, value in descriptor.items() if "_status" in name and "details" not in name} | {
        "error": descriptor.get("deployment_error")
    }


class PipelineWatch:
    """A watch that finds the events of one pipeline.

    :param kinds: the kinds of events to report
    :param idle_interval_s: the seconds without new input after which a pipeline is idle
    :param watermark: the watermark of an earlier watch; None at the first one
    """

    def __init__(
        self, kinds: Sequence[PipelineEventKind], *, idle_interval_s: float, watermark: Mapping[str, Any] | None = None
    ) -> None:
        made: list[_Detector] = [_Checkpoints(), _Copies(), _Idleness(idle_interval_s), _Failures(), _Programs()]
        self._detectors = [detector for detector in made if detector.kind in kinds]
        self._marks: dict[str, Any] = dict(watermark or {})
        self._statuses: dict[str, Any] | None = None

    @property
    def needs_stats(self) -> bool:
        """True if a poll has to request the statistics."""
        return any(detector.needs_stats for detector in self._detectors)

    def needs_events(self, descriptor: Mapping[str, Any]) -> bool:
        """Return True if a poll has to request the events: there are none without a change of a status.

        :param descriptor: the pipeline as the poll has seen it
        """
        return any(detector.needs_events for detector in self._detectors) and self._statuses != _statuses(descriptor)

    @property
    def watermark(self) -> dict[str, Any]:
        """The watermark to remember, as JSON."""
        return dict(self._marks)

    def detect_events(self, poll: Poll) -> list[dict[str, Any]]:
        """Compare a poll with the watermark, and advance the watermark.

        :param poll: the poll
        :returns: the events, each with its kind as ``event`` and the pipeline's name
        """
        identity = str(poll.descriptor["id"])
        if self._marks.get(_PIPELINE, identity) != identity:
            # The pipeline was deleted and created again under its name, so the watch begins anew.
            self._marks = {}
        self._marks[_PIPELINE] = identity
        self._statuses = _statuses(poll.descriptor)
        told = []
        for detector in self._detectors:
            if detector.kind not in self._marks:
                self._marks[detector.kind] = detector.begin(poll)
            judgement = detector.judge(poll, self._marks[detector.kind])
            self._marks[detector.kind] = judgement.mark
            told += [{"event": detector.kind.value, "pipeline": poll.descriptor["name"], **one} for one in judgement.happened]
        return told

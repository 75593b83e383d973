from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.stats import PipelineStatistics
from airflow_pipelines.running import following
from airflow_pipelines.running.following import End, Following, LogFollower
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from tests.running.service_double import ServiceDouble

# The client makes requests again for other answers with this status.
UNREADY = 503, {"message": "it has no host", "error_code": ErrorCode.PIPELINE_INTERACTION_NOT_DEPLOYED.value, "details": {}}
END = 2**63 - 1


class Counting(ServiceDouble):
    """A service with another answer for each look at the statistics."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.exists("Running")
        self.answers = list(answers)

    def _read(self, tail: str) -> Any:
        return self.answers.pop(0) if tail == "stats" else super()._read(tail)


def tasks(*waiting_keys: int | None, watermark: int = 5) -> dict[str, Any]:
    """Statistics of an operator whose tasks have these keys that wait."""
    found = [{"task": number, "watermark": watermark, "waiting_keys": keys} for number, keys in enumerate(waiting_keys)]
    return {"stream_metrics": {"count": {"name": "Count", "tasks": found}}}


class Screen:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seen: list[PipelineStatistics] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def progress(self, statistics: PipelineStatistics) -> None:
        self.seen.append(statistics)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> ServiceDouble:
    monkeypatch.setattr(following, "LAST_LINES_S", 0.2)
    service = ServiceDouble()
    service.exists("Running")
    service.log += ["alert> (a,700.0)", "2026-05-01T00:00:00Z INFO [p] running"]
    return service


def follow(service: ServiceDouble) -> tuple[End, Screen]:
    pipeline, screen = Pipeline.get("p", service.client), Screen()
    found = Following(pipeline, LogFollower(pipeline), screen)
    end = found.until_end()
    found.last_lines()
    return end, screen


def test_a_program_whose_inputs_have_ended_is_complete(service: ServiceDouble) -> None:
    service.complete = True
    end, screen = follow(service)
    assert end is End.COMPLETE
    assert screen.lines == ["alert> (a,700.0)", "2026-05-01T00:00:00Z INFO [p] running"], "without the line that begins it"
    assert screen.seen[0].global_metrics is not None


def test_a_pipeline_that_stops_is_told_from_one_that_fails(service: ServiceDouble) -> None:
    service.exists()
    assert follow(service)[0] is End.STOPPED
    service.exists(deployment_error={"message": "ValueError: no limit", "error_code": "x", "details": {}})
    end, screen = follow(service)
    assert end is End.FAILED
    assert screen.lines[0] == "alert> (a,700.0)", "what it said last is shown"


def test_a_pipeline_that_is_ending_is_followed_until_its_error_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "STATISTICS_S", 0.0)
    monkeypatch.setattr(following, "LAST_LINES_S", 0.0)

    class Ending(Counting):
        def _read(self, tail: str) -> Any:
            if tail == "stats":
                self.exists(deployment_error={"message": "ValueError: no limit", "error_code": "x", "details": {}})
            return super()._read(tail)

    ending = 410, {"message": "The pipeline p is being stopped.", "error_code": ErrorCode.TERMINATING.value, "details": {}}
    assert follow(Ending(ending))[0] is End.FAILED


def test_an_output_that_fails_ends_the_following(service: ServiceDouble) -> None:
    service.statistics = {"outputs": [{"endpoint_name": "v.out", "fatal_error": "too long"}]}
    assert follow(service)[0] is End.UNDELIVERED


@pytest.mark.parametrize(
    ("answers", "texts"),
    [
        ([{}], 0),
        ([tasks(0, None)], 0),
        ([tasks(None, None, watermark=END)], 0),
        ([tasks(None, None), tasks(None, 2)], 1),
        ([UNREADY, tasks(1)], 1),
        ([tasks(None), UNREADY, tasks(None)], 0),
        ([UNREADY] * 3, 0),
    ],
    ids=["no stream program", "counted", "at its end", "not counted yet", "not ready", "never counted", "never answered"],
)
def test_what_waits_is_looked_for_until_it_is_counted(answers: list[Any], texts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    service = Counting(*answers)
    pipeline = Pipeline.get("p", service.client)
    found = Following(pipeline, LogFollower(pipeline), Screen())
    monkeypatch.setattr(following, "time", SimpleNamespace(sleep=slept.append))
    assert len(found.what_waits()) == texts
    assert service.answers == [], "each look has another answer"
    assert len(slept) == len(answers) - 1, "only between looks"

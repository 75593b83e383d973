from __future__ import annotations

import pytest

from airflow_pipelines.contract.stats import PipelineStatistics
from airflow_pipelines.pipeline import Pipeline
from airflow_pipelines.running import following
from airflow_pipelines.running.following import End, Following, LogLines
from tests.running.service_double import ServiceDouble


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
    found = Following(pipeline, LogLines(pipeline), screen)
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


def test_an_output_that_fails_ends_the_following(service: ServiceDouble) -> None:
    service.statistics = {"outputs": [{"endpoint_name": "v.out", "fatal_error": "too long"}]}
    assert follow(service)[0] is End.UNDELIVERED

"""Diagnostics as the SDK asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines import PipelineAPIError
from tests.scripted import Scripted, pipeline_of, problem, up


def test_a_support_bundle_is_asked_for_with_all_its_flags_and_saved(service: Scripted, tmp_path: Path) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("GET pipelines/p/support_bundle", b"PK")
    path = tmp_path / "bundle.zip"
    assert pipeline.support_bundle(str(path), logs=False, limit=2) == path.read_bytes() == b"PK"
    ((params, _),) = service.asked("GET pipelines/p/support_bundle")
    assert (params["logs"], params["limit"], params["collect"], params["pipeline_events"]) == ("false", "2", "true", "true")


def test_metrics_have_two_formats(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    found = [{"key": "rss_bytes", "type": "gauge", "description": "", "values": []}]
    service.on("GET pipelines/p/metrics", found)
    assert pipeline.metrics(format="json") == found
    assert service.asked("GET pipelines/p/metrics")[0][0] == {"format": "json"}


def test_a_profile_of_native_code_is_an_error_of_the_service(service: Scripted, tmp_path: Path) -> None:
    pipeline = pipeline_of(service, up("Running"))
    refused = problem(501, "NotSupported", "pipelines run on Spark")
    service.on("POST pipelines/p/samply_profile", refused).on("GET pipelines/p/samply_profile", refused)
    with pytest.raises(PipelineAPIError, match="run on Spark"):
        pipeline.start_samply_profile(5)
    assert service.asked("POST pipelines/p/samply_profile")[0][0] == {"duration_secs": "5"}
    with pytest.raises(PipelineAPIError, match="run on Spark"):
        pipeline.get_samply_profile(str(tmp_path / "profile"))
    assert list(tmp_path.iterdir()) == []


def test_the_graph_of_a_stream_program_is_an_object_and_a_picture(service: Scripted, tmp_path: Path) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("GET pipelines/p/stream_graph", {"execution_plan": {"nodes": []}}, (200, "<svg/>"))
    assert pipeline.stream_graph() == {"execution_plan": {"nodes": []}}
    path = tmp_path / "graph.svg"
    assert pipeline.stream_picture(str(path)) == path.read_text() == "<svg/>"
    assert service.asked("GET pipelines/p/stream_graph")[1][0] == {"format": "svg"}

"""Getting rows into a pipeline, and waiting until they are processed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote_plus
from uuid import UUID

import pandas
import pytest
import tenacity

from airflow_pipelines import (
    CompletionTokenStatus,
    PipelineAPIError,
    PipelineFailedError,
)
from airflow_pipelines.sdk.pipelines import inputs, waiting
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from tests.scripted import FAILED, GET, NOT_DEPLOYED, STATS, STOPPED, Scripted, metrics, pipeline_of, problem, up


def test_input_json_encodes_and_waits(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/ingress/t", {"token": "abc=="})
    service.on("GET pipelines/p/completion_status", (202, {"status": "inprogress"}), {"status": "complete"})
    row = {
        "a": Decimal("1.50"),
        "b": date(2026, 1, 2),
        "c": datetime(2026, 1, 2, 3, 4, 5, 6),
        "d": UUID(int=7),
        "e": b"\x01\x02",
        "f": None,
    }
    assert pipeline.input_json("t", row) == "abc=="
    [(params, body)] = service.asked("POST pipelines/p/ingress/t")
    assert params == {"format": "json", "array": "false", "update_format": "raw", "json_flavor": "default", "force": "false"}
    assert body == {
        "a": "1.50",
        "b": "2026-01-02",
        "c": "2026-01-02 03:04:05.000006",
        "d": "00000000-0000-0000-0000-000000000007",
        "e": [1, 2],
        "f": None,
    }
    asked = service.asked("GET pipelines/p/completion_status")
    assert [unquote_plus(params["token"]) for params, _ in asked] == ["abc=="] * 2
    assert "checkpoint" not in asked[0][0]
    pipeline.input_json("t", row, checkpoint=True)
    assert service.asked("GET pipelines/p/completion_status")[-1][0]["checkpoint"] == "true"


def test_input_json_sends_lists_as_arrays_without_waiting_when_told(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/ingress/%22T%22", {"token": "x"})
    pipeline.input_json('"T"', [{"insert": {"i": 1}}], update_format="insert_delete", wait=False)
    [(params, body)] = service.asked("POST pipelines/p/ingress/%22T%22")
    assert (params["array"], params["update_format"], body) == ("true", "insert_delete", [{"insert": {"i": 1}}])


def test_rows_with_a_key_are_sent_with_it_and_asked_for_again(
    service: Scripted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/ingress/t", {"token": "a", "already_there": False}, {"token": "a", "already_there": True})
    sent: list[tuple[Any, Any]] = []
    request = service.client.request

    def seen(method: str, path: str, **options: Any) -> Any:
        sent.append(((options.get("headers") or {}).get("idempotency-key"), options.get("idempotent")))
        return request(method, path, **options)

    monkeypatch.setattr(service.client, "request", seen)
    with caplog.at_level(logging.INFO, logger="airflow_pipelines"):
        pipeline.input_json("t", {"x": 1}, wait=False, force=True, idempotency_key="mine")
        assert "already" not in caplog.text
        pipeline.input_json("t", {"x": 1}, wait=False, force=True, idempotency_key="mine")
    assert "table t of pipeline p has the rows with the key 'mine' already" in caplog.text
    pipeline.input_json("t", {"x": 1}, wait=False, force=True)
    assert sent == [("mine", True), ("mine", True), (None, False)]
    for wrong in ("", "two\nlines", "caf\u00e9", "long" * 200):
        with pytest.raises(ValueError, match="idempotency key"):
            pipeline.input_json("t", {"x": 1}, wait=False, force=True, idempotency_key=wrong)


def test_input_json_refuses_what_cannot_be_sent(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Paused"))
    with pytest.raises(ValueError, match="unknown update_format 'upsert'; known: raw, insert_delete"):
        pipeline.input_json("t", {}, update_format="upsert")
    with pytest.raises(RuntimeError, match=r"'p' is PAUSED: .*force=True"):
        pipeline.input_json("t", {})
    service.on(GET, up("Running"))
    with pytest.raises(ValueError, match="Out of range float"):
        pipeline.input_json("t", {"x": float("nan")})
    with pytest.raises(TypeError, match="unexpected keyword argument 'oops'"):
        pipeline.input_json("t", {}, oops=1)
    assert not service.asked("POST pipelines/p/ingress/t")


def test_input_pandas_sends_in_parts(service: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PANDAS_CHUNK_ROWS", 2)
    info = {"schema": {"inputs": [{"name": "t", "fields": []}], "outputs": []}}
    pipeline = pipeline_of(service, up("Running", program_info=info))
    service.on("POST pipelines/p/ingress/T", {"token": "x"}).on("GET pipelines/p/completion_status", {"status": "complete"})
    frame = pandas.DataFrame({"i": [1, 2, 3], "ts": pandas.to_datetime(["1970-01-02"] * 3)})
    pipeline.input_pandas("T", frame)
    sent = service.asked("POST pipelines/p/ingress/T")
    assert [len(body) for _, body in sent] == [2, 1]
    assert sent[0][0]["json_flavor"] == "pandas"
    assert sent[0][1][0] == {"i": 1, "ts": 86_400_000}
    assert len(service.asked("GET pipelines/p/completion_status")) == 1
    with pytest.raises(ValueError, match="no table 'nope'; it has: t"):
        pipeline.input_pandas("nope", frame)
    service.on(GET, STOPPED | {"program_info": info})
    with pytest.raises(RuntimeError, match="in status STOPPED: it must be RUNNING or PAUSED"):
        pipeline.input_pandas("t", frame)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"idle_interval_s": 5, "timeout_s": 4}, r"idle_interval_s \(5\) is larger than timeout_s \(4\)"),
        ({"idle_interval_s": 1, "timeout_s": 4, "poll_interval_s": 5}, r"poll_interval_s \(5\) is larger than timeout_s \(4\)"),
        ({"idle_interval_s": 0.1}, r"poll_interval_s \(0.2\) is larger than idle_interval_s \(0.1\)"),
    ],
)
def test_wait_for_idle_checks_its_arguments(service: Scripted, arguments: dict[str, float], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        pipeline_of(service, up("Running")).wait_for_idle(**arguments)


def test_wait_for_idle_needs_a_quiet_interval(service: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(STATS, metrics(1, 0), metrics(1, 1), metrics(2, 1), metrics(2, 2))
    pauses: list[float] = []
    for module in (inputs, waiting, tenacity.nap):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append))
    pipeline.wait_for_idle(idle_interval_s=0.5, poll_interval_s=0.0625)
    looks = len(service.asked(STATS))
    assert len(pauses) == looks - 1
    # The fourth look saw the last change.
    assert sum(pauses[3:-1]) < 0.5 <= sum(pauses[3:])


def test_wait_for_idle_says_how_far_it_got(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(STATS, metrics(7, 3))
    with pytest.raises(RuntimeError, match=r"to be idle for 0.1 s; last seen: 7 records received, 3 processed"):
        pipeline.wait_for_idle(idle_interval_s=0.1, timeout_s=0.3, poll_interval_s=0.05)


def test_waits_for_input_end_when_the_pipeline_goes_down(service: Scripted) -> None:
    pipeline = pipeline_of(service, FAILED)
    service.on(STATS, NOT_DEPLOYED).on("GET pipelines/p/completion_status", NOT_DEPLOYED)
    waits: list[Callable[[], None]] = [
        lambda: pipeline.wait_for_idle(idle_interval_s=0.3),
        lambda: pipeline.wait_for_token("x"),
        lambda: pipeline.wait_for_completion(),
    ]
    for wait in waits:
        with pytest.raises(PipelineFailedError, match="division by zero in view v"):
            wait()
    service.on(GET, STOPPED)
    for wait in waits:
        with pytest.raises(PipelineFailedError, match="was stopped while waiting for"):
            wait()


def test_a_token_of_an_earlier_incarnation_is_an_error(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("GET pipelines/p/completion_status", problem(410, "PipelineRestarted", "from before the restart"))
    with pytest.raises(PipelineAPIError, match="from before the restart"):
        pipeline.wait_for_token("x")


def test_waits_end_with_an_output_that_has_failed(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("GET pipelines/p/completion_status", problem(410, "OutputFailed", "output v.out has failed: too long"))
    for ask in (pipeline.wait_for_token, pipeline.completion_token_status):
        with pytest.raises(PipelineAPIError, match=r"output v\.out has failed: too long"):
            ask("x")
    failed = {"endpoint_name": "v.out", "fatal_error": "too long for varchar(5)"}
    service.on(STATS, metrics(5, 5) | {"outputs": [{"endpoint_name": "v.other", "fatal_error": None}, failed]})
    with pytest.raises(
        PipelineFailedError, match=r"cannot come to completion: output v\.out has failed: too long for varchar\(5\)"
    ):
        pipeline.wait_for_completion(timeout_s=5)


def test_token_status(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(
        "GET pipelines/p/completion_status", (202, {"status": "inprogress", "step": 1}), {"status": "complete", "step": None}
    )
    assert pipeline.completion_token_status("x") is CompletionTokenStatus.IN_PROGRESS
    assert pipeline.completion_token_status("x") is CompletionTokenStatus.COMPLETE


def test_wait_for_completion(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Initializing"), up("Running"))
    service.on(STATS, problem(503, "Initializing", "soon"), metrics(5, 3), metrics(5, 5, pipeline_complete=True))
    pipeline.wait_for_completion(timeout_s=5)
    assert pipeline.is_complete()
    service.on(GET, up("Paused"))
    with pytest.raises(RuntimeError, match="cannot come to completion in status PAUSED"):
        pipeline.wait_for_completion()


@pytest.mark.parametrize("ending", ["Stopping", "Suspended"])
def test_wait_for_completion_says_why_a_pipeline_is_about_to_stop(
    service: Scripted, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(inputs, "COMPLETION_POLL_S", 0.01)
    pipeline = pipeline_of(service, up(ending), up(ending), FAILED)
    with pytest.raises(RuntimeError, match="division by zero in view v"):
        pipeline.wait_for_completion(timeout_s=5)
    service.on(GET, up(ending), STOPPED)
    with pytest.raises(RuntimeError, match="was stopped while waiting for completion"):
        pipeline.wait_for_completion(timeout_s=5)


@pytest.mark.parametrize(
    "wait",
    [
        lambda pipeline: pipeline.wait_for_token("x", timeout_s=5),
        lambda pipeline: pipeline.wait_for_completion(timeout_s=5),
        lambda pipeline: pipeline.wait_for_idle(idle_interval_s=0.1, timeout_s=5, poll_interval_s=0.01),
        lambda pipeline: pipeline.checkpoint(wait=True, timeout_s=5),
        lambda pipeline: pipeline.sync_checkpoint(wait=True, timeout_s=5),
    ],
    ids=["token", "completion", "idle", "checkpoint", "sync"],
)
def test_a_wait_says_why_a_pipeline_is_about_to_stop(
    service: Scripted, monkeypatch: pytest.MonkeyPatch, wait: Callable[[Pipeline], Any]
) -> None:
    """Its host refuses requests before the pipeline's error is known."""
    monkeypatch.setattr(inputs, "STATUS_POLL_S", 0.01)
    monkeypatch.setattr(inputs, "COMPLETION_POLL_S", 0.01)
    ending = problem(410, "Terminating", "the pipeline p is being stopped")
    service.on("POST pipelines/p/checkpoint", {"checkpoint_sequence_number": 1})
    service.on("POST pipelines/p/checkpoint/sync", (202, {"checkpoint_uuid": "01900000-0000-7000-8000-000000000000"}))
    for request in ("completion_status", "checkpoint_status", "checkpoint/sync_status"):
        service.on(f"GET pipelines/p/{request}", ending)
    service.on(STATS, ending, ending, NOT_DEPLOYED)
    pipeline = pipeline_of(service, up("Running"), up("Running"), FAILED)
    with pytest.raises(PipelineFailedError, match="division by zero in view v"):
        wait(pipeline)

"""A service that is away for a while, and what is asked of it meanwhile."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.sdk import outages, wire
from airflow_pipelines.sdk.client import AsyncPipelineClient, PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineConnectionError, PipelineUnreachableError, UntrustedServiceError
from tests.fixtures.serving import serving
from tests.scripted import Scripted, problem

pytestmark = pytest.mark.core

AWAY = problem(502, "", "bad gateway")
PUSH = "POST pipelines/p/ingress/t"
ASK = "GET pipelines/p"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "_PAUSES", RetryPolicy(first_wait_s=0.02, longest_wait_s=0.02))
    monkeypatch.setattr(wire, "RETRY_WAITS_S", (0.01, 0.01, 0.01))


def patient(app: Scripted, budget_s: float = 30.0) -> PipelineClient:
    return PipelineClient(app=app, outage_budget_s=budget_s)


def test_an_outage_is_waited_for_and_told_twice(caplog: pytest.LogCaptureFixture) -> None:
    service = Scripted().on(ASK, *[AWAY] * 10, {"name": "p"})
    with caplog.at_level(logging.INFO, "airflow_pipelines.sdk.outages"):
        assert patient(service).get("/v0/pipelines/p") == {"name": "p"}
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "is away, and is tried again for up to 30 s: bad gateway" in caplog.records[0].message
    assert "answers again" in caplog.records[1].message


def test_an_outage_that_takes_too_long_is_an_error() -> None:
    service = Scripted().on(ASK, AWAY)
    with pytest.raises(PipelineAPIError, match="bad gateway"):
        patient(service, 0.1).get("/v0/pipelines/p")
    assert len(service.requests) > 1


def test_what_may_not_be_repeated_is_not_repeated_when_it_may_have_been_seen() -> None:
    service = Scripted().on(PUSH, AWAY, {"token": "t"})
    with pytest.raises(PipelineAPIError, match="bad gateway"):
        patient(service).post("/v0/pipelines/p/ingress/t", json=[])
    assert len(service.requests) == 1


def test_one_try_is_one_try() -> None:
    service = Scripted().on(ASK, AWAY)
    with pytest.raises(PipelineAPIError, match="bad gateway"):
        patient(service).get("/v0/pipelines/p", outage_budget_s=0.0)
    assert len(service.requests) == 1


def test_a_phase_of_the_pipeline_is_no_outage_of_the_service() -> None:
    service = Scripted().on(ASK, problem(503, "BootstrapInProgress", "later"))
    started = time.monotonic()
    with pytest.raises(PipelineAPIError, match="later"):
        patient(service).get("/v0/pipelines/p")
    assert len(service.requests) == 1 + len(wire.RETRY_WAITS_S)
    assert time.monotonic() - started < 10


def test_a_refusal_is_no_outage() -> None:
    service = Scripted().on(ASK, problem(401, "Unauthorized", "no key"))
    with pytest.raises(PipelineAPIError, match="no key"):
        patient(service).get("/v0/pipelines/p")
    assert len(service.requests) == 1


def test_the_asynchronous_client_is_as_patient() -> None:
    service = Scripted().on(ASK, *[AWAY] * 10, {"name": "p"})

    async def ask() -> Any:
        async with AsyncPipelineClient(app=service, outage_budget_s=30.0) as client:
            return await client.get("/v0/pipelines/p")

    assert asyncio.run(ask()) == {"name": "p"}


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return int(unused.getsockname()[1])


@pytest.mark.processes
def test_a_request_that_nobody_can_have_seen_is_made_again_whatever_it_is(closed_port: int) -> None:
    app = FastAPI()
    seen: list[int] = []
    app.post("/v0/pipelines/p/ingress/t")(lambda: seen.append(1) or {"token": "t"})
    client = PipelineClient(f"http://127.0.0.1:{closed_port}", outage_budget_s=30.0)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(client.post("/v0/pipelines/p/ingress/t", json=[])))
    asking.start()
    time.sleep(0.2)
    assert asking.is_alive()
    with serving(app, closed_port):
        asking.join(20)
    assert (answers, seen) == ([{"token": "t"}], [1])


@pytest.mark.processes
def test_without_a_budget_nobody_there_is_an_error_at_once(closed_port: int) -> None:
    with pytest.raises(PipelineUnreachableError, match="cannot talk to"):
        PipelineClient(f"http://127.0.0.1:{closed_port}").post("/v0/pipelines", json={})
    started = time.monotonic()
    with pytest.raises(PipelineUnreachableError):
        PipelineClient(f"http://127.0.0.1:{closed_port}", outage_budget_s=0.2).get("/v0/config")
    assert 0.2 <= time.monotonic() - started < 5
    assert issubclass(PipelineUnreachableError, PipelineConnectionError)


@pytest.fixture
def https(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A service over TLS, and the certificate of itself that it shows."""
    import subprocess

    import uvicorn

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    app = FastAPI()
    app.get("/v0/config")(lambda: {"version": "1"})
    config = uvicorn.Config(app, log_level="warning", ssl_certfile=str(certificate), ssl_keyfile=str(key))
    with serving(app, config=config) as url:
        yield url.replace("http://", "https://"), certificate


@pytest.mark.rest
@pytest.mark.processes
def test_a_service_is_trusted_by_its_authority_or_not_at_all(https: tuple[str, Path]) -> None:
    url, certificate = https
    assert PipelineClient(url, verify=str(certificate)).version() == "1"
    assert PipelineClient(url, verify=False).version() == "1"
    started = time.monotonic()
    with pytest.raises(UntrustedServiceError, match=r"is not trusted.*name the file of the authority"):
        PipelineClient(url, outage_budget_s=30.0).version()
    assert time.monotonic() - started < 10, "it is not tried again"

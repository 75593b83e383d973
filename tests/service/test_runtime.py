"""A pipeline's life through the REST API, on a real host in this process."""

from __future__ import annotations

import time

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.control_plane import ControlPlane
from tests.service.waiting import status, until

pytestmark = pytest.mark.core

PROGRAM = """create table t(id bigint not null primary key, v varchar) with ('materialized' = 'true');
create materialized view w as select v, count(*) as n from t group by v;"""


def run(rest: TestClient, name: str) -> None:
    assert rest.post("/v0/pipelines", json={"name": name, "program_code": PROGRAM}).status_code == 201
    assert rest.post(f"/v0/pipelines/{name}/start").status_code == 202
    until(lambda: status(rest, name)["deployment_status"] == "Running" or status(rest, name)["deployment_error"])
    assert status(rest, name)["deployment_error"] is None


def test_the_whole_life_leaves_exactly_these_events(rest: TestClient, name: str) -> None:
    assert rest.post("/v0/pipelines", json={"name": name, "program_code": PROGRAM}).status_code == 201
    until(lambda: status(rest, name)["program_status"] == "Success")
    assert status(rest, name)["refresh_version"] == 3
    rest.post(f"/v0/pipelines/{name}/start")
    until(lambda: status(rest, name)["deployment_status"] == "Running")
    for action, reached in (("pause", "Paused"), ("resume", "Running")):
        assert rest.post(f"/v0/pipelines/{name}/{action}").status_code == 202
        until(lambda reached=reached: status(rest, name)["deployment_status"] == reached)
    assert status(rest, name)["refresh_version"] <= 15
    rest.post(f"/v0/pipelines/{name}/stop?force=true")
    until(lambda: status(rest, name)["deployment_status"] == "Stopped")
    rest.post(f"/v0/pipelines/{name}/clear")
    until(lambda: status(rest, name)["storage_status"] == "Cleared")
    seen = [
        "/".join(
            str(event[key])
            for key in (
                "deployment_resources_status", "deployment_resources_desired_status", "deployment_runtime_status",
                "program_status", "storage_status",
            )
        )
        for event in reversed(rest.get(f"/v0/pipelines/{name}/events").json())
    ]  # fmt: skip
    assert seen == [
        "Stopped/Stopped/None/Pending/Cleared",
        "Stopped/Stopped/None/CompilingSql/Cleared",
        "Stopped/Stopped/None/SqlCompiled/Cleared",
        "Stopped/Stopped/None/CompilingRust/Cleared",
        "Stopped/Stopped/None/Success/Cleared",
        "Stopped/Provisioned/None/Success/Cleared",
        "Stopped/Provisioned/None/Success/InUse",
        "Provisioning/Provisioned/None/Success/InUse",
        "Provisioned/Provisioned/Initializing/Success/InUse",
        "Provisioned/Provisioned/Running/Success/InUse",
        "Provisioned/Provisioned/Paused/Success/InUse",
        "Provisioned/Provisioned/Running/Success/InUse",
        "Provisioned/Stopped/Running/Success/InUse",
        "Stopping/Stopped/None/Success/InUse",
        "Stopped/Stopped/None/Success/InUse",
        "Stopped/Stopped/None/Success/Clearing",
        "Stopped/Stopped/None/Success/Cleared",
    ]


def test_rows_go_in_and_answers_come_out(rest: TestClient, name: str) -> None:
    run(rest, name)
    url = f"/v0/pipelines/{name}"
    token = rest.post(f"{url}/ingress/t?format=json&update_format=raw", content=b'{"id": 1, "v": "a"}').json()["token"]
    until(lambda: rest.get(f"{url}/completion_status", params={"token": token}).json()["status"] == "complete")
    rows = rest.get(f"{url}/query", params={"sql": "select v, n from w", "format": "json"})
    assert rows.json() == {"v": "a", "n": 1}
    quoted = rest.post(f"{url}/ingress/%22T%22?format=json", content=b"")
    assert quoted.status_code == 404
    bad = rest.get(f"{url}/query", params={"sql": "select * from nowhere"})
    assert (bad.status_code, bad.json()["error_code"]) == (400, "AdHocQueryError")
    assert rest.get(f"{url}/stats").json()["global_metrics"]["total_completed_records"] == 1
    location = rest.get(f"{url}/deployment").json()["deployment_location"]
    assert location["kind"] == "shared"
    assert "token" not in location
    assert rest.post(f"{url}/approve").status_code == 200

    rest.post(f"{url}/stop")
    until(lambda: status(rest, name)["deployment_status"] == "Stopped")
    assert len(status(rest, name)["storage_status_details"]["checkpoints"]) == 1
    gone = rest.get(f"{url}/stats")
    assert (gone.status_code, gone.json()["error_code"]) == (503, "PipelineInteractionNotDeployed")


@pytest.mark.core(slow_because="a pipeline is started with one change after the other")
def test_an_approval_is_for_the_programs_that_were_shown(rest: TestClient, name: str) -> None:
    run(rest, name)
    url = f"/v0/pipelines/{name}"
    rest.post(f"{url}/ingress/t?format=json&update_format=raw", content=b'{"id": 1, "v": "a"}')
    rest.post(f"{url}/stop")
    until(lambda: status(rest, name)["deployment_status"] == "Stopped")
    kept = status(rest, name)["storage_status_details"]
    shown = []
    # Two programs with the same names, so that their differences look the same.
    for aggregate in ("max(id)", "min(id)"):
        changed = rest.patch(url, json={"program_code": PROGRAM.replace("count(*)", aggregate)}).json()
        rest.post(f"{url}/start")
        until(lambda: status(rest, name)["deployment_status"] == "AwaitingApproval")
        shown.append(status(rest, name)["deployment_runtime_status_details"])
        assert shown[-1]["programs"]["new"]["version"] == changed["program_version"]
        if aggregate == "max(id)":
            rest.post(f"{url}/stop")
            until(lambda: status(rest, name)["deployment_status"] == "Stopped", 10)
            assert status(rest, name)["deployment_error"] is None
            assert status(rest, name)["storage_status_details"] == kept
    assert shown[0]["approval_diff"] == shown[1]["approval_diff"]
    programs = shown[1]["programs"]
    assert programs["saved"] == shown[0]["programs"]["saved"]
    assert programs["saved"]["version"] == 1
    assert programs["new"]["hash"] != shown[0]["programs"]["new"]["hash"]

    other_saved = {**programs, "saved": {**programs["saved"], "version": 9}}
    for expected in (shown[0]["programs"], other_saved):
        refused = rest.post(f"{url}/approve", json={"programs": expected})
        assert (refused.status_code, refused.json()["error_code"]) == (412, "UnexpectedProgram")
    no_version = {**programs, "new": {**programs["new"], "version": None}}
    for body in (
        {},
        {"programs": None},
        {"programs": {}},
        {"programs": no_version},
        {"programs": {"new": programs["new"]}},
        [],
        "",
    ):
        refused = rest.post(f"{url}/approve", json=body)
        assert (refused.status_code, refused.json()["error_code"]) == (400, "InvalidParam"), body
    assert status(rest, name)["deployment_status"] == "AwaitingApproval"

    assert rest.post(f"{url}/approve", json={"programs": programs}).status_code == 200
    until(lambda: status(rest, name)["deployment_status"] == "Running")
    # Nothing waits any more: the programs are compared nevertheless, and a client that expects nothing is a no-op.
    assert rest.post(f"{url}/approve", json={"programs": programs}).status_code == 200
    assert rest.post(f"{url}/approve", json={"programs": shown[0]["programs"]}).status_code == 412
    assert rest.post(f"{url}/approve", json=None).status_code == 200


@pytest.mark.rest
def test_a_program_that_has_to_compile_does_not_replace_one_that_does_if_it_does_not(rest: TestClient, name: str) -> None:
    url = f"/v0/pipelines/{name}"
    strict = f"{url}?allow_compile_errors=false"
    body = {"name": name, "program_code": PROGRAM}
    rest.post("/v0/pipelines", json=body)
    until(lambda: status(rest, name)["program_status"] == "Success")
    before = rest.get(url).json()
    wrong = PROGRAM.replace("count(*)", "sum(nope)")
    tries = [
        rest.patch(strict, json={"program_code": wrong}),
        rest.put(strict, json=body | {"program_code": wrong}),
        rest.post(f"{url}/validate", json=body | {"program_code": wrong}),
    ]
    for refused in tries:
        assert (refused.status_code, refused.json()["error_code"]) == (400, "InvalidNewProgramSql")
        assert "line 2, column 45" in refused.json()["message"]
        assert "nope" in refused.json()["details"]["sql_compilation"]["messages"][0]["message"]
    for config, code in (({"workers": 0}, "InvalidRuntimeConfig"), ({}, None)):
        answer = rest.post(f"{url}/validate", json=body | {"runtime_config": config})
        assert (answer.status_code == 200) is (code is None), answer.text
    assert rest.patch(strict, json={"program_code": ""}).json()["error_code"] == "EmptyProgram"
    assert rest.get(url).json() == before

    # One that compiles is compiled once, and is there with the answer.
    right = rest.patch(strict, json={"program_code": PROGRAM.replace("count(*)", "max(id)")}).json()
    assert (right["program_status"], right["program_version"], right["refresh_version"]) == (
        "Success",
        2,
        before["refresh_version"] + 3,
    )
    events = [event["program_status"] for event in rest.get(f"{url}/events").json()]
    assert events[:5] == ["Success", "CompilingRust", "SqlCompiled", "CompilingSql", "Pending"]
    changed = rest.patch(url, json={"program_code": wrong})
    assert (changed.status_code, changed.json()["program_status"]) == (200, "Pending")
    until(lambda: status(rest, name)["program_status"] == "SqlError")


@pytest.mark.rest
def test_a_program_that_does_not_compile_ends_an_early_start(rest: TestClient, name: str) -> None:
    rest.post("/v0/pipelines", json={"name": name, "program_code": "create view v as select * from blah;"})
    rest.post(f"/v0/pipelines/{name}/start")
    until(lambda: status(rest, name)["deployment_error"] is not None or status(rest, name)["program_status"] == "SqlError")
    record = rest.get(f"/v0/pipelines/{name}").json()
    message = record["program_error"]["sql_compilation"]["messages"][0]
    assert "blah" in message["message"]
    assert record["deployment_desired_status"] == "Stopped" or record["deployment_error"] is None
    refused = rest.post(f"/v0/pipelines/{name}/start")
    assert refused.json()["error_code"] == "CannotStartWithCompilationError"
    corrected = rest.patch(f"/v0/pipelines/{name}", json={"program_code": PROGRAM})
    assert corrected.json()["program_version"] == 2
    until(lambda: status(rest, name)["program_status"] == "Success")


def test_validating_a_program_keeps_nothing(rest: TestClient) -> None:
    good = rest.post("/v0/validate_program", json={"program_code": PROGRAM}).json()
    assert [relation["name"] for relation in good["Success"]["program_info"]["schema"]["inputs"]] == ["t"]
    bad = rest.post("/v0/validate_program", json={"program_code": "create table t(id nonsense);"}).json()
    assert bad["SqlError"]["info"]["messages"]


@pytest.mark.rest
def test_two_services_over_one_store_deploy_once(service_app: FastAPI, rest: TestClient, name: str) -> None:
    first: ControlPlane = service_app.state.control_plane
    second_app = create_app(first.settings)
    second = TestClient(second_app, "http://127.0.0.1")
    rest.post("/v0/pipelines", json={"name": name, "program_code": PROGRAM})
    for api in (second, rest):
        assert api.post(f"/v0/pipelines/{name}/start").status_code == 202
    until(lambda: {status(api, name)["deployment_status"] for api in (rest, second)} == {"Running"})
    seen = [event.deployment_resources_status for event in first.events(name)]
    assert seen.count("Provisioning") == 1
    record = first.pipeline(name)
    host = next(host for host in first.registry.live_hosts("shared") if host.host_id == record.host_id)
    pipelines = [other.deployment_id for other in first.store.all()]
    running = first.hosts.call(host, "GET", "/health").json()["deployments"]
    assert running.count(str(record.deployment_id)) == 1
    assert set(running) <= {str(deployment_id) for deployment_id in pipelines}
    second.post(f"/v0/pipelines/{name}/stop?force=true")
    until(lambda: status(rest, name)["deployment_status"] == "Stopped")
    second_app.state.control_plane.close()


@pytest.mark.rest
def test_creating_and_starting_are_quick_on_a_warm_host(rest: TestClient, name: str) -> None:
    rest.post("/v0/pipelines", json={"name": f"{name[:50]}-warm", "program_code": PROGRAM})
    until(lambda: status(rest, f"{name[:50]}-warm")["program_status"] == "Success")
    rest.delete(f"/v0/pipelines/{name[:50]}-warm")
    began = time.monotonic()
    run(rest, name)
    # 0.13 s on a quiet machine; the limit leaves room for a busy one.
    assert time.monotonic() - began < 10

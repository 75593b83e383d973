"""The REST API without a running pipeline: keys, records, errors, events, logs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.compiling import Compiled
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.follow import BEGINNING, follow_log
from tests.service import records as given

ALL_KEYS = {
    "id", "name", "description", "tags", "created_at", "version", "platform_version", "runtime_config", "program_code",
    "udf_rust", "udf_toml", "program_config", "program_version", "program_status", "program_status_since",
    "program_error", "program_info", "deployment_status", "deployment_status_since", "deployment_desired_status",
    "deployment_desired_status_since", "deployment_error", "refresh_version", "storage_status",
    "storage_status_details", "deployment_resources_status", "deployment_resources_status_details",
    "deployment_resources_status_since", "deployment_resources_desired_status",
    "deployment_resources_desired_status_since", "deployment_runtime_status", "deployment_runtime_status_details",
    "deployment_runtime_status_since", "deployment_runtime_desired_status", "deployment_runtime_desired_status_since",
    "deployment_initial", "deployment_id", "bootstrap_policy", "silent_bootstrap", "concurrent_bootstrap",
}  # fmt: skip
NOT_IN_STATUS = {
    "runtime_config", "program_code", "udf_rust", "udf_toml", "program_error", "program_info",
    "deployment_resources_status_details",
}  # fmt: skip
BOOTSTRAP = {"bootstrap_policy", "silent_bootstrap", "concurrent_bootstrap"}


@pytest.fixture
def api(app: FastAPI) -> TestClient:
    return TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service with a pipeline ``p``, for many requests that it refuses and that change nothing."""
    app = create_app(Settings.load(tmp_path_factory.mktemp("refusing"), api_keys=("key",)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(app.state.control_plane.compiler, "host", lambda: None)
        client = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
        client.headers["Authorization"] = "Bearer key"
        create(client)
        yield client
        app.state.control_plane.close()


def create(api: TestClient, name: str = "p", **fields: Any) -> Any:
    answer = api.post("/v0/pipelines", json={"name": name, "program_code": "create table t(id int);", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_descriptors_have_exactly_the_keys_of_their_selector(api: TestClient) -> None:
    assert set(create(api)) == ALL_KEYS - BOOTSTRAP
    assert len(ALL_KEYS) == 40
    assert set(api.get("/v0/pipelines/p").json()) == ALL_KEYS
    assert set(api.get("/v0/pipelines/p?selector=status").json()) == ALL_KEYS - NOT_IN_STATUS
    with_connectors = api.get("/v0/pipelines?selector=status_with_connectors").json()[0]
    assert set(with_connectors) == ALL_KEYS - NOT_IN_STATUS | {"connectors"}
    assert with_connectors["created_at"].endswith("Z")


def test_put_creates_replaces_and_renames(api: TestClient) -> None:
    body = {"name": "p", "program_code": "", "description": "d", "tags": ["t"]}
    assert api.put("/v0/pipelines/p", json=body).status_code == 201
    second = api.put("/v0/pipelines/p", json={"name": "q", "program_code": ""})
    assert (second.status_code, second.json()["name"], second.json()["description"], second.json()["tags"]) == (200, "q", "", [])
    missing = api.put("/v0/pipelines/gone", json={"name": "other", "program_code": ""})
    assert (missing.status_code, missing.json()["error_code"]) == (400, "CannotRenameNonExistingPipeline")


def test_patch_leaves_out_what_is_null(api: TestClient) -> None:
    create(api, description="d")
    after = api.patch("/v0/pipelines/p", json={"description": None, "tags": ["x"]}).json()
    assert (after["description"], after["tags"], after["version"]) == ("d", ["x"], 1)


def test_delete_answers_with_nothing(api: TestClient, app: FastAPI) -> None:
    created = create(api)
    log = app.state.control_plane.settings.logs / f"{created['id']}.log"
    assert log.exists()
    answer = api.delete("/v0/pipelines/p")
    assert (answer.status_code, answer.content) == (200, b"")
    assert not log.exists()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/v0/pipelines/none", None, 404, "UnknownPipelineName"),
        ("POST", "/v0/pipelines/none/start", None, 404, "UnknownPipelineName"),
        ("POST", "/v0/pipelines/none/start_transaction", None, 404, "UnknownPipelineName"),
        ("GET", "/v0/pipelines/none/stats", None, 404, "UnknownPipelineName"),
        ("GET", "/v0/pipelines/none/logs", None, 404, "UnknownPipelineName"),
        ("POST", "/v0/pipelines", b'{"name": ', 400, "InvalidParam"),
        ("POST", "/v0/pipelines", b"[]", 400, "InvalidParam"),
        ("POST", "/v0/pipelines", b'{"program_code": ""}', 400, "InvalidParam"),
        ("POST", "/v0/pipelines", b'{"name": "p", "program_code": ""}', 409, "DuplicateName"),
        ("GET", "/v0/pipelines/p?selector=some", None, 400, "InvalidParam"),
        ("POST", "/v0/pipelines/p/start?initial=flying", None, 405, "UnsupportedPipelineAction"),
        ("POST", "/v0/pipelines/p/start?bootstrap_policy=maybe", None, 400, "InvalidParam"),
        ("POST", "/v0/pipelines/p/start?silent_bootstrap=perhaps", None, 400, "InvalidParam"),
        ("POST", "/v0/pipelines/p/start?from_checkpoint=latest", None, 400, "InvalidParam"),
        ("POST", "/v0/pipelines/p/start?silent_bootstrap=true&concurrent_bootstrap=true", None, 400, "InvalidBootstrapConfig"),
        ("POST", "/v0/pipelines/p/pause", None, 503, "PipelineInteractionNotDeployed"),
        ("POST", "/v0/pipelines/p/approve", None, 503, "PipelineInteractionNotDeployed"),
        ("POST", "/v0/pipelines/p/plan", b"null", 503, "PipelineInteractionNotDeployed"),
        ("POST", "/v0/pipelines/p/diff", b"null", 404, "ProgramNotCompiled"),
        ("POST", "/v0/pipelines/p/diff", b'{"runtime_version": "0.0.1"}', 400, "InvalidRuntimeVersion"),
        ("POST", "/v0/pipelines/p/diff", b'{"sql": ""}', 400, "InvalidParam"),
        ("POST", "/v0/pipelines/p/activate?initial=Standby", None, 400, "InvalidActivateStatus"),
        ("POST", "/v0/pipelines/p/ingress/t", b"", 503, "PipelineInteractionNotDeployed"),
        ("GET", "/v0/pipelines/p/query?sql=select", None, 503, "PipelineInteractionNotDeployed"),
        ("POST", "/v0/pipelines/p/tables/t/connectors/c/explode", None, 400, "InvalidConnectorAction"),
        ("POST", "/v0/pipelines/p/commit_transaction", None, 503, "PipelineInteractionNotDeployed"),
        ("GET", "/v0/pipelines/p/heap_profile", None, 501, "NotSupported"),
        ("POST", "/v0/pipelines/p/testing", None, 405, "UnsupportedPipelineAction"),
        ("POST", "/v0/pipelines/none/testing", None, 404, "UnknownPipelineName"),
        ("POST", "/v0/tenants", b"{}", 501, "NotSupported"),
        ("GET", "/v0/api_keys/none", None, 404, "UnknownApiKey"),
        ("DELETE", "/v0/api_keys/none", None, 404, "UnknownApiKey"),
        ("POST", "/v0/api_keys", b'{"name": "k", "role": "owner"}', 400, "InvalidParam"),
        ("POST", "/v0/api_keys", b'{"name": "k", "role": ["read"]}', 400, "InvalidParam"),
        ("POST", "/v0/api_keys", b'{"role": "read"}', 400, "InvalidParam"),
        ("GET", "/v0/pipelines/p/events/nonsense", None, 400, "InvalidParam"),
        ("GET", "/v0/pipelines/p/events/01a1fb90-d7df-7a63-ade7-2fb223ea3df4", None, 404, "UnknownPipelineMonitorEvent"),
        ("GET", "/v0/nothing", None, 404, "UnknownEndpoint"),
        ("DELETE", "/v0/config", None, 405, "MethodNotAllowed"),
    ],
)
def test_errors_have_the_form_of_the_contract(
    refusing: TestClient, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    answer = refusing.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert set(answer.json()) == {"message", "error_code", "details"}
    assert answer.json()["message"]


def test_what_is_missing_is_named(api: TestClient) -> None:
    create(api)
    assert "circuit_profile" in api.get("/v0/pipelines/p/heap_profile").json()["message"]


def test_a_repeated_start_is_a_no_op_and_another_one_is_refused(api: TestClient) -> None:
    create(api)
    assert [api.post("/v0/pipelines/p/start", json=None).status_code for _ in range(2)] == [202, 202]
    other = api.post("/v0/pipelines/p/start?initial=paused")
    assert other.json()["error_code"] == "InitialImmutableUnlessStopped"
    refused = api.patch("/v0/pipelines/p", json={"program_code": "x"})
    assert refused.json()["error_code"] == "UpdateRestrictedToStopped"
    assert api.post("/v0/pipelines/p/stop").status_code == 202
    assert api.get("/v0/pipelines/p").json()["deployment_initial"] is None


def test_keys(tmp_path: Path) -> None:
    app = create_app(Settings.load(tmp_path, api_keys=("one", "two")))
    with TestClient(app) as api:
        assert api.get("/healthz").json() == {"status": "healthy"}
        assert api.get("/config/authentication").json() == {}
        for headers in ({}, {"Authorization": "Bearer three"}, {"Authorization": "Basic one"}, {"Authorization": "Bearer "}):
            answer = api.get("/v0/pipelines", headers=headers)
            assert (answer.status_code, answer.json()["error_code"]) == (401, "Unauthorized")
        for key in ("one", "two"):
            assert api.get("/v0/pipelines", headers={"Authorization": f"Bearer {key}"}).json() == []


def test_the_service_describes_itself(api: TestClient) -> None:
    config = api.get("/v0/config").json()
    assert config["edition"] == "Enterprise"
    assert {"version", "revision", "changelog_url", "license_validity", "telemetry", "update_info"} <= set(config)
    session = api.get("/v0/config/session").json()
    assert (session["tenant_name"], session["role"]) == ("default", "write")
    assert api.get("/v0/tenants").json() == [{"id": session["tenant_id"], "name": "default"}]
    assert api.get("/v0/oidc_trust").json() == api.get("/v0/config/demos").json() == []
    health = api.get("/v0/cluster_healthz")
    assert (health.status_code, health.json()["all_healthy"]) == (200, True)
    create(api)
    assert 'pipelines_total{status="Stopped"} 1' in api.get("/v0/metrics").text


def test_a_fault_of_the_compiler_is_no_fault_of_the_program(app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Problem(ErrorCode.COMPILER_FAILED, "The compiler failed on this program (KeyError).")

    monkeypatch.setattr(app.state.control_plane.programs, "compile", fail)
    answer = api.post("/v0/validate_program", json={"program_code": "create table t (x int);"})
    assert (answer.status_code, answer.json()) == (
        200,
        {"SystemError": {"error": "The compiler failed on this program (KeyError)."}},
    )


def test_events_by_id_and_selector(api: TestClient) -> None:
    create(api)
    api.post("/v0/pipelines/p/start")
    events = api.get("/v0/pipelines/p/events").json()
    assert [event["deployment_resources_desired_status"] for event in events] == ["Provisioned", "Stopped"]
    assert api.get(f"/v0/pipelines/p/events/{events[1]['event_id']}").json() == events[1]
    latest = api.get("/v0/pipelines/p/events/latest?selector=all").json()
    assert latest["event_id"] == events[0]["event_id"]
    assert latest.keys() - events[0].keys() == {
        "deployment_resources_status_details",
        "deployment_runtime_status_details",
        "deployment_error",
        "storage_status_details",
    }


def test_logs_are_followed_until_the_pipeline_is_deleted(app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.service.follow.EXISTS_S", 0.0)
    control_plane: ControlPlane = app.state.control_plane
    create(api)
    record = control_plane.pipeline("p")
    path = control_plane.files.log(record)

    async def follow() -> list[bytes]:
        chunks = []
        async for chunk in follow_log(control_plane, record.id, path):
            chunks.append(chunk)
            if len(chunks) == 2:
                with path.open("a") as log:
                    log.write("more\n")
            elif len(chunks) == 3:
                control_plane.delete("p")
        return chunks

    beginning, first, second = asyncio.run(asyncio.wait_for(follow(), 10))
    assert beginning == b"Fresh start of pipeline log\n"
    assert b"The pipeline was created" in first
    assert second == b"more\n"


def test_a_log_is_followed_from_where_it_ends(app: FastAPI, api: TestClient) -> None:
    control_plane: ControlPlane = app.state.control_plane
    create(api)
    record = control_plane.pipeline("p")
    path = control_plane.files.log(record)

    async def follow() -> list[bytes]:
        chunks = []
        async for chunk in follow_log(control_plane, record.id, path, from_end=True):
            chunks.append(chunk)
            if len(chunks) == 2:
                break
            with path.open("a") as log:
                log.write("written after the first line was taken\n")
        return chunks

    assert asyncio.run(asyncio.wait_for(follow(), 10)) == [BEGINNING, b"written after the first line was taken\n"]


def test_database_errors_do_not_show_what_was_written(app: FastAPI, api: TestClient) -> None:
    with app.state.control_plane.store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE pipelines")
    answer = api.post("/v0/pipelines", json={"name": "p", "program_code": "select 's3cret'"})
    assert (answer.status_code, answer.json()["error_code"]) == (503, "StoreUnavailable")
    assert "s3cret" not in answer.text


def test_json_that_cannot_be_answered_is_never_stored(api: TestClient) -> None:
    create(api)
    for fields, place in (
        (b'"runtime_config": {"env": {"A": "\\udfff"}}', "runtime_config.env.A"),
        (b'"runtime_config": {"dev_tweaks": {"x": [NaN]}}', "runtime_config.dev_tweaks.x[0]"),
        (b'"udf_python": "\\ud800"', "udf_python"),
        (b'"tags": ' + b"[" * 100_000, "levels deep"),
    ):
        body = b'{"name": "q", "program_code": "", ' + fields + b"}"
        for method, path in (("POST", "/v0/pipelines"), ("PUT", "/v0/pipelines/q"), ("PATCH", "/v0/pipelines/p")):
            answer = api.request(method, path, content=body, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["error_code"]) == (400, "InvalidParam")
            assert place in answer.json()["message"]
    assert [pipeline["name"] for pipeline in api.get("/v0/pipelines").json()] == ["p"]


def test_a_bad_record_does_not_hide_the_others(app: FastAPI, api: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    # What earlier releases kept can be shown; what makes no sense is left out.
    shown = {
        "half": ("runtime_config", """'{"env": {"A": "\\udfff"}}'"""),
        "nan": ("program_info", """'{"x": NaN, "y": Infinity}'"""),
    }
    left_out = {
        "json": ("runtime_config", "'{broken'"),
        "list": ("runtime_config", "'[1]'"),
        "tags": ("tags", "'7'"),
        "status": ("program_status", "'Confused'"),
        "time": ("created_at", "'yesterday'"),
        "text": ("description", "CAST(X'FFFE' AS TEXT)"),
    }
    for name in ("good", *shown, *left_out):
        create(api, name)
    with app.state.control_plane.store.engine.begin() as connection:
        for name, (column, value) in (shown | left_out).items():
            connection.exec_driver_sql(f"UPDATE pipelines SET {column} = {value} WHERE name = '{name}'")
    for selector in ("all", "status", "status_with_connectors"):
        answer = api.get(f"/v0/pipelines?selector={selector}")
        assert answer.status_code == 200
        assert {pipeline["name"] for pipeline in answer.json()} == {"good", *shown}
    assert "pipelines_total" in api.get("/v0/metrics").text
    for name in shown:
        assert api.get(f"/v0/pipelines/{name}").status_code == 200
        assert api.patch(f"/v0/pipelines/{name}", json={"runtime_config": {}}).status_code == 200
    for name in left_out:
        answer = api.get(f"/v0/pipelines/{name}")
        assert (answer.status_code, answer.json()["error_code"]) == (500, "PipelineRecordDamaged")
        assert f"Row {name} of pipelines cannot be read and is left out" in caplog.text


def test_a_bad_event_does_not_hide_the_others(app: FastAPI, api: TestClient) -> None:
    create(api)
    api.post("/v0/pipelines/p/start")
    with app.state.control_plane.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE pipeline_events SET deployment_error = '{' WHERE sequence = 1")
    assert len(api.get("/v0/pipelines/p/events").json()) == 1


def test_programs_and_queries_have_a_size(api: TestClient) -> None:
    create(api)
    large = "ä" * (2 * 2**20 + 1)
    for answer in (
        api.post("/v0/pipelines", json={"name": "q", "program_code": large}),
        api.patch("/v0/pipelines/p", json={"udf_python": large}),
        api.post("/v0/validate_program", json={"program_code": large}),
        api.post("/v0/pipelines/p/query", json={"sql": large}),
    ):
        assert (answer.status_code, answer.json()["details"]) == (413, {"limit": 4 * 2**20})
    assert api.post("/v0/pipelines", json={"name": "q", "program_code": large[:-1]}).status_code == 201


def test_an_internal_error_closes_its_connection_with_notice(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise KeyError("unforeseen")

    monkeypatch.setattr(app.state.control_plane, "pipelines", broken)
    answer = TestClient(app, raise_server_exceptions=False, base_url="http://localhost").get("/v0/pipelines")
    assert (answer.status_code, answer.json()["error_code"], answer.headers["connection"]) == (500, "InternalError", "close")


def test_a_new_program_is_answered_before_it_is_compiled_unless_it_has_to_compile(
    app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane = app.state.control_plane
    plane.store.create(given.stopped())
    asked: list[str] = []

    def compile_source(source: ProgramSource) -> Compiled:
        asked.append(source.sql)
        return Compiled(None, [{"message": "no", "warning": False}])

    monkeypatch.setattr(plane.programs, "compile", compile_source)
    for method in ("PATCH", "PUT"):
        refused = api.request(method, "/v0/pipelines/p?allow_compile_errors=false", json={"program_code": f"wrong {method}"})
        assert (refused.status_code, refused.json()["error_code"]) == (400, "InvalidNewProgramSql")
    assert asked == ["wrong PATCH", "wrong PUT"]
    assert api.get("/v0/pipelines/p").json()["program_status"] == "Success"
    for version, method in ((2, "PATCH"), (3, "PUT")):
        changed = api.request(method, "/v0/pipelines/p", json={"program_code": f"wrong {method}"})
        assert changed.status_code == 200
        fields = changed.json()
        # Of the refresh versions the first one is of the creation, the next two are of a program that was compiled.
        assert [fields[name] for name in ("program_status", "version", "program_version", "refresh_version")] == [
            "Pending", version, version, version + 2,
        ]  # fmt: skip
    assert len(asked) == 2


def test_a_stream_program_is_kept_and_answered_in_its_order(api: TestClient) -> None:
    files = {"z.py": "import a", "a.py": "", "m/b.py": "ä"}
    made = api.post("/v0/pipelines", json={"name": "s", "stream_files": files, "stream_arguments": ["--day", "1"]})
    assert made.status_code == 201
    read = api.get("/v0/pipelines/s").json()
    assert list(read["stream_files"].items()) == list(files.items())
    assert (read["stream_arguments"], read["program_code"], read["program_version"]) == (["--day", "1"], "", 1)
    changed = api.patch("/v0/pipelines/s", json={"stream_files": {"a.py": "x"}}).json()
    assert (changed["stream_files"], changed["stream_arguments"], changed["program_version"]) == ({"a.py": "x"}, ["--day", "1"], 2)
    for method, path in (("PATCH", "s"), ("PUT", "s"), ("POST", "s/diff"), ("POST", "s/validate")):
        refused = api.request(method, f"/v0/pipelines/{path}", json={"stream_files": {"../a.py": ""}})
        assert (refused.status_code, refused.json()["error_code"]) == (400, "InvalidParam"), path
        assert "'../a.py' is no path of a stream program's file" in refused.json()["message"]
    assert api.post("/v0/pipelines", json={"name": "t"}).status_code == 400
    assert "stream_files" not in api.get("/v0/pipelines", params={"selector": "status"}).json()[0]


def test_a_plan_asks_for_the_whole_other_program(app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    api.post("/v0/pipelines", json={"name": "s", "stream_files": {"a.py": "x"}, "stream_arguments": ["--day", "1"]})
    plane = app.state.control_plane
    asked: list[dict[str, Any]] = []

    def call(_host: Any, method: str, path: str, *, json: dict[str, Any], timeout_s: float) -> httpx.Response:
        assert (method, path) == ("POST", "/deployments/d/plan")
        asked.append(json)
        return httpx.Response(200, json={})

    monkeypatch.setattr(
        type(plane), "target", lambda self, name: SimpleNamespace(record=self.pipeline(name), host=None, path="/deployments/d")
    )
    monkeypatch.setattr(plane.hosts, "call", call)
    program = {"program_code": "", "udf_python": "", "stream_files": {"a.py": "x"}, "stream_arguments": ["--day", "1"]}
    for fields in (
        {},
        {"stream_arguments": ["--day", "2"]},
        {"stream_arguments": []},
        # What a program does without is told, too: what is missing is as it is.
        {"program_code": "create table t (a int);", "stream_files": {}, "stream_arguments": []},
    ):
        assert api.post("/v0/pipelines/s/plan", json=fields).status_code == 200
        assert asked.pop() == program | fields

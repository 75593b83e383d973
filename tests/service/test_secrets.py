"""What clients send in clear is nowhere but in the folder of secrets, and nothing is lost when it is sent back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from airflow_pipelines.common.secret_files import SecretFiles
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.deployers.shared import SharedDeployer
from tests.service.waiting import until

if TYPE_CHECKING:
    from fastapi import FastAPI

SECRETS = ("env-8d3a", "access-8d3a", "hush-8d3a", "pw-8d3a", "url-8d3a")


def fields(env: str = "env-8d3a", password: str = "pw-8d3a") -> dict[str, Any]:
    sync = {"bucket": "b/p", "access_key": "access-8d3a", "secret_key": "hush-8d3a", "endpoint": "http://me:url-8d3a@store"}
    connector = {"name": "c", "transport": {"name": "kafka_input", "config": {"topic": "t", "sasl.password": password}}}
    return {
        "program_code": f"CREATE TABLE t (i INT) WITH ('connectors' = '{json.dumps([connector])}');",
        "runtime_config": {
            "env": {"A_TOKEN": env, "B": "${secret:mine/b}", "C_KEY": env},
            "storage": {"backend": {"name": "file", "config": {"sync": sync}}},
        },
    }


@pytest.fixture
def api(app: FastAPI) -> TestClient:
    return TestClient(app, base_url="http://localhost")


def value_of(settings: Settings, reference: str) -> str:
    return SecretFiles(settings.secrets).read(reference.removeprefix("${secret:").removesuffix("}"))


def everything(home: Path) -> bytes:
    """All that is on disk, but for the secrets."""
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file() and home / "secrets" not in path.parents)


def test_secrets_are_in_their_files_only(api: TestClient, settings: Settings) -> None:
    created = api.post("/v0/pipelines", json={"name": "p", **fields()})
    assert created.status_code == 201
    answers = [created.text, *(api.get(f"/v0/pipelines?selector={selector}").text for selector in ("all", "status"))]
    answers += [api.get(f"/v0/pipelines/p{rest}").text for rest in ("", "/events", "/program_info")]
    for secret in SECRETS:
        assert not any(secret in answer for answer in answers), secret
        assert secret.encode() not in everything(settings.home), secret
    config = created.json()["runtime_config"]
    sync = config["storage"]["backend"]["config"]["sync"]
    assert value_of(settings, config["env"]["A_TOKEN"]) == "env-8d3a"
    assert config["env"]["C_KEY"] == config["env"]["A_TOKEN"]
    assert config["env"]["B"] == "${secret:mine/b}"
    assert (value_of(settings, sync["access_key"]), value_of(settings, sync["secret_key"])) == ("access-8d3a", "hush-8d3a")
    before, _, after = sync["endpoint"].partition("${secret:")
    assert (before, after.partition("}")[2]) == ("http://me:", "@store")
    assert sync["bucket"] == "b/p"
    assert '"topic": "t"' in created.json()["program_code"]


def test_what_was_read_can_be_sent_back(api: TestClient, settings: Settings) -> None:
    first = api.post("/v0/pipelines", json={"name": "p", **fields()}).json()
    for method, body in (
        ("PATCH", {"runtime_config": first["runtime_config"], "program_code": first["program_code"]}),
        ("PATCH", fields()),
        ("PUT", {"name": "p", **fields()}),
    ):
        answer = api.request(method, "/v0/pipelines/p", json=body)
        assert answer.status_code == 200
        assert answer.json()["version"] == first["version"], body
    changed = api.patch("/v0/pipelines/p", json={"runtime_config": fields(env="other-8d3a")["runtime_config"]}).json()
    assert changed["version"] == first["version"] + 1
    assert value_of(settings, changed["runtime_config"]["env"]["A_TOKEN"]) == "other-8d3a"
    assert changed["runtime_config"]["storage"] == first["runtime_config"]["storage"]
    changed = api.patch("/v0/pipelines/p", json={"program_code": fields(password="x")["program_code"]})
    assert changed.json()["program_version"] == first["program_version"] + 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "hunter2") for name in ("DB_PASSWORD", "PGPASSWORD", "API_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
        *(
            (name, "hunter2")
            for name in ("S3_KEY", "apiKey", "DB_PASS", "BASIC_AUTH", "GITHUB_PAT", "SENTRY_DSN", "GCP_CREDENTIALS")
        ),
        ("SHOP", "postgresql://me:hunter2@shop/db"),
        ("SHOP", "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n"),
    ],
)
def test_variables_that_look_like_secrets_are_kept_as_such(api: TestClient, settings: Settings, name: str, value: str) -> None:
    answer = api.post("/v0/pipelines", json={"name": "p", "program_code": "", "runtime_config": {"env": {name: value}}})
    assert "hunter2" not in answer.text
    assert value_of(settings, answer.json()["runtime_config"]["env"][name]) == value


def test_other_variables_come_back_as_they_were_given(api: TestClient, settings: Settings) -> None:
    env = {
        "FOLDER": "/data", "SHOP": "postgresql://me@shop/db", "REGION": "eu", "KEYSPACE": "k", "MONKEY": "1", "PATTERN": "a",
        "EMPTY": "", "COMPASS": "n", "SHOP_URL": "postgresql://me:${env:DB_PASSWORD}@shop/db", "REFERENCE": "${secret:mine/b}",
        "DB_PASSWORD": "${secret:mine/b}",
    }  # fmt: skip
    body = {"name": "p", "program_code": "", "runtime_config": {"env": env}}
    assert api.post("/v0/pipelines", json=body).json()["runtime_config"]["env"] == env
    assert api.get("/v0/pipelines/p").json()["runtime_config"]["env"] == env
    assert not list(settings.secrets.glob("pipelines/*/*"))


def test_a_copy_has_secrets_of_its_own(api: TestClient, settings: Settings) -> None:
    first = api.post("/v0/pipelines", json={"name": "p", **fields()}).json()
    copy = {name: first[name] for name in ("program_code", "runtime_config")}
    second = api.post("/v0/pipelines", json={"name": "q", **copy}).json()
    assert second["runtime_config"]["env"]["A_TOKEN"] != first["runtime_config"]["env"]["A_TOKEN"]
    assert first["id"] not in json.dumps({name: second[name] for name in copy})
    assert api.delete("/v0/pipelines/p").status_code == 200
    assert value_of(settings, second["runtime_config"]["env"]["A_TOKEN"]) == "env-8d3a"
    assert not (settings.secrets / "pipelines" / first["id"]).exists()
    late = api.post("/v0/pipelines", json={"name": "r", **copy})
    assert late.status_code == 400
    assert "There is no secret 'pipelines/" in late.json()["message"]
    assert {path.name for path in (settings.secrets / "pipelines").iterdir() if any(path.iterdir())} == {second["id"]}


def test_a_pipeline_that_is_not_made_leaves_no_secrets(api: TestClient, settings: Settings) -> None:
    api.post("/v0/pipelines", json={"name": "p", **fields()})
    assert api.post("/v0/pipelines", json={"name": "p", **fields()}).status_code == 409
    assert len(list((settings.secrets / "pipelines").iterdir())) == 1


def test_secrets_that_an_earlier_release_stored_are_taken_out(
    app: FastAPI, api: TestClient, settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedDeployer, "host", lambda _deployer: None)
    for name in ("p", "half"):
        api.post("/v0/pipelines", json={"name": name, "program_code": ""})
    given = fields()
    stored = {
        "runtime_config": json.dumps(given["runtime_config"]),
        "program_code": given["program_code"],
        "program_info": json.dumps({"schema": {"connector": "pw-8d3a"}}),
        "deployment_config": json.dumps(given["runtime_config"]),
    }
    engine = app.state.control_plane.store.engine
    with engine.begin() as connection:
        for column, value in stored.items():
            connection.exec_driver_sql(f"UPDATE pipelines SET {column} = ? WHERE name = 'p'", (value,))
        half = """UPDATE pipelines SET runtime_config = '{"env": {"A_KEY": "\\udfff"}}' WHERE name = 'half'"""
        connection.exec_driver_sql(half)
    before = api.get("/v0/pipelines/p").json()
    control_plane = ControlPlane(settings)
    after = control_plane.pipeline("p")
    assert (after.version, after.program_version) == (before["version"], before["program_version"])
    with engine.connect() as connection:
        text = repr(connection.exec_driver_sql("SELECT * FROM pipelines WHERE name = 'p'").one())
    for secret in SECRETS:
        assert secret not in text
    assert value_of(settings, after.runtime_config["env"]["A_TOKEN"]) == "env-8d3a"
    assert after.deployment_config is not None
    assert after.deployment_config["env"] == after.runtime_config["env"]
    assert "Secrets of pipeline half stay in the store" in caplog.text
    again = ControlPlane(settings)
    assert again.pipeline("p") == after
    again.close()
    control_plane.close()


def test_secrets_of_nobody_are_written_and_never_answered(api: TestClient, settings: Settings) -> None:
    assert api.get("/v0/secrets").json() == []
    for value in ("hush-1", "hush-2"):
        answer = api.put("/v0/secrets/store/key", json={"value": value})
        assert (answer.status_code, answer.text) == (200, "")
    assert api.get("/v0/secrets").json() == [{"name": "store/key"}]
    assert SecretFiles(settings.secrets).read("store/key") == "hush-2"
    for name, body in (
        ("a", {}),
        ("a", {"value": 1}),
        ("a", {"value": ""}),
        ("pipelines/x", {"value": "v"}),
        (".a", {"value": "v"}),
    ):
        answer = api.put(f"/v0/secrets/{name}", json=body)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "InvalidParam")
    assert api.delete("/v0/secrets/pipelines/x").status_code == 400
    assert api.delete("/v0/secrets/store/key").status_code == 200
    answer = api.delete("/v0/secrets/store/key")
    assert (answer.status_code, answer.json()["error_code"]) == (404, "UnknownSecret")


@pytest.mark.core(slow_because="a pipeline is started three times")
def test_a_host_has_the_values(rest: TestClient, service_app: FastAPI, name: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1\n2\n")

    def connector(path: str) -> str:
        transport = {"name": "file_input", "config": {"path": path}}
        return json.dumps([{"name": "c", "transport": transport, "format": {"name": "csv"}}])

    connectors = {"t": connector("${env:FOLDER}/in.csv"), "s": connector(f"${{secret:folders/{name}}}/in.csv")}
    program = "".join(
        f"CREATE TABLE {table} (i INT) WITH ('materialized' = 'true', 'connectors' = '{text}');"
        for table, text in connectors.items()
    )
    body = {"name": name, "program_code": program, "runtime_config": {"env": {"FOLDER": "/nowhere-8d3a"}}}
    assert rest.post("/v0/pipelines", json=body).status_code == 201

    def status() -> str:
        return str(rest.get(f"/v0/pipelines/{name}").json()["deployment_status"])

    rest.put(f"/v0/secrets/folders/{name}", json={"value": str(tmp_path)})
    assert rest.post(f"/v0/pipelines/{name}/start").status_code == 202
    until(lambda: "there is no file or folder" in rest.get(f"/v0/pipelines/{name}/stats").text)
    control_plane: ControlPlane = service_app.state.control_plane
    log = control_plane.files.log(control_plane.pipeline(name)).read_text()
    for text in (rest.get(f"/v0/pipelines/{name}/stats").text, log):
        assert "there is no file or folder ${env:FOLDER}/in.csv" in text
        assert "nowhere-8d3a" not in text
    rest.post(f"/v0/pipelines/{name}/stop?force=true")
    until(lambda: status() == "Stopped")

    assert rest.patch(f"/v0/pipelines/{name}", json={"runtime_config": {"env": {"FOLDER": str(tmp_path)}}}).status_code == 200
    rest.post(f"/v0/pipelines/{name}/start")
    until(lambda: status() == "Running")
    for table in "ts":
        query = f"SELECT count(*) AS n FROM {table}"
        until(lambda query=query: '"n":2' in rest.get(f"/v0/pipelines/{name}/query", params={"sql": query, "format": "json"}).text)
    rest.post(f"/v0/pipelines/{name}/stop?force=true")
    until(lambda: status() == "Stopped")
    missing = {"env": {"FOLDER": "${secret:folders/none}"}}
    assert rest.patch(f"/v0/pipelines/{name}", json={"runtime_config": missing}).status_code == 200
    rest.post(f"/v0/pipelines/{name}/start")
    until(lambda: rest.get(f"/v0/pipelines/{name}").json()["deployment_error"] is not None)
    error = rest.get(f"/v0/pipelines/{name}").json()["deployment_error"]
    assert "${secret:folders/none} has no value. There is no secret 'folders/none'" in error["message"]
    rest.delete(f"/v0/secrets/folders/{name}")
    until(lambda: status() == "Stopped")

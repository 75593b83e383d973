"""The data plane's surface: the token, compiling, unknown deployments."""

from __future__ import annotations

from uuid import UUID, uuid4

import httpx
import pytest

from airflow_pipelines.engine.front_end import FrontEnd
from airflow_pipelines.host.runs import fleet
from tests.inprocess_host import InProcessHost

pytestmark = pytest.mark.core


@pytest.fixture
def http(warm_host: InProcessHost) -> httpx.Client:
    return httpx.Client(base_url=warm_host.url, headers={"Authorization": f"Bearer {warm_host.token}"}, timeout=60, trust_env=False)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "Basic x", "Bearer \u00e9"])
@pytest.mark.parametrize("path", ["/health", f"/deployments/{UUID(int=1)}/stats", "/openapi.json"])
def test_nobody_is_answered_without_the_token(warm_host: InProcessHost, header: str | None, path: str) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    answer = httpx.get(warm_host.url + path, headers=headers, trust_env=False)
    assert answer.status_code in (401, 404)
    if path != "/openapi.json":
        assert answer.json()["error_code"] == "InvalidHostToken"


def test_health(http: httpx.Client) -> None:
    assert http.get("/health").json()["status"] == "healthy"


def test_compile_describes_the_program(http: httpx.Client) -> None:
    program = "CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT x + 1 AS y FROM t;"
    info = http.post("/compile", json={"program_code": program}).json()["program_info"]
    assert [relation["name"] for relation in info["schema"]["inputs"]] == ["t"]
    assert "v" in [relation["name"] for relation in info["schema"]["outputs"]]


def test_compile_errors_have_places(http: httpx.Client) -> None:
    answer = http.post("/compile", json={"program_code": "CREATE VIEW v AS\nSELECT * FROM blah;"})
    assert answer.status_code == 400
    assert answer.json()["error_code"] == "SqlError"
    message = answer.json()["details"]["messages"][0]
    assert "blah" in message["message"]
    assert message["start_line_number"] == 2


def test_a_constant_that_cannot_be_evaluated_is_no_failure_of_the_host(http: httpx.Client) -> None:
    table = "CREATE TABLE t (x INT, at TIME);\n"
    program = f"{table}CREATE VIEW v AS SELECT 1/0 AS a, CAST(TIME '12:00:00' AS DECIMAL(7,2)) AS b FROM t;"
    assert http.post("/compile", json={"program_code": program}).status_code == 200
    answer = http.post("/compile", json={"program_code": f"{table}CREATE VIEW v AS SELECT x FROM t LIMIT CAST('abc' AS INT);"})
    assert (answer.status_code, answer.json()["error_code"]) == (400, "SqlError")
    (message,) = answer.json()["details"]["messages"]
    assert (message["start_line_number"], message["start_column"]) == (2, 40)


def test_a_fault_of_the_compiler_says_so_and_is_not_to_be_tried_again(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> FrontEnd:
        raise KeyError("there is no such node")

    monkeypatch.setattr(fleet, "front_end_for", broken)
    answer = http.post("/compile", json={"program_code": "CREATE TABLE t (x INT);"})
    assert (answer.status_code, answer.json()["error_code"]) == (422, "CompilerFailed")
    assert answer.json()["message"].startswith("The compiler failed on this program (KeyError: 'there is no such node')")
    assert "Traceback" in caplog.text
    assert "in broken" in caplog.text


def test_a_connector_that_does_not_exist_is_a_compile_error(http: httpx.Client) -> None:
    connector = '[{"transport": {"name": "carrier_pigeon"}, "format": {"name": "csv"}}]'
    answer = http.post("/compile", json={"program_code": f"CREATE TABLE t (x INT) WITH ('connectors' = '{connector}');"})
    assert answer.status_code == 400
    assert "carrier_pigeon" in answer.json()["message"]
    assert "file_input" in answer.json()["message"]


def test_an_unknown_deployment_is_not_found(http: httpx.Client) -> None:
    answer = http.get(f"/deployments/{uuid4()}/stats")
    assert (answer.status_code, answer.json()["error_code"]) == (404, "UnknownDeployment")
    assert http.delete(f"/deployments/{uuid4()}").status_code == 200


def test_a_body_that_makes_no_sense_is_a_problem(http: httpx.Client) -> None:
    answer = http.post("/deployments", json={"deployment_id": "x"})
    assert (answer.status_code, answer.json()["error_code"]) == (400, "InvalidParam")


def test_an_internal_error_leaves_no_dead_connection_behind(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise KeyError("unforeseen")

    with monkeypatch.context() as patched:
        patched.setattr(fleet.Fleet, "deployments", property(broken))
        for _ in range(10):
            failed = http.get("/health")
            assert (failed.status_code, failed.headers["connection"]) == (500, "close")
            assert http.get(f"/deployments/{uuid4()}/stats").status_code == 404

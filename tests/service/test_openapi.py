"""The OpenAPI document, and what the service answers to all that it allows, and to what it does not."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.host.api.routers import checkpoints, clock, connectors, deployments, diagnostics, egress, query, rows
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.deployers.base import SubmitError
from airflow_pipelines.service.openapi import OPERATIONS, document
from tests.fixtures.serving import serving

if TYPE_CHECKING:
    from schemathesis import GenerationMode
    from schemathesis.schemas import BaseSchema

EXAMPLES = int(os.environ.get("OPENAPI_EXAMPLES", "3"))
"""How many requests of each kind and operation; more find rarer faults."""
KEY = "k3y"
EXPECTED = {
    501: {"NotSupported"},
    503: {"PipelineInteractionNotDeployed", "CompilerUnavailable"},
}
"""What a 5xx may be where nothing runs and no host is there to compile: answers of the contract, each documented."""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FastAPI]:
    """A service that never starts a host. Its key is its own: keys that requests make would lock the next ones out."""
    app = create_app(Settings.load(tmp_path, api_keys=(KEY,)))
    monkeypatch.setattr(app.state.control_plane.compiler, "host", lambda: None)
    monkeypatch.setattr(app.state.control_plane.programs, "await_host", no_host)
    yield app
    app.state.control_plane.close()


def test_the_document_has_every_operation_with_body_and_parameters(app: FastAPI) -> None:
    paths = document(app)["paths"]
    found = {f"{method.upper()} {path}": operation for path, methods in paths.items() for method, operation in methods.items()}
    supported = {place for place, operation in found.items() if "501" not in operation["responses"]}
    assert supported == OPERATIONS.keys()
    assert len({operation["operationId"] for operation in found.values()}) == len(found)
    documented = {place: query_names(operation) for place, operation in found.items()}
    assert documented["POST /v0/pipelines/{name}/stop"] == {"force"}
    assert documented["POST /v0/pipelines/{name}/start"] == {
        "initial",
        "bootstrap_policy",
        "silent_bootstrap",
        "concurrent_bootstrap",
        "dismiss_error",
        "from_checkpoint",
    }
    assert documented["PATCH /v0/pipelines/{name}"] == {"allow_compile_errors"}
    assert documented["GET /v0/pipelines"] == {"selector"}
    for path, methods in host_paths().items():
        for method, operation in methods.items():
            place = f"{method.upper()} {path.replace('/deployments/{deployment_id}/', '/v0/pipelines/{name}/')}"
            place = place.replace("egress/{view}", "egress/{relation}")
            assert query_names(operation) <= documented.get(place, set()), place
    body = found["POST /v0/pipelines"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/NewPipeline"}
    schemas = document(app)["components"]["schemas"]
    assert {"name", "program_code", "runtime_config"} <= schemas["NewPipeline"]["properties"].keys()
    references = set(re.findall(r"#/components/schemas/([\w.-]+)", json.dumps(document(app))))
    assert {"Pipeline", "Selector"} <= references <= schemas.keys()
    assert "fault_tolerance" in schemas["RuntimeConfig"]["properties"]


def test_the_page_has_every_operation_and_an_example_of_it() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rest.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if re.match(r"\| `[A-Z]+ /[^ ]*` \|", line)]
    examples = {row[0].strip("| `"): row[-1] for row in rows}
    assert examples.keys() == OPERATIONS.keys()
    assert [place for place, example in examples.items() if not example.startswith("`curl ")] == []


def no_host() -> HostRecord:
    raise SubmitError("There is none in this test")


def query_names(operation: dict[str, Any]) -> set[str]:
    return {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}


def host_paths() -> dict[str, Any]:
    """The paths of a host's data plane, as FastAPI describes them."""
    app = FastAPI()
    for module in (checkpoints, clock, connectors, deployments, diagnostics, egress, query, rows):
        app.include_router(module.router)
    paths: dict[str, Any] = app.openapi()["paths"]
    return paths


@pytest.mark.processes
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("mode", "status"), [pytest.param("positive", 201, id="right"), pytest.param("negative", 400, id="wrong")])
def test_no_request_makes_the_service_fail(app: FastAPI, mode: str, status: int) -> None:
    # Imported here, since every collection of the suite would pay for it.
    import schemathesis

    with serving(app) as url:
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        answers = ask_everything(app, schema, schemathesis.GenerationMode(mode))
        assert len(answers) > 15
        # The requests get as far as they should: right ones do what they ask for, wrong ones are refused.
        assert status in answers["POST /v0/pipelines"]


def ask_everything(app: FastAPI, schema: BaseSchema, mode: GenerationMode) -> dict[str, set[int]]:
    """Send requests of every operation of the document, half of them about the pipeline ``p``; returns the answers' statuses."""
    answers: dict[str, set[int]] = defaultdict(set)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def ask(operation: object, data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))  # type: ignore[attr-defined]
        if case.path.endswith("/logs"):
            # Those of a pipeline that exists are followed for ever.
            case.path_parameters["name"] = "nobody"
        elif "name" in (case.path_parameters or {}) and data.draw(st.booleans()):
            case.path_parameters["name"] = "p"
        answer = case.call(timeout=20, headers={"Authorization": f"Bearer {KEY}"})
        answers[case.operation.label].add(answer.status_code)
        if answer.status_code >= 500:
            documented = operation.definition.raw["responses"]  # type: ignore[attr-defined]
            code = answer.json()["error_code"]
            assert code in EXPECTED.get(answer.status_code, set()), f"{case.as_curl_command()}\n{answer.text}"
            assert str(answer.status_code) in documented
        if answer.status_code >= 400:
            assert set(answer.json()) == {"message", "error_code", "details"}

    for found in schema.get_all_operations():
        operation = found.ok()
        raw = operation.definition.raw
        # A text in a path can hardly be wrong.
        takes = "requestBody" in raw or any(each["in"] == "query" for each in raw["parameters"])
        if mode.is_positive or takes:
            if app.state.control_plane.store.find("p") is None:
                app.state.control_plane.create({"name": "p", "program_code": ""})
            ask(operation)
    return answers

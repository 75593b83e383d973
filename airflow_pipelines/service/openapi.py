"""The OpenAPI document of the service: FastAPI's own knowledge of the paths, and additions.

The additions are the bodies, which are read by the contract's rules for JSON, the parameters of calls that are passed on to hosts,
and the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from airflow_pipelines.contract.enums import BootstrapPolicy
from airflow_pipelines.contract.runtime_config import RuntimeConfig
from airflow_pipelines.program.stream_files import MAX_FILES, MAX_PATH, PATH
from airflow_pipelines.service.api_keys import KeyScope
from airflow_pipelines.service.configs import ProgramConfig
from airflow_pipelines.service.edits import FIELDS, MAX_DESCRIPTION, MAX_NAME, MAX_TAG, MAX_TAGS, NAME, TAG
from airflow_pipelines.service.records import Selector

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
OBJECT: Final[Schema] = {"type": "object"}
LIST: Final[Schema] = {"type": "array", "items": OBJECT}
JSON: Final = "application/json"
PLAIN: Final = "text/plain"
FILES: Final[Schema] = {
    "type": "object",
    "additionalProperties": TEXT,
    "propertyNames": {"maxLength": MAX_PATH, "pattern": f"^{PATH.pattern}$"},
    "maxProperties": MAX_FILES,
}
ARGUMENTS: Final[Schema] = {"type": "array", "items": TEXT}
NDJSON: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A query parameter of a call that is passed on."""

    name: str
    schema: Schema
    required: bool = False

    def to_wire(self) -> Schema:
        """Return the parameter for the document."""
        return {"name": self.name, "in": "query", "required": self.required, "schema": self.schema}


@dataclass(frozen=True, slots=True)
class Operation:
    """The parts of an operation's description that FastAPI does not know.

    :param parameters: the parameters that the host reads
    :param body: schema of a JSON body
    :param rows: True if the body has rows, in any format
    :param answer: schema of the answer, None for an empty one
    :param kinds: content types of the answer
    :param failures: the possible errors, other than invalid requests, by status
    """

    summary: str
    parameters: tuple[QueryParameter, ...] = ()
    body: Schema | None = None
    body_required: bool = True
    rows: bool = False
    status: str = "200"
    answer: Schema | None = None
    kinds: tuple[str, ...] = (JSON,)
    failures: Mapping[str, str] = field(default_factory=dict)


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _object(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_SOURCE: Final = {
    "program_code": _or_null(TEXT),
    "udf_python": _or_null(TEXT),
    "stream_files": _or_null(FILES),
    "stream_arguments": _or_null(ARGUMENTS),
}
_RUNTIME: Final = {"503": "The pipeline does not run, or cannot be reached"}
_COMPILER: Final = {"503": "There is no compiler"}
_PIPELINE = _ref("Pipeline")
_QUERY_FORMAT = QueryParameter("format", _one_of("text", "json", "parquet", "arrow_ipc", "hash"))
_ANSWERS_OF_QUERIES = (PLAIN, JSON, BYTES)
_ROW_OPTIONS = (
    QueryParameter("format", _one_of("json", "csv", "parquet", "raw")),
    QueryParameter("force", FLAG),
    QueryParameter("array", FLAG),
    QueryParameter("update_format", TEXT),
    QueryParameter("json_flavor", TEXT),
    QueryParameter("lines", _one_of("multiple", "single")),
    QueryParameter("headers", FLAG),
    QueryParameter("delimiter", TEXT),
    QueryParameter("quote", TEXT),
    QueryParameter("mode", _one_of("blob", "lines")),
)

OPERATIONS: Final[Mapping[str, Operation]] = {
    "GET /healthz": Operation("Whether the service answers", answer=OBJECT),
    "GET /config/authentication": Operation("How to authenticate: nothing but API keys", answer=OBJECT),
    "GET /v0/config": Operation("Version and edition", answer=OBJECT),
    "GET /v0/config/session": Operation("Whose pipelines the caller sees, and what may be done with them", answer=OBJECT),
    "GET /v0/config/demos": Operation("Example programs: there are none", answer=LIST),
    "GET /v0/tenants": Operation("The tenants: there is one", answer=LIST),
    "GET /v0/oidc_trust": Operation("Trusted issuers of logins: there are none", answer=LIST),
    "GET /v0/cluster_healthz": Operation("Health of the service's parts", answer=OBJECT, failures={"503": "A part is not healthy"}),
    "GET /v0/cluster/events": Operation("Changes of the health of the service's parts, newest first", answer=LIST),
    "GET /v0/cluster/events/{event_id}": Operation("One of them, or 'latest'", answer=OBJECT),
    "GET /v0/metrics": Operation(
        "Counters of all pipelines, and how many are in which state, for Prometheus", answer=TEXT, kinds=(PLAIN,)
    ),
    "GET /v0/overview": Operation("All pipelines at a glance: statuses, checkpoints, and figures of those that run", answer=OBJECT),
    "POST /v0/validate_program": Operation(
        "Compile a program that belongs to no pipeline",
        body=_object((), **_SOURCE, runtime_version=_or_null(TEXT), ir=FLAG),
        answer=OBJECT,
        failures=_COMPILER,
    ),
    "GET /v0/api_keys": Operation("The API keys, without the keys themselves", answer=LIST),
    "POST /v0/api_keys": Operation(
        "Make an API key; the answer is the only place where it is shown. The first one is made on the service's machine",
        body=_object(("name",), name=_ref("Name"), role=_one_of(*KeyScope)),
        status="201",
        answer=_object(("id", "name", "api_key"), id=TEXT, name=TEXT, api_key=TEXT),
    ),
    "GET /v0/api_keys/{key_name}": Operation("One API key, without the key itself", answer=OBJECT),
    "DELETE /v0/api_keys/{key_name}": Operation("Take an API key away"),
    "GET /v0/secrets": Operation("The names of the secrets that belong to no pipeline", answer=LIST),
    "PUT /v0/secrets/{secret_name}": Operation(
        "Make a secret, or give it another value; it is never answered", body=_object(("value",), value=TEXT)
    ),
    "DELETE /v0/secrets/{secret_name}": Operation("Remove a secret"),
    "GET /v0/pipelines": Operation("All pipelines", answer={"type": "array", "items": _PIPELINE}),
    "POST /v0/pipelines": Operation("Create a pipeline", body=_ref("NewPipeline"), status="201", answer=_PIPELINE),
    "GET /v0/pipelines/{name}": Operation("One pipeline", answer=_PIPELINE),
    "PUT /v0/pipelines/{name}": Operation(
        "Create or replace a pipeline", body=_ref("NewPipeline"), answer=_PIPELINE, failures=_COMPILER
    ),
    "PATCH /v0/pipelines/{name}": Operation(
        "Change some fields of a pipeline", body=_ref("PipelineFields"), answer=_PIPELINE, failures=_COMPILER
    ),
    "DELETE /v0/pipelines/{name}": Operation("Delete a stopped pipeline whose storage is cleared"),
    "POST /v0/pipelines/{name}/validate": Operation(
        "Say whether a PUT would be accepted", body=_ref("NewPipeline"), failures=_COMPILER
    ),
    "GET /v0/pipelines/{name}/udf_python": Operation("The program's Python module", answer=OBJECT),
    "GET /v0/pipelines/{name}/deployment": Operation("Where the pipeline runs, and with what", answer=OBJECT),
    "GET /v0/pipelines/{name}/logs": Operation("The pipeline's log, followed until it is deleted", answer=TEXT, kinds=(PLAIN,)),
    "GET /v0/pipelines/{name}/log_lines": Operation(
        "The last lines of the pipeline's log, or those after a place in it",
        (QueryParameter("limit", {"type": "integer", "minimum": 1}), QueryParameter("after", {"type": "integer", "minimum": 0})),
        answer=OBJECT,
    ),
    "GET /v0/pipelines/{name}/events": Operation("Changes of the pipeline's status, newest first", answer=LIST),
    "GET /v0/pipelines/{name}/events/{event_id}": Operation("One event, or 'latest'", answer=OBJECT),
    "POST /v0/pipelines/{name}/start": Operation(
        "Start an incarnation",
        status="202",
        answer=TEXT,
    ),
    "POST /v0/pipelines/{name}/stop": Operation("Stop the incarnation, without force with a checkpoint", status="202", answer=TEXT),
    "POST /v0/pipelines/{name}/pause": Operation("Take no more inputs", status="202", answer=TEXT, failures=_RUNTIME),
    "POST /v0/pipelines/{name}/resume": Operation("Take inputs again", status="202", answer=TEXT, failures=_RUNTIME),
    "POST /v0/pipelines/{name}/activate": Operation("Leave standby", status="202", answer=TEXT, failures=_RUNTIME),
    "POST /v0/pipelines/{name}/approve": Operation(
        "Approve the change that the pipeline waits with",
        body=_or_null(_object(("programs",), programs=OBJECT)),
        body_required=False,
        answer=TEXT,
        failures=_RUNTIME,
    ),
    "POST /v0/pipelines/{name}/diff": Operation(
        "What another program would change, compared with the configured one",
        body=_or_null(_object((), **_SOURCE, runtime_version=_or_null(TEXT))),
        body_required=False,
        answer=OBJECT,
        failures=_COMPILER | {"504": "The compiler took too long"},
    ),
    "POST /v0/pipelines/{name}/plan": Operation(
        "What it would mean for the running pipeline to go on with another program; it is not stopped",
        body=_or_null(_object((), **_SOURCE)),
        body_required=False,
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "POST /v0/pipelines/{name}/clear": Operation("Clear the storage", status="202", answer=TEXT),
    "POST /v0/pipelines/{name}/dismiss_error": Operation("Forget the last error"),
    "POST /v0/pipelines/{name}/update_runtime": Operation("Move a stopped pipeline to this release", answer=_PIPELINE),
    "POST /v0/pipelines/{name}/testing": Operation("Pretend that another release has compiled the program"),
    "POST /v0/pipelines/{name}/rebalance": Operation("Nothing: Spark balances by itself", answer=TEXT, failures=_RUNTIME),
    "POST /v0/pipelines/{name}/start_transaction": Operation(
        "Collect what inputs bring, to make one step of it",
        answer=_object(("transaction_id",), transaction_id={"type": "integer"}),
        failures=_RUNTIME,
    ),
    "POST /v0/pipelines/{name}/commit_transaction": Operation(
        "Make one step of all that the transaction has collected", answer=TEXT, failures=_RUNTIME
    ),
    "POST /v0/pipelines/{name}/start_compaction": Operation("Merge the batches of traces now", answer=TEXT, failures=_RUNTIME),
    "GET /v0/pipelines/{name}/stats": Operation(
        "Counters of the pipeline and its connectors",
        (QueryParameter("include_connector_errors", FLAG),),
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/metrics": Operation(
        "Counters for a monitoring system",
        (QueryParameter("format", _one_of("prometheus", "json")),),
        answer=TEXT,
        kinds=(PLAIN, JSON),
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/completion_status": Operation(
        "Whether what a token stands for is processed",
        (QueryParameter("token", TEXT, required=True), QueryParameter("checkpoint", FLAG)),
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/checkpoint_status": Operation(
        "What became of the last checkpoint requests",
        (QueryParameter("incarnation_uuid", TEXT | {"format": "uuid"}),),
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/checkpoints": Operation("The local checkpoints", answer=LIST, failures=_RUNTIME),
    "GET /v0/pipelines/{name}/checkpoints/remote": Operation("The checkpoints in the object store", answer=LIST, failures=_RUNTIME),
    "GET /v0/pipelines/{name}/activity": Operation(
        "Rows per second of connectors, tables and views, and times of views, in the last five minutes",
        (QueryParameter("since", {"type": "integer"}),),
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/spark_application": Operation(
        "The Spark application that it runs in: id, name and the address of Spark's own web page",
        answer=_object(("id", "name", "web_url"), id=TEXT, name=TEXT, web_url=_or_null(TEXT)),
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/time_series": Operation(
        "Throughput, memory and storage in the last minute", answer=OBJECT, failures=_RUNTIME
    ),
    "GET /v0/pipelines/{name}/time_series_stream": Operation(
        "The same, followed until the pipeline stops", answer=OBJECT, kinds=(NDJSON,), failures=_RUNTIME
    ),
    "GET /v0/pipelines/{name}/circuit_json_profile": Operation(
        "What the newest steps cost, and the physical plans of their queries", answer=OBJECT, failures=_RUNTIME
    ),
    "GET /v0/pipelines/{name}/circuit_profile": Operation(
        "The same as a ZIP file", answer=TEXT | {"format": "binary"}, kinds=(BYTES,), failures=_RUNTIME
    ),
    "GET /v0/pipelines/{name}/dataflow_graph": Operation(
        "What each relation of the program is computed from", answer=OBJECT, failures=_COMPILER
    ),
    "GET /v0/pipelines/{name}/stream_graph": Operation(
        "The operators of the stream program, as JSON or as a picture", answer=OBJECT, kinds=(JSON, "image/svg+xml")
    ),
    "GET /v0/pipelines/{name}/support_bundle": Operation(
        "Diagnostic information as a ZIP file", answer=TEXT | {"format": "binary"}, kinds=(BYTES,)
    ),
    "GET /v0/pipelines/{name}/checkpoint/sync_status": Operation(
        "The last copies of checkpoints",
        (QueryParameter("incarnation_uuid", TEXT | {"format": "uuid"}),),
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/steps": Operation("Figures of the newest steps", answer=LIST, failures=_RUNTIME),
    "POST /v0/pipelines/{name}/checkpoint": Operation("Ask for a checkpoint", answer=OBJECT, failures=_RUNTIME),
    "POST /v0/pipelines/{name}/checkpoint/sync": Operation(
        "Copy a checkpoint to the object store",
        (
            QueryParameter("checkpoint_uuid", TEXT | {"format": "uuid"}),
            QueryParameter("retention_min_count", {"type": "integer", "minimum": 0}),
            QueryParameter("retention_min_age", {"type": "number", "minimum": 0}),
        ),
        status="202",
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "POST /v0/pipelines/{name}/clock/advance": Operation(
        "Move the clock of a pipeline that is driven by requests",
        body=_or_null(_object(delta_ms=_or_null({"type": "integer"}))),
        body_required=False,
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/query": Operation(
        "Run ad-hoc SQL",
        (QueryParameter("sql", TEXT, required=True), _QUERY_FORMAT),
        answer=TEXT,
        kinds=_ANSWERS_OF_QUERIES,
        failures=_RUNTIME,
    ),
    "POST /v0/pipelines/{name}/query": Operation(
        "Run ad-hoc SQL with a longer text",
        (_QUERY_FORMAT,),
        body=_object(("sql",), sql=TEXT),
        answer=TEXT,
        kinds=_ANSWERS_OF_QUERIES,
        failures=_RUNTIME,
    ),
    "POST /v0/pipelines/{name}/ingress/{table}": Operation(
        "Push rows; answers with a completion token. Rows with a header Idempotency-Key that have come before are not taken again",
        _ROW_OPTIONS,
        rows=True,
        answer=_object(("token",), token=TEXT, already_there=FLAG),
        failures=_RUNTIME,
    ),
    "POST /v0/pipelines/{name}/egress/{relation}": Operation(
        "Follow the changes of a view",
        (
            QueryParameter("format", _one_of("json", "csv")),
            QueryParameter("array", FLAG),
            QueryParameter("backpressure", FLAG),
            QueryParameter("send_snapshot", FLAG),
            QueryParameter("update_format", TEXT),
            QueryParameter("json_flavor", TEXT),
        ),
        body=_or_null(
            _object(
                format=_object(name=_one_of("json", "csv"), config=_object(array=FLAG, update_format=TEXT, json_flavor=TEXT)),
                transport=OBJECT,
                send_snapshot=FLAG,
                index=TEXT,
            )
        ),
        body_required=False,
        answer=OBJECT,
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/changes/{relation}": Operation(
        "What was changed since a place, or the contents, as an Arrow IPC stream",
        (QueryParameter("after", TEXT), QueryParameter("wait_ms", {"type": "integer", "minimum": 0, "maximum": 30_000})),
        answer=TEXT | {"format": "binary"},
        kinds=(BYTES,),
        failures=_RUNTIME,
    ),
    "GET /v0/pipelines/{name}/tables/{table}/connectors/{connector}/completion_token": Operation(
        "A token for all that the connector has received", answer=OBJECT, failures=_RUNTIME
    ),
    "GET /v0/pipelines/{name}/tables/{table}/connectors/{connector}/stats": Operation(
        "Counters and errors of an input", answer=OBJECT, failures=_RUNTIME
    ),
    "GET /v0/pipelines/{name}/views/{view}/connectors/{connector}/stats": Operation(
        "Counters and errors of an output", answer=OBJECT, failures=_RUNTIME
    ),
    "POST /v0/pipelines/{name}/tables/{table}/connectors/{connector}/{action}": Operation(
        "Start or pause an input", failures=_RUNTIME
    ),
}
"""All operations of this release, by method and path."""


def serve_document(app: FastAPI) -> None:
    """Let ``app`` serve its document at its ``openapi_url``."""
    made: list[Schema] = []

    def openapi() -> Schema:
        if not made:
            made.append(document(app))
        return made[0]

    app.openapi = openapi  # type: ignore[method-assign]  # the way that FastAPI gives for it


def document(app: FastAPI) -> Schema:
    """Return the document of an application's routes."""
    made = get_openapi(title=app.title, version=app.version, routes=app.routes)
    for path, methods in made["paths"].items():
        for method, entry in methods.items():
            _complete(entry, f"{method.upper()} {path}")
    declared = made.get("components", {}).get("schemas", {})
    made["components"] = {
        "schemas": {name: declared[name] for name in (Selector.__name__, BootstrapPolicy.__name__)} | _schemas(),
        "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer", "description": "An API key, where the service has any"}},
    }
    return made


def _complete(entry: Schema, place: str) -> None:
    """Add the description of this module to one operation of FastAPI's document."""
    method, _, path = place.partition(" ")
    operation = OPERATIONS.get(place)
    names = path.replace("{", "").replace("}", "").strip("/").split("/")
    entry["operationId"] = "_".join([method.lower(), *names])
    in_query = [each for each in entry.get("parameters", ()) if each["in"] == "query"]
    passed_on = [each.to_wire() for each in (operation.parameters if operation else ())]
    entry["parameters"] = _path_parameters(path) + in_query + passed_on
    problem = {"content": {JSON: {"schema": _ref("Problem")}}}
    entry["responses"] = {"4XX": {"description": "The request cannot be done as it is", **problem}}
    if path.startswith("/v0"):
        entry["security"] = [{"apiKey": []}, {}]
    if operation is None:
        entry["summary"] = "Not supported by this release"
        entry["responses"]["501"] = {"description": "This release does not have it", **problem}
        return
    entry["summary"] = operation.summary
    entry["responses"] |= {operation.status: _answer(operation)}
    if place == "PUT /v0/pipelines/{name}":
        entry["responses"]["201"] = _answer(operation)
    entry["responses"] |= {status: {"description": why, **problem} for status, why in operation.failures.items()}
    if operation.body is not None:
        entry["requestBody"] = {"required": operation.body_required, "content": {JSON: {"schema": operation.body}}}
    elif operation.rows:
        kinds = (JSON, "text/csv", BYTES)
        entry["requestBody"] = {"required": True, "content": {kind: {"schema": TEXT | {"format": "binary"}} for kind in kinds}}


def _answer(operation: Operation) -> Schema:
    if operation.answer is None:
        return {"description": "Done"}
    return {"description": "Done", "content": {kind: {"schema": operation.answer} for kind in operation.kinds}}


def _path_parameters(path: str) -> list[Schema]:
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": TEXT | {"minLength": 1}} for name in names]


def _schemas() -> dict[str, Schema]:
    """Return the named schemas; those of pydantic models are generated from the models."""
    fields: dict[str, Schema] = {
        "name": _ref("Name"),
        "description": TEXT | {"maxLength": MAX_DESCRIPTION},
        "tags": {"type": "array", "maxItems": MAX_TAGS, "items": TEXT | {"maxLength": MAX_TAG, "pattern": f"^{TAG.pattern}$"}},
        "program_config": _ref("ProgramConfig"),
        "runtime_config": _ref("RuntimeConfig"),
        "stream_files": FILES,
        "stream_arguments": ARGUMENTS,
    }
    fields = {field: _or_null(fields.get(field, TEXT)) for field in FIELDS}
    schemas: dict[str, Schema] = {
        "Name": TEXT | {"minLength": 1, "maxLength": MAX_NAME, "pattern": f"^{NAME.pattern}$"},
        "PipelineFields": {"type": "object", "properties": fields, "additionalProperties": False},
        "NewPipeline": {
            "type": "object",
            "properties": fields | {"name": _ref("Name")},
            "required": ["name"],
            # One of the two is the program: null, and no files, are none.
            "anyOf": [
                {"required": ["program_code"], "properties": {"program_code": TEXT}},
                {"required": ["stream_files"], "properties": {"stream_files": {"type": "object", "minProperties": 1}}},
            ],
            "additionalProperties": False,
        },
        "Pipeline": _object(("id", "name"), id=TEXT, name=TEXT, deployment_status=TEXT, program_status=TEXT),
        "Problem": _object(("message", "error_code", "details"), message=TEXT, error_code=TEXT, details={}),
    }
    models: tuple[type[BaseModel], ...] = (RuntimeConfig, ProgramConfig)
    for model in models:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    return schemas

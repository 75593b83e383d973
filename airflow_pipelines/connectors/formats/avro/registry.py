"""A schema registry that speaks Confluent's protocol."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from airflow_pipelines.connectors.formats.avro.options import AvroOptions
from airflow_pipelines.connectors.formats.failures import FormatFailure, TransientFormatFailure
from airflow_pipelines.connectors.formats.parsed import RecordProblem, excerpt

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_TIMEOUT_S: Final = 15.0
_MAY_PASS: Final = frozenset({408, 425, 429})
"""Answers to requests that may be taken later; besides those of servers in trouble."""
_MISSING_S: Final = 30.0
"""For how long a registry is not asked again for a schema that it did not have, or that is none of Avro."""
_CREDENTIALS: Final = (
    "Check 'registry_username' and 'registry_password', or 'registry_authorization_token', of the format, and what this user may do"
)


class SchemaRegistry:
    """Finds schemas by their numbers, and registers new ones. What it was told once it does not ask again."""

    def __init__(self, options: AvroOptions) -> None:
        """Ask nothing yet.

        :param options: where the registry is, and who asks
        """
        token = options.registry_authorization_token
        self._urls = [url.rstrip("/") for url in options.registry_urls]
        self._headers = {
            "Accept": _MEDIA_TYPE,
            "Content-Type": _MEDIA_TYPE,
            **options.registry_headers,
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }
        self._user = (options.registry_username, options.registry_password or "") if options.registry_username else None
        self._proxy = options.registry_proxy
        self._timeout_s = options.registry_timeout_secs or _TIMEOUT_S
        self._schemas: dict[int, Any] = {}
        self._problems: dict[int, tuple[float, str]] = {}

    def schema(self, number: int) -> Any:
        """The schema with a number, as JSON, parsed.

        :param number: which one
        :raises RecordProblem: when there is none, or it is not one of Avro
        :raises FormatFailure: when the registry refuses to answer; :class:`TransientFormatFailure` when it does not answer
        """
        if number in self._schemas:
            return self._schemas[number]
        until, problem = self._problems.get(number, (0.0, ""))
        if time.monotonic() < until:
            raise RecordProblem(problem)
        try:
            answer = self._ask("GET", f"/schemas/ids/{number}")
            if answer is None:
                raise RecordProblem(f"the schema registry at {self._shown} has no schema with the number {number}")
            self._schemas[number] = self._resolved(answer, f"schema {number}", ())
        except RecordProblem as found:
            self._problems[number] = (time.monotonic() + _MISSING_S, str(found))
            raise
        return self._schemas[number]

    def register(self, subject: str, schema: Any) -> int:
        """Register a schema, if its subject does not have it yet.

        :param subject: what it is the schema of
        :param schema: as JSON, parsed
        :returns: its number
        :raises FormatFailure: when the registry refuses it; :class:`TransientFormatFailure` when it does not answer
        """
        answer = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": json.dumps(schema)})
        if answer is None:
            raise FormatFailure(f"the schema registry at {self._shown} has no place for subject {subject!r}. Check 'registry_urls'")
        return int(answer["id"])

    def _resolved(self, answer: Mapping[str, Any], what: str, within: tuple[str, ...]) -> Any:
        """The schema in an answer, with those that it refers to in the places of their names."""
        kind = answer.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise RecordProblem(f"{what} is one of {kind}, and not of Avro")
        schema = json.loads(answer["schema"]) if answer["schema"].lstrip()[:1] in ("{", "[", '"') else answer["schema"]
        others: dict[str, Any] = {}
        for reference in answer.get("references", ()):
            name, subject, version = reference["name"], reference["subject"], reference["version"]
            if name in within:
                raise RecordProblem(f"{what} refers to itself by {name!r}")
            found = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
            if found is None:
                raise RecordProblem(f"{what} refers to version {version} of subject {subject!r}, which is not in the registry")
            others[name] = self._resolved(found, f"{subject} {version}", (*within, name))
        return _with_others(schema, others) if others else schema

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What the first server answers that answers; None when there is no such thing."""
        trouble = ""
        try:
            # Each schema is asked for once, so that no connection is worth keeping.
            with httpx.Client(
                headers=self._headers, auth=self._user, proxy=self._proxy, timeout=self._timeout_s, follow_redirects=True
            ) as client:
                for url in self._urls:
                    try:
                        answer = client.request(method, url + path, json=body)
                    except httpx.HTTPError as error:
                        trouble = f"cannot be reached: {error or type(error).__name__}"
                        continue
                    if not answer.is_server_error and answer.status_code not in _MAY_PASS:
                        return self._content(answer, method)
                    trouble = f"answered {answer.status_code} {answer.reason_phrase}"
        except (httpx.InvalidURL, ValueError) as error:
            raise FormatFailure(f"the schema registry at {self._shown} cannot be asked: {error}") from error
        raise TransientFormatFailure(f"the schema registry at {self._shown} {trouble}. It is asked again")

    def _content(self, answer: httpx.Response, method: str) -> Any:
        if answer.status_code in (401, 403):
            raise FormatFailure(f"the schema registry at {self._shown} answered {answer.status_code}. {_CREDENTIALS}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if not answer.is_success:
            why = f"answered {answer.status_code}: {excerpt(answer.text, 300)}"
            hint = ". Change the view, or the subject's compatibility" if answer.status_code == httpx.codes.CONFLICT else ""
            raise FormatFailure(f"the schema registry at {self._shown} {why}{hint}")
        try:
            content = answer.json()
        except ValueError as error:
            raise FormatFailure(f"what is at {self._shown} is no schema registry: its answer is no JSON") from error
        if not isinstance(content, dict) or ("id" if method == "POST" else "schema") not in content:
            raise FormatFailure(f"what is at {self._shown} is no schema registry: its answer has no schema")
        return content

    @property
    def _shown(self) -> str:
        """The URLs without what may be secret."""
        return ", ".join(
            str(httpx.URL(url).copy_with(query=None, fragment=None, username=None, password=None)) for url in self._urls
        )


def _with_others(schema: Any, others: dict[str, Any]) -> Any:
    """A schema in which the definition of each other one stands where its name stands first."""
    if isinstance(schema, str):
        return _with_others(others.pop(schema), others) if schema in others else schema
    if isinstance(schema, list):
        return [_with_others(member, others) for member in schema]
    if isinstance(schema, dict):
        parts = {"type", "items", "values"}
        changed = {name: _with_others(value, others) if name in parts else value for name, value in schema.items()}
        if "fields" in schema:
            changed["fields"] = [{**field, "type": _with_others(field["type"], others)} for field in schema["fields"]]
        return changed
    return schema

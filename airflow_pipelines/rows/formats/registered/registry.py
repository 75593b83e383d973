"""The client of a schema registry with Confluent's protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import httpx

from airflow_pipelines.rows.formats.failures import FormatFailure, TransientFormatFailure
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.rows.formats.registered.options import RegisteredOptions

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_TIMEOUT_S: Final = 15.0
_MAY_PASS: Final = frozenset({408, 425, 429})
"""The status codes of answers that may change later, besides those of server errors."""
_MISSING_S: Final = 30.0
"""The seconds before a schema that a registry did not have, or that cannot be read, is requested again."""
_AVRO: Final = "AVRO"
_CREDENTIALS: Final = (
    "Check 'registry_username' and 'registry_password', or 'registry_authorization_token', of the format, and what this user may do"
)
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference of a schema to another one.

    :param name: the name of the other one in the schema
    :param subject: its subject
    :param version: its version in that subject
    """

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema in a registry.

    :param text: the schema
    :param kind: the language of the schema
    :param references: its references to others
    """

    text: str
    kind: str = _AVRO
    references: Sequence[Reference] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the schema in the form that registries accept."""
        references = [{"name": each.name, "subject": each.subject, "version": each.version} for each in self.references]
        kind = {} if self.kind == _AVRO else {"schemaType": self.kind}
        return {"schema": self.text, **kind, **({"references": references} if references else {})}


class SchemaRegistry:
    """A client that requests schemas from a registry, and registers new ones."""

    def __init__(self, options: RegisteredOptions, written_as: str | None = None) -> None:
        """Prepare the requests, without sending one.

        :param options: the address and credentials of the registry
        :param written_as: the format of schemas in answers, if there are several
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
        self._query = {} if written_as is None else {"format": written_as}

    def schema(self, number: int) -> RegisteredSchema:
        """Request the schema with a number.

        :param number: the number
        :raises RecordProblem: when there is none
        :raises FormatFailure: when the registry refuses to answer; :class:`TransientFormatFailure` when it does not answer
        """
        answer = self._ask("GET", f"/schemas/ids/{number}", "schema")
        if answer is None:
            raise RecordProblem(f"the schema registry at {self.shown} has no schema with the number {number}")
        return _schema(answer)

    def fetch_referenced(self, reference: Reference, what: str) -> RegisteredSchema:
        """Request a schema to which another one refers.

        :param reference: the reference
        :param what: the name of the other one, for messages
        :raises RecordProblem: when there is none
        :raises FormatFailure: when the registry refuses to answer; :class:`TransientFormatFailure` when it does not answer
        """
        answer = self._ask("GET", f"{_versions(reference.subject)}/{reference.version}", "schema")
        if answer is None:
            raise RecordProblem(
                f"{what} refers to version {reference.version} of subject {reference.subject!r}, which is not in the registry"
            )
        return _schema(answer)

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """Register a schema, if its subject does not have it yet.

        :param subject: the subject of the schema
        :param schema: the schema
        :returns: its number
        :raises FormatFailure: when the registry refuses it; :class:`TransientFormatFailure` when it does not answer
        """
        return self._post_schema(_versions(subject), subject, schema, "id")

    def version(self, subject: str, schema: RegisteredSchema) -> int:
        """Request the version of a registered schema within its subject.

        :param subject: the subject of the schema
        :param schema: the schema
        :raises FormatFailure: when the registry refuses to answer; :class:`TransientFormatFailure` when it does not answer
        """
        return self._post_schema(_versions(subject).removesuffix("/versions"), subject, schema, "version")

    @property
    def shown(self) -> str:
        """The URLs without parts that may be secret."""
        return ", ".join(
            str(httpx.URL(url).copy_with(query=None, fragment=None, username=None, password=None)) for url in self._urls
        )

    def _post_schema(self, path: str, subject: str, schema: RegisteredSchema, wanted: str) -> int:
        answer = self._ask("POST", path, wanted, schema.to_json())
        if answer is None:
            raise FormatFailure(f"the schema registry at {self.shown} has no place for subject {subject!r}. Check 'registry_urls'")
        return int(answer[wanted])

    def _ask(self, method: str, path: str, wanted: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer of the first server that answers; or None if it was not found."""
        trouble = ""
        try:
            # Each schema is requested once, so the connection is not kept.
            with httpx.Client(
                headers=self._headers, auth=self._user, proxy=self._proxy, timeout=self._timeout_s, follow_redirects=True
            ) as client:
                for url in self._urls:
                    try:
                        answer = client.request(method, url + path, json=body, params=self._query if body is None else None)
                    except httpx.HTTPError as error:
                        trouble = f"cannot be reached: {error or type(error).__name__}"
                        continue
                    if not answer.is_server_error and answer.status_code not in _MAY_PASS:
                        return self._content(answer, wanted)
                    trouble = f"answered {answer.status_code} {answer.reason_phrase}"
        except (httpx.InvalidURL, ValueError) as error:
            raise FormatFailure(f"the schema registry at {self.shown} cannot be asked: {error}") from error
        raise TransientFormatFailure(f"the schema registry at {self.shown} {trouble}. It is asked again")

    def _content(self, answer: httpx.Response, wanted: str) -> Any:
        if answer.status_code in (401, 403):
            raise FormatFailure(f"the schema registry at {self.shown} answered {answer.status_code}. {_CREDENTIALS}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if not answer.is_success:
            why = f"answered {answer.status_code}: {excerpt(answer.text, 300)}"
            hint = ". Change the view, or the subject's compatibility" if answer.status_code == httpx.codes.CONFLICT else ""
            raise FormatFailure(f"the schema registry at {self.shown} {why}{hint}")
        try:
            content = answer.json()
        except ValueError as error:
            raise FormatFailure(f"what is at {self.shown} is no schema registry: its answer is no JSON") from error
        if not isinstance(content, dict) or wanted not in content:
            raise FormatFailure(f"what is at {self.shown} is no schema registry: its answer has no {wanted}")
        return content


class KnownSchemas(Generic[Made]):
    """The objects that are made from the schemas of a registry, by their numbers. A schema that could be read is requested once."""

    def __init__(self, registry: SchemaRegistry, make: Callable[[int, RegisteredSchema], Made]) -> None:
        """Prepare the requests, without sending one.

        :param registry: the registry of the schemas
        :param make: a function that makes an object from a schema, given its number; it raises :class:`RecordProblem` if it cannot
        """
        self._registry = registry
        self._make = make
        self._known: dict[int, Made] = {}
        self._problems: dict[int, tuple[float, str]] = {}

    def of(self, number: int) -> Made:
        """Return the object that was made from a schema.

        :param number: the number of the schema
        :raises RecordProblem: when there is none, or no object can be made from it
        :raises FormatFailure: when the registry refuses to answer; :class:`TransientFormatFailure` when it does not answer
        """
        if number in self._known:
            return self._known[number]
        until, problem = self._problems.get(number, (0.0, ""))
        if time.monotonic() < until:
            raise RecordProblem(problem)
        try:
            self._known[number] = self._make(number, self._registry.schema(number))
        except RecordProblem as error:
            self._problems[number] = (time.monotonic() + _MISSING_S, str(error))
            raise
        return self._known[number]


def _versions(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions"


def _schema(answer: Mapping[str, Any]) -> RegisteredSchema:
    references = [Reference(each["name"], each["subject"], int(each["version"])) for each in answer.get("references") or ()]
    return RegisteredSchema(answer["schema"], answer.get("schemaType") or _AVRO, references)

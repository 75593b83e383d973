"""The wire form of the REST contract: paths, parameters and bodies, values and errors, and the errors that are worth a retry."""

from __future__ import annotations

import json as jsonlib
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import tenacity

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.sdk.errors import (
    PipelineAPIError,
    PipelineConnectionError,
    PipelineTimeoutError,
    PipelineUnreachableError,
    UntrustedServiceError,
)

RETRIED_STATUSES = frozenset({408, 429, 502, 503, 504})
RETRY_WAITS_S = (2.0, 4.0, 8.0)
STATE_CODES = frozenset(
    {ErrorCode.PIPELINE_INTERACTION_NOT_DEPLOYED, ErrorCode.AWAITING_APPROVAL, ErrorCode.SUSPENDED, ErrorCode.STANDBY}
)
"""The codes of 503s that report the pipeline's state. Waiting 14 seconds would not change it, so these are never retried."""


def path_of(*parts: str) -> str:
    """Return the path ``/v0/<part>/...`` with every part percent-encoded, so that no name can change the path's structure.

    :param parts: the segments of the path, such as ``pipelines`` and a name
    :raises ValueError: when a part is empty or made of dots, since such a path would name something else
    """
    for part in parts:
        if part in ("", ".", ".."):
            raise ValueError(f"{part!r} is not the name of anything")
    return "/v0/" + "/".join(quote(part, safe="") for part in parts)


def lines_of(response: httpx.Response) -> Iterator[bytes]:
    """Yield the lines of a streamed answer, without their line ends, as soon as each has arrived.

    Only a line feed ends a line: httpx's own ``iter_lines`` also splits at U+2028 and similar characters, which may occur in JSON
    text.
    """
    rest = b""
    for chunk in response.iter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


async def async_lines_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the lines of a streamed answer, as :func:`lines_of` does."""
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


class Payload:
    """A request body in wire form: JSON, raw content, or the JSON text ``null`` for a POST without one."""

    def __init__(self, method: str, json: Any, content: bytes | str | None, headers: Mapping[str, str] | None) -> None:
        self.headers = dict(headers or {})
        self.content: bytes | None
        if content is not None:
            self.content = content.encode() if isinstance(content, str) else content
        elif json is not None or method in ("POST", "PUT", "PATCH"):
            self.content = jsonlib.dumps(json).encode()
            self.headers.setdefault("Content-Type", "application/json")
        else:
            self.content = None
        if method == "GET":
            self.headers.setdefault("Cache-Control", "no-cache")


def wire_params(params: Mapping[str, Any] | None) -> dict[str, str]:
    """Return query parameters in the service's format: booleans in lower case, None left out."""
    wire: dict[str, str] = {}
    for name, value in (params or {}).items():
        if isinstance(value, bool):
            wire[name] = "true" if value else "false"
        elif value is not None:
            wire[name] = str(value)
    return wire


def parse(response: httpx.Response) -> Any:
    """Return the value of a successful answer, according to its content type.

    :param response: the answer, its body already read
    :returns: as :meth:`~airflow_pipelines.sdk.client.PipelineClient.request`
    :raises PipelineAPIError: when the body does not match its content type
    """
    if not response.content:
        return None
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind in ("text/plain", "image/svg+xml"):
        return response.text
    if kind in ("application/octet-stream", "application/zip", "application/gzip"):
        return response.content
    try:
        return response.json()
    except ValueError as error:
        raise PipelineAPIError(response.status_code, "", f"the service's answer is no JSON: {response.text[:200]!r}") from error


def api_error(response: httpx.Response) -> PipelineAPIError:
    """Return the error for an answer with an error status.

    :param response: the answer, its body already read
    """
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict) or "message" not in body:
        text = response.text.strip()[:1000]
        request = response.request
        return PipelineAPIError(
            response.status_code,
            "",
            f"{request.method} {request.url.path}: {text or response.reason_phrase}",
            body,
        )
    return PipelineAPIError(response.status_code, str(body.get("error_code") or ""), str(body["message"]), body.get("details"))


def is_retryable(error: BaseException) -> bool:
    """Return True if an error is temporary: a busy or unreachable service or host, not a pipeline in the wrong state."""
    if isinstance(error, PipelineAPIError):
        return error.status_code in RETRIED_STATUSES and error.error_code not in STATE_CODES
    return isinstance(error, PipelineConnectionError)


def is_ending(error: BaseException) -> bool:
    """Return True if a pipeline refused a request because it is being stopped; the reason is in its descriptor soon after."""
    return isinstance(error, PipelineAPIError) and error.error_code == ErrorCode.TERMINATING


def retry_options() -> dict[str, Any]:
    """Return the arguments for tenacity: three more attempts, after the contract's waits."""
    return {
        "stop": tenacity.stop_after_attempt(len(RETRY_WAITS_S) + 1),
        "wait": tenacity.wait_chain(*(tenacity.wait_fixed(seconds) for seconds in RETRY_WAITS_S)),
        "retry": tenacity.retry_if_exception(is_retryable),
        "reraise": True,
    }


def transport_error(error: httpx.TransportError, method: str, path: str, where: str) -> Exception:
    """Return the SDK's error for an error of httpx.

    :param error: the error of httpx
    :param method: HTTP method of the call
    :param path: path of the call
    :param where: the service's address, for the message
    """
    cause = error or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout):
        return PipelineUnreachableError(f"{method} {path}: cannot talk to {where}: no connection in time: {cause}")
    if isinstance(error, httpx.TimeoutException):
        return PipelineTimeoutError(f"{method} {path}: no answer from {where} in time: {cause}")
    if _is_untrusted(error):
        return UntrustedServiceError(
            f"{method} {path}: the certificate of {where} is not trusted ({error}); name the file of the authority that signed it"
        )
    kind = PipelineUnreachableError if isinstance(error, httpx.ConnectError) else PipelineConnectionError
    return kind(f"{method} {path}: cannot talk to {where}: {cause}")


def _is_untrusted(error: BaseException) -> bool:
    """Return True if an error was caused by a certificate that could not be verified."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False

"""Completion tokens: "everything this connector had received when the token was made"."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from uuid import UUID

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem


@dataclass(frozen=True, slots=True)
class CompletionToken:
    """A token for the first ``records`` records that ``endpoint`` received in incarnation ``incarnation``."""

    incarnation: UUID
    endpoint: str
    records: int

    def encode(self) -> str:
        """Return the token as text."""
        payload = {"u": str(self.incarnation), "e": self.endpoint, "c": self.records}
        return base64.b64encode(json.dumps(payload, separators=(",", ":")).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> CompletionToken:
        """Read a token.

        :raises Problem: if it is malformed
        """
        try:
            # A "+" that was not escaped in a URL arrives as a space.
            payload = json.loads(base64.b64decode(text.replace(" ", "+"), validate=True))
            return cls(UUID(str(payload["u"])), str(payload["e"]), int(payload["c"]))
        except (binascii.Error, ValueError, KeyError, TypeError) as error:
            raise Problem(ErrorCode.INVALID_PARAM, f"{text!r} is not a completion token: {error}") from error

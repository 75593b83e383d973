"""References in configurations: ``${env:NAME}``, ``${secret:NAME}`` and ``${conn:CONN_ID.FIELD}``.

Only a host replaces them by their values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from airflow_pipelines.common.connection_references import AirflowConnections, ConnectionProblem
from airflow_pipelines.common.secret_files import SecretError, SecretFiles

REFERENCE: Final = re.compile(r"\$\{(?:env|secret|conn):[^{}]+\}")
"""The pattern of a reference that can have a value."""
_ANY: Final = re.compile(r"\$\{([^}]*)\}")
_SHORTEST: Final = 5
"""The length below which values are not redacted in messages, since they occur in too many words."""
_OF_SECRET: Final = re.compile(r"\$\{secret:([^{}]+)\}")


class ReferenceWithoutValueError(ValueError):
    """The error of a reference without a value. The message names it and says how it gets one."""


@dataclass(frozen=True, slots=True)
class References:
    """The values of references.

    :param env: values by name
    :param secrets: the files of the secrets; None if there are none
    :param connections: the reader of Airflow connections; None if there is none
    :param given: the references that were resolved, by their values
    """

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: SecretFiles | None = None
    connections: AirflowConnections | None = None
    given: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def with_env(self, env: Mapping[str, str]) -> References:
        """Return the references of one pipeline, whose values take precedence over the present ones.

        A value may itself be a reference to a secret.

        :param env: the values by the names of ``${env:NAME}``
        :raises ReferenceWithoutValueError: when such a secret cannot be read
        """
        own = replace(self, given={})
        return replace(own, env={**self.env, **{name: own.value(value) for name, value in env.items()}})

    def redact(self, text: str) -> str:
        """Replace the values of resolved references in a text by the references, since a message may quote them."""
        # One value may be a part of another.
        for value in sorted(self.given, key=len, reverse=True):
            text = text.replace(value, self.given[value])
        return text

    def value(self, text: str) -> str:
        """Return the value of a text that is one whole reference; any other text is returned as it is.

        :raises ReferenceWithoutValueError: when it is a reference without a value
        """
        return self._of(text[2:-1]) if REFERENCE.fullmatch(text) else text

    def resolve(self, value: Any) -> Any:
        """Return JSON with all references in its texts replaced. The result must never be stored or shown.

        :raises ReferenceWithoutValueError: when one has no value
        """
        if isinstance(value, Mapping):
            return {name: self.resolve(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.resolve(item) for item in value]
        return _ANY.sub(lambda match: self._of(match[1]), value) if isinstance(value, str) else value

    def _of(self, reference: str) -> str:
        value = self._look_up(reference)
        if len(value) >= _SHORTEST:
            self.given[value] = f"${{{reference}}}"
        return value

    def _look_up(self, reference: str) -> str:
        kind, _, name = reference.partition(":")
        if kind == "env":
            if name in self.env:
                return self.env[name]
            raise ReferenceWithoutValueError(
                f"${{env:{name}}} has no value: give the pipeline's runtime_config an 'env' with it, or let connectors "
                "read it from the host's environment (AIRFLOW_PIPELINES_CONNECTOR_ENV of the service)"
            )
        if kind == "secret":
            if self.secrets is None:
                raise ReferenceWithoutValueError(f"${{secret:{name}}} has no value: there is no folder of secrets here")
            try:
                return self.secrets.read(name)
            except SecretError as error:
                raise ReferenceWithoutValueError(f"${{secret:{name}}} has no value. {error}") from error
        if kind == "conn":
            if self.connections is None:
                raise ReferenceWithoutValueError(f"${{conn:{name}}} has no value: nobody knows Airflow connections here")
            try:
                return self.connections.value(name)
            except ConnectionProblem as error:
                raise ReferenceWithoutValueError(f"${{conn:{name}}} has no value: {error}") from error
        raise ReferenceWithoutValueError(
            f"references of kind {kind!r} are not supported; write ${{env:NAME}}, ${{secret:NAME}} or ${{conn:CONN_ID.FIELD}}"
        )


NO_REFERENCES: Final = References()


def has_reference(value: Any) -> bool:
    """Return True if there is a reference of any kind in JSON or a text."""
    if isinstance(value, Mapping):
        return any(map(has_reference, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(has_reference, value))
    return isinstance(value, str) and _ANY.search(value) is not None


def secrets_named(value: Any) -> set[str]:
    """Return the names of all secrets to which JSON or a text refers."""
    if isinstance(value, Mapping):
        return set().union(*(secrets_named(item) for item in value.values()))
    if isinstance(value, (list, tuple)):
        return set().union(*(secrets_named(item) for item in value))
    return set(_OF_SECRET.findall(value)) if isinstance(value, str) else set()

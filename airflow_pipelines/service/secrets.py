"""The extraction of secrets from requests before anything is stored: references replace them from then on.

So a client that reads a pipeline and sends back what it read keeps the secrets, without having seen them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from airflow_pipelines.common.references import REFERENCE, secrets_named
from airflow_pipelines.common.secret_files import OWN, SecretError, SecretFiles
from airflow_pipelines.service import errors
from airflow_pipelines.service.configs import at
from airflow_pipelines.service.edits import PipelineEdit
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.sql.program.connector_secrets import (
    Keep,
    has_password,
    is_secret_name,
    replace_passwords,
    replace_secrets,
)

_SYNC_SECRETS: Final = frozenset({"access_key", "secret_key"})
_SYNC_URLS: Final = frozenset({"bucket", "read_bucket", "endpoint"})
_WORDS: Final = re.compile(r"[^A-Za-z0-9]+")
_SECRET_WORDS: Final = frozenset({"AUTH", "CREDS", "DSN", "JWT", "PASS", "PAT", "PIN", "PW"})
"""Words in the names of environment variables that hold secrets, in addition to the names that connectors use."""
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


@dataclass(frozen=True, slots=True)
class PipelineSecrets:
    """The secrets that pipelines own, in the folder of secrets."""

    files: SecretFiles

    def out_of(self, edit: PipelineEdit, pipeline_id: UUID) -> PipelineEdit:
        """Return an edit with references in place of secrets, which are stored for the pipeline.

        :raises Problem: when a secret cannot be stored, or a reference is to a secret of another pipeline that is gone
        """
        try:
            return replace(
                edit,
                program_code=None if edit.program_code is None else self._extract_from_program(edit.program_code, pipeline_id),
                runtime_config=None if edit.runtime_config is None else self._extract_from_config(edit.runtime_config, pipeline_id),
            )
        except SecretError as error:
            raise errors.invalid_param(str(error)) from error

    def out_of_stored(self, record: PipelineRecord) -> PipelineRecord:
        """Return a pipeline from an earlier release with references in place of secrets. None of its versions changes."""
        kept: dict[str, str] = {}

        def keep(value: str) -> str:
            kept[value] = self._keep(value, record.id)
            return kept[value]

        program = replace_secrets(record.program_code, keep)
        config = _config_without_secrets(record.runtime_config, keep)
        if not kept:
            return record
        return replace(
            record,
            program_code=program,
            runtime_config=config,
            program_info=_replace_texts(record.program_info, kept),
            program_error=_replace_texts(record.program_error, kept),
            deployment_config=_replace_texts(record.deployment_config, kept),
            deployment_error=_replace_texts(record.deployment_error, kept),
        )

    def forget_unused(self, record: PipelineRecord) -> None:
        """Delete the secrets that a pipeline does not refer to any more."""
        used = secrets_named([record.program_code, record.runtime_config, record.deployment_config])
        self.files.forget_unused(str(record.id), used)

    def forget(self, pipeline_id: UUID) -> None:
        """Delete the secrets of a pipeline that was deleted."""
        self.files.forget_all(str(pipeline_id))

    def _extract_from_program(self, text: str, pipeline_id: UUID) -> str:
        return str(self._adopt(replace_secrets(text, lambda value: self._keep(value, pipeline_id)), pipeline_id))

    def _extract_from_config(self, config: dict[str, Any], pipeline_id: UUID) -> dict[str, Any]:
        config = _config_without_secrets(config, lambda value: self._keep(value, pipeline_id))
        return {name: self._adopt(value, pipeline_id) for name, value in config.items()}

    def _keep(self, value: str, pipeline_id: UUID) -> str:
        return f"${{secret:{self.files.keep(str(pipeline_id), value)}}}"

    def _adopt(self, value: Any, pipeline_id: UUID) -> Any:
        """Return JSON with references to secrets of other pipelines, from which it was copied, replaced by copies for this one."""
        others = [name for name in secrets_named(value) if name.startswith(f"{OWN}/") and name.split("/")[1] != str(pipeline_id)]
        return _replace_texts(value, {f"${{secret:{name}}}": self._keep(self.files.read(name), pipeline_id) for name in others})


def is_secret_variable(name: str, value: Any) -> bool:
    """Return True if an environment variable holds a secret, judging by its name and its value.

    :param name: the name, such as ``API_TOKEN``
    :param value: the value; a URL with a password and a private key are secrets under any name
    """
    words = _WORDS.split(name.upper())
    named = is_secret_name(name) or words[-1] in {"KEY", "KEYS"} or not _SECRET_WORDS.isdisjoint(words)
    return named or (isinstance(value, str) and (has_password(value) or _PRIVATE_KEY.search(value) is not None))


def _config_without_secrets(config: dict[str, Any], keep: Keep) -> dict[str, Any]:
    """Return a runtime configuration without the secrets of ``env`` and the keys of the object store."""

    def keep_secret(value: Any) -> Any:
        is_secret = isinstance(value, str) and value and not REFERENCE.fullmatch(value)
        return keep(value) if is_secret else value

    config = deepcopy(config)
    env = config.get("env") or {}
    config["env"] = {name: keep_secret(value) if is_secret_variable(name, value) else value for name, value in env.items()}
    sync = at(config, "storage.backend.config.sync")
    if isinstance(sync, dict):
        for name in _SYNC_SECRETS & sync.keys():
            sync[name] = keep_secret(sync[name])
        for name in _SYNC_URLS & sync.keys():
            sync[name] = replace_passwords(sync[name] or "", keep) or None
    return config


def _replace_texts(value: Any, by: Mapping[str, str]) -> Any:
    """Return JSON with texts replaced wherever they occur in its texts."""
    if isinstance(value, Mapping):
        return {name: _replace_texts(item, by) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_texts(item, by) for item in value]
    if isinstance(value, str):
        for text, other in by.items():
            value = value.replace(text, other)
    return value

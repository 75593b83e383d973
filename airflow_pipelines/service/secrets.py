"""Takes secrets out of what clients send, before anything of it is stored: references stand in their places from then on.

A client that reads a pipeline and sends back what it read so keeps the secrets, without having seen them.
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
from airflow_pipelines.service.edits import Edit
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
"""Words of names of environment variables that hold secrets, beside the names under which connectors have some."""
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


@dataclass(frozen=True, slots=True)
class PipelineSecrets:
    """The secrets that pipelines own, in the folder of secrets."""

    files: SecretFiles

    def out_of(self, edit: Edit, pipeline_id: UUID) -> Edit:
        """An edit with references in the places of secrets, which are kept for the pipeline.

        :raises Problem: when one cannot be kept, or a reference is to a secret of another pipeline that is gone
        """
        try:
            return replace(
                edit,
                program_code=None if edit.program_code is None else self._of_program(edit.program_code, pipeline_id),
                runtime_config=None if edit.runtime_config is None else self._of_config(edit.runtime_config, pipeline_id),
            )
        except SecretError as error:
            raise errors.invalid_param(str(error)) from error

    def out_of_stored(self, record: PipelineRecord) -> PipelineRecord:
        """A pipeline that an earlier release stored, with references in the places of secrets. No version of it changes."""
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
            program_info=_replaced(record.program_info, kept),
            program_error=_replaced(record.program_error, kept),
            deployment_config=_replaced(record.deployment_config, kept),
            deployment_error=_replaced(record.deployment_error, kept),
        )

    def forget_unused(self, record: PipelineRecord) -> None:
        """Remove what a pipeline does not name any more."""
        used = secrets_named([record.program_code, record.runtime_config, record.deployment_config])
        self.files.forget_unused(str(record.id), used)

    def forget(self, pipeline_id: UUID) -> None:
        """Remove the secrets of a pipeline that was deleted."""
        self.files.forget_all(str(pipeline_id))

    def _of_program(self, text: str, pipeline_id: UUID) -> str:
        return str(self._adopted(replace_secrets(text, lambda value: self._keep(value, pipeline_id)), pipeline_id))

    def _of_config(self, config: dict[str, Any], pipeline_id: UUID) -> dict[str, Any]:
        config = _config_without_secrets(config, lambda value: self._keep(value, pipeline_id))
        return {name: self._adopted(value, pipeline_id) for name, value in config.items()}

    def _keep(self, value: str, pipeline_id: UUID) -> str:
        return f"${{secret:{self.files.keep(str(pipeline_id), value)}}}"

    def _adopted(self, value: Any, pipeline_id: UUID) -> Any:
        """JSON in which references to secrets of other pipelines, from which it was copied, are to secrets of this one."""
        others = [name for name in secrets_named(value) if name.startswith(f"{OWN}/") and name.split("/")[1] != str(pipeline_id)]
        return _replaced(value, {f"${{secret:{name}}}": self._keep(self.files.read(name), pipeline_id) for name in others})


def is_secret_variable(name: str, value: Any) -> bool:
    """Tell whether an environment variable holds a secret, as far as its name and its value tell.

    :param name: such as ``API_TOKEN``
    :param value: a URL with a password and a private key are secrets under any name
    """
    words = _WORDS.split(name.upper())
    named = is_secret_name(name) or words[-1] in {"KEY", "KEYS"} or not _SECRET_WORDS.isdisjoint(words)
    return named or (isinstance(value, str) and (has_password(value) or _PRIVATE_KEY.search(value) is not None))


def _config_without_secrets(config: dict[str, Any], keep: Keep) -> dict[str, Any]:
    """A runtime configuration without the secrets of ``env`` and the keys of the object store."""

    def kept(value: Any) -> Any:
        is_secret = isinstance(value, str) and value and not REFERENCE.fullmatch(value)
        return keep(value) if is_secret else value

    config = deepcopy(config)
    env = config.get("env") or {}
    config["env"] = {name: kept(value) if is_secret_variable(name, value) else value for name, value in env.items()}
    sync = at(config, "storage.backend.config.sync")
    if isinstance(sync, dict):
        for name in _SYNC_SECRETS & sync.keys():
            sync[name] = kept(sync[name])
        for name in _SYNC_URLS & sync.keys():
            sync[name] = replace_passwords(sync[name] or "", keep) or None
    return config


def _replaced(value: Any, by: Mapping[str, str]) -> Any:
    """JSON with texts replaced wherever they occur in its texts."""
    if isinstance(value, Mapping):
        return {name: _replaced(item, by) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(item, by) for item in value]
    if isinstance(value, str):
        for text, other in by.items():
            value = value.replace(text, other)
    return value

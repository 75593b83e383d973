"""The options for access to the store of a table, which stand beside those of the connector, as the client library knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_S3: Final = (
    "access_key_id",
    "allow_unsafe_rename",
    "bucket",
    "checksum_algorithm",
    "conditional_put",
    "container_credentials_relative_uri",
    "copy_if_not_exists",
    "default_region",
    "disable_tagging",
    "endpoint",
    "endpoint_url",
    "imdsv1_fallback",
    "metadata_endpoint",
    "region",
    "request_payer",
    "role_arn",
    "role_session_name",
    "s3_allow_unsafe_rename",
    "s3_express",
    "s3_locking_provider",
    "secret_access_key",
    "session_token",
    "skip_signature",
    "sse_bucket_key_enabled",
    "sse_customer_key_base64",
    "sse_kms_key_id",
    "server_side_encryption",
    "token",
    "unsigned_payload",
    "virtual_hosted_style_request",
    "web_identity_token_file",
)
_AZURE: Final = (
    "account_key",
    "account_name",
    "authority_id",
    "client_id",
    "client_secret",
    "container_name",
    "endpoint",
    "federated_token_file",
    "msi_endpoint",
    "msi_resource_id",
    "object_id",
    "sas_key",
    "sas_token",
    "skip_signature",
    "tenant_id",
    "token",
    "use_azure_cli",
    "use_fabric_endpoint",
)
_GOOGLE: Final = ("application_credentials", "bucket", "service_account", "service_account_key", "service_account_path")
_CLIENT: Final = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "http1_only",
    "http2_only",
    "max_retries",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "retry_timeout",
    "timeout",
    "user_agent",
)
STORAGE_NAMES: Final = frozenset(
    {
        *_CLIENT,
        *_S3,
        *(f"aws_{name}" for name in _S3),
        *(f"azure_{name}" for name in _AZURE),
        *(f"azure_storage_{name}" for name in _AZURE),
        *_GOOGLE,
        *(f"google_{name}" for name in _GOOGLE),
        "delta_dynamo_table_name",
    }
)
"""The names of options of object stores that may stand beside those of a connector, in small or capital letters."""


class DeltaOptions(BaseModel):
    """The options that inputs and outputs have in common.

    :param uri: the table's folder: a path, or a URL such as ``s3://bucket/table``, ``az://...`` or ``gs://...``
    :param storage_options: the options for access to the store; those of :data:`STORAGE_NAMES` may also stand beside ``uri``
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    uri: str = Field(min_length=1)
    storage_options: Mapping[str, str] = Field(default_factory=dict, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        beside = {name: value for name, value in given.items() if name not in cls.model_fields and name.lower() in STORAGE_NAMES}
        inside = given.get("storage_options", {})
        if not beside or not isinstance(inside, dict):
            return given
        rest = {name: value for name, value in given.items() if name not in beside}
        return {**rest, "storage_options": {**inside, **beside}}

    @field_validator("storage_options", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: _text(value) for name, value in given.items()}


def _text(value: Any) -> Any:
    """Return a value in the form that the client library takes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value

"""The files of a Delta table, through file systems of Arrow."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)(?:ec|ecs|econds?|in|ins|inutes?|ours?)?\s*$")


def table_files(uri: str, storage: Mapping[str, str]) -> pafs.FileSystem:
    """Return the file system of a table's folder.

    :param uri: the URI of the folder
    :param storage: the options for access to the store
    """
    parts = urlsplit(uri)
    if parts.scheme in {"", "file"}:
        return pafs.SubTreeFileSystem(unquote(parts.path) if parts.scheme else uri, pafs.LocalFileSystem())
    if parts.scheme in {"s3", "s3a"}:
        # Arrow's client does not block other threads while it waits; the library's client does.
        return pafs.SubTreeFileSystem(f"{parts.netloc}{parts.path}".rstrip("/"), _s3(storage))
    return pafs.PyFileSystem(DeltaStorageHandler(uri, dict(storage)))


def _s3(storage: Mapping[str, str]) -> pafs.S3FileSystem:
    given = {name.lower().removeprefix("aws_"): value for name, value in storage.items()}

    def first(*names: str) -> str | None:
        candidates = (given.get(name) or os.environ.get(f"AWS_{name.upper()}") for name in names)
        return next((value for value in candidates if value), None)

    options: dict[str, Any] = {}
    endpoint = first("endpoint", "endpoint_url", "endpoint_url_s3")
    if endpoint is not None:
        options["endpoint_override"] = endpoint.rstrip("/")
        options["scheme"] = "http" if endpoint.startswith("http://") else "https"
    if first("skip_signature") == "true":
        options["anonymous"] = True
    elif given.get("access_key_id"):
        options |= {"access_key": given["access_key_id"], "secret_key": given.get("secret_access_key")}
        options["session_token"] = given.get("session_token") or given.get("token")
    if given.get("role_arn"):
        options |= {"role_arn": given["role_arn"], "session_name": given.get("role_session_name")}
    if first("virtual_hosted_style_request") == "true":
        options["force_virtual_addressing"] = True
    if given.get("proxy_url"):
        options["proxy_options"] = given["proxy_url"]
    for name, option in (("timeout", "request_timeout"), ("connect_timeout", "connect_timeout")):
        parsed = _DURATION.match(given.get(name, ""))
        if parsed:
            options[option] = float(parsed[1]) * _SECONDS[parsed[2]]
    if given.get("max_retries", "").isdigit():
        options["retry_strategy"] = pafs.AwsStandardS3RetryStrategy(max_attempts=1 + int(given["max_retries"]))
    return pafs.S3FileSystem(region=first("region", "default_region"), **options)

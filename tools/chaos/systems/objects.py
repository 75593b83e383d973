"""A bucket of an object store, with the options of the connectors that write to it."""

from __future__ import annotations

from typing import Any, Final

from tools.object_store import KEY, REGION, ObjectStore

_NAME: Final = "pairs"


BUFFERED: Final = {"enable_output_buffer": True, "max_output_buffer_time_millis": 500}
"""The options of an output that writes to the bucket: writing takes longer than a step."""


class Bucket:
    """A bucket.

    :param store: a running object store
    """

    url: Final = f"s3://{_NAME}"

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self._client = store.client()
        self._client.create_bucket(Bucket=_NAME)
        self._read: dict[str, bytes] = {}

    def delta_options(self) -> dict[str, str]:
        """Return the options of a Delta table in it."""
        return {
            "aws_access_key_id": KEY,
            "aws_secret_access_key": KEY,
            "aws_endpoint": self.store.url,
            "aws_region": REGION,
            "allow_http": "true",
            "max_retries": "1",
            "retry_timeout": "5s",
        }

    def fsspec_options(self) -> dict[str, Any]:
        """Return the options of fsspec for it."""
        return {"key": KEY, "secret": KEY, "client_kwargs": {"endpoint_url": self.store.url, "region_name": REGION}}

    def names(self, prefix: str) -> list[str]:
        """Return the names of the objects below a prefix, in order."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=_NAME, Prefix=prefix)
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", ()))

    def read(self, name: str) -> bytes:
        """Return the content of an object that never changes."""
        if name not in self._read:
            self._read[name] = self._client.get_object(Bucket=_NAME, Key=name)["Body"].read()
        return self._read[name]

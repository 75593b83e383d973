"""Reads objects of an S3 bucket, once: one, a list of them, or all whose keys begin alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.connectors.transports.files.compression import Compression
from airflow_pipelines.connectors.transports.files.file_set_input import FileSetInput, Reading
from airflow_pipelines.connectors.transports.files.listing import Found
from airflow_pipelines.connectors.transports.files.readers import BLOCK_BYTES
from airflow_pipelines.connectors.transports.files.remote import Fetch
from airflow_pipelines.connectors.transports.files.store import FetchOf, FileStore, checked, fetch_by_fsspec, store_access
from airflow_pipelines.engine.storage.connector_state import Position

_CONNECT_S: Final = 10
_READ_S: Final = 60
_SMALL_BYTES: Final = 1 << 20


class S3InputOptions(BaseModel):
    """Options of the transport.

    :param bucket_name: the bucket
    :param region: where it is
    :param key: of one object
    :param keys: of several objects
    :param prefix: with which keys begin; an empty one means the whole bucket
    :param endpoint_url: of another service than Amazon's that speaks S3
    :param aws_access_key_id: who asks; without it what the machine has (environment, profile, role)
    :param aws_secret_access_key: belongs to it
    :param no_sign_request: ask without any key, for public buckets
    :param compression: how text objects are compressed; ``auto`` looks at the end of each key
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    bucket_name: str = Field(min_length=1)
    region: str | None = None
    key: str | None = Field(default=None, min_length=1)
    keys: tuple[str, ...] | None = Field(default=None, min_length=1)
    prefix: str | None = None
    endpoint_url: str | None = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: SecretStr | None = None
    no_sign_request: bool = False
    compression: Compression = Compression.AUTO

    @model_validator(mode="after")
    def _one_of_each(self) -> S3InputOptions:
        given = [name for name in ("key", "keys", "prefix") if getattr(self, name) is not None]
        if len(given) != 1:
            listed = " and ".join(given) or "none"
            raise ValueError(f"exactly one of 'key', 'keys' and 'prefix' says what to read, and there is {listed}")
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            raise ValueError("'aws_access_key_id' and 'aws_secret_access_key' belong together: give both or none")
        if self.no_sign_request and self.aws_access_key_id is not None:
            raise ValueError("'no_sign_request' asks without a key, so there must be no 'aws_access_key_id'")
        return self


class S3Input:
    """An input over objects of a bucket."""

    def __init__(self, options: S3InputOptions, context: InputContext) -> None:
        """Make an input that is not open yet.

        :param options: which objects
        :param context: of the connector
        """
        self._options = options
        self._reading = Reading(context, False, options.compression, BLOCK_BYTES)
        self._files: FileSetInput | None = None

    def open(self, position: Position | None) -> None:
        """Find the first objects and go to ``position``.

        :raises ConnectorFailure: when there is nothing to read or it may not be read
        :raises TransientConnectorFailure: when the service is away
        """
        filesystem = _filesystem(self._options)
        store = FileStore(filesystem, self._reading.context.format, _fetch_of(filesystem, self._options))
        self._files = FileSetInput(store, _listing(filesystem, self._options), self._reading)
        self._files.start(position)

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """The next records of the objects."""
        return None if self._files is None else self._files.read(max_records, timeout_s)

    def close(self) -> None:
        """Let go of the service; a read in another thread comes back."""
        if self._files is not None:
            self._files.close()


class PrefixListing:
    """The objects whose keys begin alike, page by page as the service gives them. Their order is that of the keys."""

    can_grow = False

    def __init__(self, filesystem: Any, bucket: str, prefix: str) -> None:
        """Make a listing.

        :param filesystem: of s3fs
        :param bucket: the bucket's name
        :param prefix: how keys begin
        """
        self._filesystem = filesystem
        self._bucket = bucket
        self._prefix = prefix

    def pages(self, after: str | None) -> Iterator[Sequence[Found]]:
        """The objects with keys behind one, a thousand at a time. Placeholders of folders are left out."""
        wanted: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._prefix}
        if after is not None:
            wanted["StartAfter"] = after
        while True:
            with store_access(f"s3://{self._bucket}/{self._prefix}"):
                try:
                    page = self._filesystem.call_s3("list_objects_v2", **wanted)
                except FileNotFoundError as error:
                    raise ConnectorFailure(f"s3_input: there is no bucket {self._bucket!r}. Check its name and region.") from error
            yield [
                Found(entry["Key"], f"{self._bucket}/{entry['Key']}", entry["Size"])
                for entry in page.get("Contents", ())
                if not entry["Key"].endswith("/")
            ]
            if not page.get("IsTruncated"):
                return
            wanted["ContinuationToken"] = page["NextContinuationToken"]

    def check(self) -> None:
        """Nothing was found, which is a mistake."""
        raise ConnectorFailure(
            f"s3_input: bucket {self._bucket!r} has no object whose key begins with {self._prefix!r}. Check the prefix; it has no "
            "slash in front."
        )


class KeyListing:
    """Objects whose keys are known."""

    can_grow = False

    def __init__(self, filesystem: Any, bucket: str, keys: Sequence[str]) -> None:
        """Make a listing.

        :param filesystem: of s3fs
        :param bucket: the bucket's name
        :param keys: of the objects
        """
        self._filesystem = filesystem
        self._bucket = bucket
        self._keys = sorted(set(keys))

    def pages(self, after: str | None) -> Iterator[Sequence[Found]]:
        """The objects with keys behind one, each on a page of its own: the service is asked for each."""
        for key in self._keys:
            if after is not None and key <= after:
                continue
            path = f"{self._bucket}/{key}"
            with store_access(f"s3://{path}"):
                try:
                    info = self._filesystem.call_s3("head_object", Bucket=self._bucket, Key=key)
                except FileNotFoundError as error:
                    raise ConnectorFailure(f"s3_input: there is no object s3://{path}. Check bucket and key.") from error
            yield [Found(key, path, info["ContentLength"])]

    def check(self) -> None:
        """Each object was looked for."""


def _listing(filesystem: Any, options: S3InputOptions) -> PrefixListing | KeyListing:
    if options.prefix is not None:
        return PrefixListing(filesystem, options.bucket_name, options.prefix)
    return KeyListing(filesystem, options.bucket_name, options.keys or (options.key or "",))


def _filesystem(options: S3InputOptions) -> Any:
    from s3fs import S3FileSystem

    secret = options.aws_secret_access_key
    return S3FileSystem(
        anon=options.no_sign_request,
        key=options.aws_access_key_id,
        secret=None if secret is None else secret.get_secret_value(),
        endpoint_url=options.endpoint_url,
        client_kwargs={"region_name": options.region} if options.region else {},
        config_kwargs={"connect_timeout": _CONNECT_S, "read_timeout": _READ_S},
        skip_instance_cache=True,
        use_listings_cache=False,
    )


def _fetch_of(filesystem: Any, options: S3InputOptions) -> FetchOf:
    """What fetches parts of objects: Arrow's client for large ones, which costs less of a processor and asks for the size again.

    :param filesystem: of s3fs
    :param options: those of the connector
    """
    from pyarrow.fs import S3FileSystem

    secret = options.aws_secret_access_key
    large = S3FileSystem(
        anonymous=options.no_sign_request,
        access_key=options.aws_access_key_id,
        secret_key=None if secret is None else secret.get_secret_value(),
        endpoint_override=options.endpoint_url,
        region=options.region,
        connect_timeout=_CONNECT_S,
        request_timeout=_READ_S,
    )

    def fetch_of(found: Found) -> Fetch:
        if (found.size or 0) <= _SMALL_BYTES:
            return fetch_by_fsspec(filesystem, found)
        return _LargeObject(large, found).fetch

    return fetch_of


class _LargeObject:
    """An object whose parts are fetched by several threads."""

    def __init__(self, filesystem: Any, found: Found) -> None:
        self._filesystem = filesystem
        self._found = found
        self._lock = threading.Lock()
        self._file: Any = None

    def fetch(self, begin: int, end: int) -> bytes:
        """The bytes between two offsets."""
        with store_access(f"s3://{self._found.path}"):
            with self._lock:
                self._file = self._file or self._filesystem.open_input_file(self._found.path)
            return checked(self._file.read_at(end - begin, begin), begin, end, self._found)


S3_INPUT: Final = InputDefinition(
    name="s3_input",
    options=S3InputOptions,
    open=S3Input,
    formats=("avro", "csv", "json", "orc", "parquet", "raw"),
    packages=("s3fs",),
    extra="s3",
)

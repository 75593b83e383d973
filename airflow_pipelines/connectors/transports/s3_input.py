"""An input that reads objects of an S3 bucket once: one, a list of them, or all whose keys have a common prefix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk, Lag
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.connectors.transports.files.file_set_input import FileReadOptions, FileSetInput
from airflow_pipelines.connectors.transports.files.listing import Found
from airflow_pipelines.connectors.transports.files.readers import BLOCK_BYTES
from airflow_pipelines.connectors.transports.files.store import FetchingStore, store_access
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.systems.files.compression import Compression

if TYPE_CHECKING:
    from airflow_pipelines.connectors.transports.s3_client import S3Client


class S3InputOptions(BaseModel):
    """The options of the transport.

    :param bucket_name: the name of the bucket
    :param region: the region of the bucket
    :param key: the key of one object
    :param keys: the keys of several objects
    :param prefix: the prefix of the keys; an empty one means the whole bucket
    :param endpoint_url: the URL of a service other than Amazon's that speaks S3
    :param aws_access_key_id: the access key; without it that of the machine (environment, profile, role)
    :param aws_secret_access_key: the secret of the access key
    :param no_sign_request: True to send requests without any key, for public buckets
    :param compression: the compression of text objects; ``auto`` looks at the end of each key
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

        :param options: the options that say which objects to read
        :param context: the context of the connector
        """
        self._options = options
        self._reading = FileReadOptions(context, False, options.compression, BLOCK_BYTES)
        self._files: FileSetInput | None = None

    def open(self, position: Position | None) -> None:
        """Find the first objects and seek to ``position``.

        :raises ConnectorFailure: when there is nothing to read or it may not be read
        :raises TransientConnectorFailure: when the service is not available
        """
        client = _client(self._options)
        store = FetchingStore(client.fetch_of, self._reading.context.format, grows=False)
        self._files = FileSetInput(store, _listing(client, self._options), self._reading)
        self._files.start(position)

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next records of the objects."""
        return None if self._files is None else self._files.read(max_records, timeout_s)

    def lag(self) -> Lag | None:
        """Return the number of bytes that were found and not read yet."""
        return None if self._files is None else self._files.lag()

    def close(self) -> None:
        """Close the files; a read in another thread then returns."""
        if self._files is not None:
            self._files.close()


class PrefixListing:
    """The objects whose keys have a common prefix, page by page as the service lists them, in the order of their keys."""

    can_grow = False

    def __init__(self, client: S3Client, bucket: str, prefix: str) -> None:
        """Make a listing.

        :param client: the client of the service
        :param bucket: the bucket's name
        :param prefix: the prefix of the keys
        """
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    def pages(self, after: str | None) -> Iterator[Sequence[Found]]:
        """Yield the objects with keys greater than ``after``, a thousand at a time. Placeholders of folders are left out."""
        wanted: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._prefix}
        if after is not None:
            wanted["StartAfter"] = after
        while True:
            with store_access(f"s3://{self._bucket}/{self._prefix}"):
                try:
                    page = self._client.ask("list_objects_v2", **wanted)
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
        """Raise an error: no object was found, which is a mistake."""
        raise ConnectorFailure(
            f"s3_input: bucket {self._bucket!r} has no object whose key begins with {self._prefix!r}. Check the prefix; it has no "
            "slash in front."
        )


class KeyListing:
    """The objects of a list of keys."""

    can_grow = False

    def __init__(self, client: S3Client, bucket: str, keys: Sequence[str]) -> None:
        """Make a listing.

        :param client: the client of the service
        :param bucket: the bucket's name
        :param keys: the keys of the objects
        """
        self._client = client
        self._bucket = bucket
        self._keys = sorted(set(keys))

    def pages(self, after: str | None) -> Iterator[Sequence[Found]]:
        """Yield the objects with keys greater than ``after``, each on a page of its own: each one takes a request."""
        for key in self._keys:
            if after is not None and key <= after:
                continue
            path = f"{self._bucket}/{key}"
            with store_access(f"s3://{path}"):
                try:
                    info = self._client.ask("head_object", Bucket=self._bucket, Key=key)
                except FileNotFoundError as error:
                    raise ConnectorFailure(f"s3_input: there is no object s3://{path}. Check bucket and key.") from error
            yield [Found(key, path, info["ContentLength"])]

    def check(self) -> None:
        """Do nothing: each object was looked up."""


def _listing(client: S3Client, options: S3InputOptions) -> PrefixListing | KeyListing:
    if options.prefix is not None:
        return PrefixListing(client, options.bucket_name, options.prefix)
    return KeyListing(client, options.bucket_name, options.keys or (options.key or "",))


def _client(options: S3InputOptions) -> S3Client:
    # Import late: the library is an extra.
    from airflow_pipelines.connectors.transports.s3_client import S3Client

    secret = options.aws_secret_access_key
    keys = None if options.aws_access_key_id is None or secret is None else (options.aws_access_key_id, secret.get_secret_value())
    return S3Client(options.endpoint_url, options.region, keys, signs=not options.no_sign_request)


S3_INPUT: Final = InputDefinition(
    name="s3_input",
    options=S3InputOptions,
    open=S3Input,
    formats=("avro", "csv", "json", "orc", "parquet", "raw"),
    packages=("s3fs",),
    extra="s3",
)

"""Definitions of connectors: name, options, formats, guarantees, and the function that opens them.

A connector is one small module with an :class:`InputDefinition` or :class:`OutputDefinition`. The module imports the client library
of its system only where it opens something, because programs are compiled by processes that open nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

from airflow_pipelines.connectors.base import InputTransport, OutputTransport
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.program.connectors import ConnectorDirection
from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.definition import ChangeEncoder
from airflow_pipelines.rows.formats.messages import MessageEncoder
from airflow_pipelines.rows.formats.parsed import Parser
from airflow_pipelines.rows.schema import RelationSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Guarantee(Enum):
    """The number of times that each row arrives after a crash, if the pipeline's fault-tolerance model promises as much."""

    NONE = "none"
    """Rows can be lost or repeated."""
    AT_LEAST_ONCE = "at_least_once"
    """No row is lost; some can be repeated."""
    EXACTLY_ONCE = "exactly_once"
    """Each row arrives once."""


class Delivery(Enum):
    """The time at which an output receives the changes of a step."""

    IN_STEP = "in_step"
    """Within the step, which waits for it: for targets that only this machine can delay."""
    QUEUED = "queued"
    """From a queue, by a thread of the output: a slow or unreachable target delays no step until the queue is full."""


@dataclass(frozen=True, slots=True)
class PipelineReference:
    """The pipeline that a connector belongs to.

    :param id: an id that stays the same for as long as the pipeline exists, even if it is renamed
    :param name: the name for people
    :param begun: the time when it began with its current storage, in seconds since the epoch
    """

    id: str
    name: str
    begun: float = 0.0


@dataclass(frozen=True, slots=True)
class Declared:
    """The rest of a declaration, for checks that need more than a connector's own options.

    :param endpoint: ``relation.connector``
    :param schema: the schema of the table or view
    :param common: the options that all connectors have
    :param format: the name of the format; None if none was declared
    :param format_options: the options of the format; None for a transport without formats, and if they hold references
    """

    endpoint: str
    schema: RelationSchema
    common: ConnectorOptions
    format: str | None
    format_options: BaseModel | None


Check: TypeAlias = Callable[[Any, Declared], None]
"""A check of a connector's options and the rest of the declaration.

:raises InvalidOptionError: if the declaration cannot work
"""


@dataclass(frozen=True, slots=True)
class InputContext:
    """The context in which an input is opened, besides its options.

    :param endpoint: ``relation.connector``, for messages and names
    :param schema: the schema of the table that the rows are for
    :param format: the name of the format; None for a transport that needs none
    :param new_parser: the factory of parsers of the format, one for each stream of bytes that is read in order
    :param now: the pipeline's clock
    :param pipeline: the pipeline
    :param common: the options that all connectors have
    :param format_options: the options of the format; None for a transport that needs none
    :param spark: the Spark application in which the pipeline runs; None if it has none
    """

    endpoint: str
    schema: RelationSchema
    format: str | None
    new_parser: Callable[[], Parser]
    now: Now
    pipeline: PipelineReference
    common: ConnectorOptions
    format_options: BaseModel | None = None
    spark: SparkSession | None = None


@dataclass(frozen=True, slots=True)
class OutputContext:
    """The context in which an output is opened, besides its options.

    :param endpoint: ``relation.connector``, for messages and names
    :param schema: the schema of the view
    :param key: the columns of the index that the declaration names; empty without one
    :param format: the name of the format; None for a transport that needs none
    :param format_options: the options of the format; None for a transport that needs none
    :param new_encoder: the factory of encoders that write changes in the format
    :param positions: a file in the pipeline's storage in which the output can keep its position, or a prefix of the names of such
        files; None for a pipeline without storage
    :param fence: the epoch of the run in that storage, after which outputs no longer write; None without storage
    :param pipeline: the pipeline
    :param common: the options that all connectors have
    :param new_message_encoder: the factory of encoders that write changes as messages with keys; None for a format that only writes
        documents
    :param left_out: the collector of rows that the target rejects, without which the output continues
    """

    endpoint: str
    schema: RelationSchema
    key: tuple[str, ...]
    format: str | None
    format_options: BaseModel | None
    new_encoder: Callable[[], ChangeEncoder]
    positions: Path | None
    fence: Fence | None
    pipeline: PipelineReference
    common: ConnectorOptions
    new_message_encoder: Callable[[], MessageEncoder] | None = None
    left_out: LeftOutRows = field(default_factory=LeftOutRows)

    @property
    def writer(self) -> str:
        """The name by which a target keeps the numbers of this output's steps.

        It stays the same when the pipeline is renamed, and changes when its storage is cleared, because the numbers then restart.
        """
        return f"{self.producer}/{int(self.pipeline.begun * 1000):x}"

    @property
    def producer(self) -> str:
        """The name of this output, which identifies its runs among other outputs.

        It stays the same for as long as the pipeline exists.
        """
        return f"{self.pipeline.id}/{self.endpoint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDefinition:
    """The definition of a connector that brings rows.

    :param name: the name in programs
    :param options: the model of its options, which refuses unknown ones (``extra="forbid"``)
    :param open: the function that makes the input, and imports the client library
    :param formats: the formats that it reads; empty for one that needs none
    :param guarantee: the number of times that a row arrives after a crash
    :param seekable: True if its position can be sought, so that it resumes there from a checkpoint
    :param check: the check, when a program is compiled, that needs more than the options
    :param check_start: the same when a pipeline starts
    :param packages: the importable names of the client libraries that it needs
    :param extra: the extra of this package that installs them
    """

    name: str
    options: type[BaseModel]
    open: Callable[[Any, InputContext], InputTransport]
    formats: tuple[str, ...] = ()
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    seekable: bool = True
    check: Check | None = None
    check_start: Check | None = None
    packages: tuple[str, ...] = ()
    extra: str | None = None
    direction: ConnectorDirection = field(default=ConnectorDirection.INPUT, init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDefinition:
    """The definition of a connector that writes changes.

    :param name: the name in programs
    :param options: the model of its options, which refuses unknown ones (``extra="forbid"``)
    :param open: the function that makes the output, and imports the client library
    :param formats: the formats that it writes; empty for one that needs none
    :param guarantee: the number of times that a change is in the target after a crash
    :param delivery: the time of delivery, which decides whether steps wait for the target
    :param delivery_of: the same as a function of the declared options, for a connector with several kinds of targets
    :param needs_index: True if a declaration must name an index of its view
    :param mirrors: the function that returns True, given the declared options, if the target is to equal the view; None if it never
        is. A step that such a target has is never computed in another way: the journal keeps it, whatever the fault tolerance is
    :param writes_messages: True if each change is a message that can have a key
    :param idle_options: options without effect that a declaration can have because inputs of the same system have them; the
        pipeline's log reports them
    :param check: the check, when a program is compiled, that needs more than the options
    :param check_start: the same when a pipeline starts
    :param packages: the importable names of the client libraries that it needs
    :param extra: the extra of this package that installs them
    """

    name: str
    options: type[BaseModel]
    open: Callable[[Any, OutputContext], OutputTransport]
    formats: tuple[str, ...] = ()
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    delivery: Delivery = Delivery.QUEUED
    delivery_of: Callable[[Mapping[str, Any]], Delivery] | None = None
    needs_index: bool = False
    mirrors: Callable[[Mapping[str, Any]], bool] | None = None
    writes_messages: bool = False
    idle_options: frozenset[str] = frozenset()
    check: Check | None = None
    check_start: Check | None = None
    packages: tuple[str, ...] = ()
    extra: str | None = None
    direction: ConnectorDirection = field(default=ConnectorDirection.OUTPUT, init=False)


ConnectorDefinition: TypeAlias = InputDefinition | OutputDefinition

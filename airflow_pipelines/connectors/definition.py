"""What a connector says of itself: its name, options, formats and guarantees, and how it is opened.

A connector is one small module with an :class:`InputDefinition` or :class:`OutputDefinition`. The module imports the client library
of its system only where it opens something, since programs are compiled by processes that open nothing.
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
from airflow_pipelines.rows.formats.definition import Encoder
from airflow_pipelines.rows.formats.messages import MessageEncoder
from airflow_pipelines.rows.formats.parsed import Parser
from airflow_pipelines.rows.schema import RelationSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Guarantee(Enum):
    """How often each row is there after a crash, under a fault-tolerance model of the pipeline that promises as much."""

    NONE = "none"
    """Rows may be lost, or come again."""
    AT_LEAST_ONCE = "at_least_once"
    """None is lost; some may come again."""
    EXACTLY_ONCE = "exactly_once"
    """Each is there once."""


class Delivery(Enum):
    """When an output gets the changes of a step."""

    IN_STEP = "in_step"
    """Within the step, which waits for it: for targets that nothing but this machine can hold up."""
    QUEUED = "queued"
    """From a queue, by a thread of the output: a target that is slow or gone holds up no step until the queue is full."""


@dataclass(frozen=True, slots=True)
class PipelineReference:
    """The pipeline that a connector belongs to.

    :param id: stays the same for as long as the pipeline exists, whatever its name is
    :param name: what people call it
    :param begun: when it began with the storage that it has, in seconds since the epoch
    """

    id: str
    name: str
    begun: float = 0.0


@dataclass(frozen=True, slots=True)
class Declared:
    """The rest of a declaration, for checks of what a connector's own options alone do not say.

    :param endpoint: ``relation.connector``
    :param schema: of the table or view
    :param common: the options that all connectors have
    :param format: the name of the format; None where none was declared
    :param format_options: the options of the format; None for a transport without formats, and where they hold references
    """

    endpoint: str
    schema: RelationSchema
    common: ConnectorOptions
    format: str | None
    format_options: BaseModel | None


Check: TypeAlias = Callable[[Any, Declared], None]
"""Called with the connector's options.

:raises InvalidOptionError: when the declaration cannot work
"""


@dataclass(frozen=True, slots=True)
class InputContext:
    """What an input is opened with besides its options.

    :param endpoint: ``relation.connector``, for messages and names
    :param schema: of the table that the rows are for
    :param format: the name of the format; None for a transport that needs none
    :param new_parser: makes a parser of the format, one for each stream of bytes that is read in order
    :param now: the pipeline's clock
    :param pipeline: the pipeline
    :param common: the options that all connectors have
    :param format_options: those of the format; None for a transport that needs none
    :param spark: the application in which the pipeline runs; None where it has none
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
    """What an output is opened with besides its options.

    :param endpoint: ``relation.connector``, for messages and names
    :param schema: of the view
    :param key: the columns of the index that the declaration names; empty without one
    :param format: the name of the format; None for a transport that needs none
    :param format_options: its options; None for a transport that needs none
    :param new_encoder: makes what writes changes in the format
    :param positions: a file in the pipeline's storage in which the output may keep how far it is, or a prefix of the names of such
        files; None for a pipeline without storage
    :param fence: the epoch of the run in that storage, after which outputs write nothing more; None without storage
    :param pipeline: the pipeline
    :param common: the options that all connectors have
    :param new_message_encoder: makes what writes changes as messages with keys; None for a format that only writes documents
    :param left_out: gets the rows that the target does not take, which the output goes on without
    """

    endpoint: str
    schema: RelationSchema
    key: tuple[str, ...]
    format: str | None
    format_options: BaseModel | None
    new_encoder: Callable[[], Encoder]
    positions: Path | None
    fence: Fence | None
    pipeline: PipelineReference
    common: ConnectorOptions
    new_message_encoder: Callable[[], MessageEncoder] | None = None
    left_out: LeftOutRows = field(default_factory=LeftOutRows)

    @property
    def writer(self) -> str:
        """What a target keeps the numbers of this output's steps by.

        The same whatever the pipeline is called, and another after its storage was cleared, when numbers begin anew.
        """
        return f"{self.producer}/{int(self.pipeline.begun * 1000):x}"

    @property
    def producer(self) -> str:
        """The name of this output, the same for as long as the pipeline exists: what tells its runs from those of other outputs."""
        return f"{self.pipeline.id}/{self.endpoint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDefinition:
    """A connector that brings rows.

    :param name: what programs call it
    :param options: the model of its options, which refuses what it does not know (``extra="forbid"``)
    :param open: makes the input; imports the client library
    :param formats: the formats that it reads; empty for one that needs none
    :param guarantee: how often a row comes at most, or at least, after a crash
    :param seekable: whether its position can be sought, so that it goes on there from a checkpoint
    :param check: refuses, when a program is compiled, what the options alone do not say
    :param check_start: the same, when a pipeline starts
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
    """A connector that takes changes.

    :param name: what programs call it
    :param options: the model of its options, which refuses what it does not know (``extra="forbid"``)
    :param open: makes the output; imports the client library
    :param formats: the formats that it writes; empty for one that needs none
    :param guarantee: how often a change is in the target after a crash
    :param delivery: whether steps wait for the target
    :param delivery_of: the same by the options as they are declared, for one that has several kinds of targets
    :param needs_index: whether a declaration must name an index of its view
    :param mirrors: whether the target is to equal the view, by the options as they are declared; None for one that never is. A step
        that such a target has is never computed in another way: the journal keeps it, whatever the fault tolerance is
    :param writes_messages: whether each change is a message that may have a key
    :param idle_options: options that a declaration may have because inputs of the same system do, which the pipeline's log says
        have no effect
    :param check: refuses, when a program is compiled, what the options alone do not say
    :param check_start: the same, when a pipeline starts
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

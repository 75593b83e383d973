"""Assignment of elements to the folders and files of a file sink."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from airflow_pipelines.datastream.common import checks

_PATTERNS = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "DDD": "%j"}
_PART = re.compile(r"([A-Za-z])\1*")


@dataclass(frozen=True)
class BucketContext:
    """The context of an element for a bucket assigner.

    :param timestamp: the event time in ms, None for none
    :param processing_time: the current time in ms
    :param watermark: the current watermark in ms

    >>> from airflow_pipelines.datastream.connectors import BucketAssigner, BucketContext
    >>> class ByHour(BucketAssigner):
    ...     def get_bucket_id(self, element, context):
    ...         return "untimed" if context.timestamp is None else f"hour={context.timestamp // 3_600_000}"
    >>> ByHour().get_bucket_id("pears", BucketContext(timestamp=7_300_000, processing_time=9_000_000, watermark=7_000_000))
    'hour=2'
    """

    timestamp: int | None
    processing_time: int
    watermark: int


class BucketAssigner(ABC):
    """An assigner that names the folder of each element. Derive custom assigners from this class."""

    @abstractmethod
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """Return the folder of an element.

        :param element: the element
        :param context: the time of the element
        :returns: path below the base path; empty for the base path itself
        """

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Return an assigner that puts all elements into the base path itself.

        :returns: the assigner
        """
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Return an assigner that names the folder after processing time.

        :param format_str: the format, in the letters ``yyyy MM dd HH mm ss``
        :param timezone_id: the time zone, such as ``Europe/Berlin``; None for that of this machine
        :returns: the assigner
        """
        return DateTimeBucketAssigner(format_str, timezone_id)


@dataclass(frozen=True)
class BasePathBucketAssigner(BucketAssigner):
    """An assigner that puts all elements into the base path itself."""

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """See :meth:`BucketAssigner.get_bucket_id`."""
        return ""


@dataclass(frozen=True)
class DateTimeBucketAssigner(BucketAssigner):
    """An assigner that names the folder after processing time.

    :param format_str: the format, in the letters ``yyyy MM dd HH mm ss``
    :param timezone_id: the time zone; None for that of this machine
    :raises ValueError: if the format has other letters, or the time zone is unknown
    """

    format_str: str = "yyyy-MM-dd--HH"
    timezone_id: str | None = None

    def __post_init__(self) -> None:
        _strftime(checks.text("format_str", self.format_str))
        self._zone()

    def _zone(self) -> ZoneInfo | None:
        try:
            return None if self.timezone_id is None else ZoneInfo(checks.text("timezone_id", self.timezone_id))
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"There is no time zone {self.timezone_id!r}; use a name such as 'UTC' or 'Europe/Berlin'") from None

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """See :meth:`BucketAssigner.get_bucket_id`."""
        return datetime.fromtimestamp(context.processing_time / 1000, self._zone()).strftime(_strftime(self.format_str))


def _strftime(pattern: str) -> str:
    def translate(match: re.Match[str]) -> str:
        if match[0] not in _PATTERNS:
            raise ValueError(f"The format {pattern!r} has {match[0]!r}; use {' '.join(_PATTERNS)}, and text in quotes")
        return _PATTERNS[match[0]]

    texts = pattern.replace("%", "%%").split("'")
    return "".join(text if quoted % 2 else _PART.sub(translate, text) for quoted, text in enumerate(texts))


@dataclass(frozen=True)
class RollingPolicy:
    """The policy that decides when to close a file and begin another, besides at each checkpoint.

    :param part_size: the maximum number of bytes; None for any size
    :param rollover_interval: the maximum age in milliseconds; None for any age
    :param inactivity_interval: the maximum number of milliseconds without an element; None for any time

    >>> from airflow_pipelines.datastream.connectors import RollingPolicy
    >>> RollingPolicy.default_rolling_policy(part_size=1024 * 1024, rollover_interval=10_000)
    RollingPolicy(part_size=1048576, rollover_interval=10000, inactivity_interval=60000)
    >>> RollingPolicy.on_checkpoint_rolling_policy()
    RollingPolicy(part_size=None, rollover_interval=None, inactivity_interval=None)
    """

    part_size: int | None = None
    rollover_interval: int | None = None
    inactivity_interval: int | None = None

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 * 1024 * 1024, rollover_interval: int = 60_000, inactivity_interval: int = 60_000
    ) -> RollingPolicy:
        """Return a policy by size, age and inactivity, which are checked when an element arrives.

        :param part_size: the maximum number of bytes
        :param rollover_interval: milliseconds since the file was begun
        :param inactivity_interval: milliseconds since its last element
        :returns: the policy
        """
        return RollingPolicy(
            checks.integer("part_size", part_size, 1),
            checks.integer("rollover_interval", rollover_interval, 1),
            checks.integer("inactivity_interval", inactivity_interval, 1),
        )

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        """Return a policy that closes files only at checkpoints.

        :returns: the policy
        """
        return RollingPolicy()

    def is_over(self, size: int, begun: int, last: int, now: int) -> bool:
        """Return True if a file must be closed.

        :param size: the number of bytes in the file
        :param begun: the time when it was begun, in ms
        :param last: the time of its last element, in ms
        :param now: the current time, in ms
        :returns: True if it is to be closed
        """
        return (
            (self.part_size is not None and size >= self.part_size)
            or (self.rollover_interval is not None and now - begun >= self.rollover_interval)
            or (self.inactivity_interval is not None and now - last >= self.inactivity_interval)
        )


@dataclass(frozen=True)
class OutputFileConfig:
    """The configuration of file names: prefix, an id of the writing task, a number, suffix.

    :param part_prefix: beginning of the name
    :param part_suffix: end of the name

    >>> from airflow_pipelines.datastream.connectors import OutputFileConfig
    >>> OutputFileConfig.builder().with_part_prefix("sales").with_part_suffix(".csv").build()
    OutputFileConfig(part_prefix='sales', part_suffix='.csv')
    """

    part_prefix: str = "part"
    part_suffix: str = ""

    def __post_init__(self) -> None:
        for name in (checks.text("part_prefix", self.part_prefix), self.part_suffix):
            if not isinstance(name, str) or "/" in name:
                raise ValueError(f"part_prefix and part_suffix are parts of a file name without '/', not {name!r}")

    class OutputFileConfigBuilder:
        """A builder of configurations."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the beginning of the names.

            :param prefix: the prefix; ``part`` by default
            :returns: this object
            """
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the end of the names.

            :param suffix: the suffix; empty by default
            :returns: this object
            """
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Make the configuration.

            :returns: the configuration
            """
            return OutputFileConfig(self._prefix, self._suffix)

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Return a builder for a configuration.

        :returns: the builder
        """
        return OutputFileConfig.OutputFileConfigBuilder()

"""Durations and points in time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import ClassVar

from airflow_pipelines.datastream.common import checks

_NANOS_PER_SECOND = 1_000_000_000
_NANOS_PER_MILLI = 1_000_000


@dataclass(frozen=True, order=True)
class Duration:
    """A duration.

    :param nanos: nanoseconds
    """

    nanos: int

    is_immutable_value: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.integer("nanos", self.nanos)

    @staticmethod
    def of_days(days: int) -> Duration:
        """Return a duration in days.

        :param days: days of 24 hours
        :returns: the duration
        """
        return Duration(checks.integer("days", days) * 86_400 * _NANOS_PER_SECOND)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Return a duration in hours.

        :param hours: hours
        :returns: the duration
        """
        return Duration(checks.integer("hours", hours) * 3_600 * _NANOS_PER_SECOND)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Return a duration in minutes.

        :param minutes: minutes
        :returns: the duration
        """
        return Duration(checks.integer("minutes", minutes) * 60 * _NANOS_PER_SECOND)

    @staticmethod
    def of_seconds(seconds: int, nano_adjustment: int = 0) -> Duration:
        """Return a duration in seconds.

        :param seconds: seconds
        :param nano_adjustment: nanoseconds to add
        :returns: the duration
        """
        return Duration(checks.integer("seconds", seconds) * _NANOS_PER_SECOND + checks.integer("nano_adjustment", nano_adjustment))

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Return a duration in milliseconds.

        :param millis: milliseconds
        :returns: the duration
        """
        return Duration(checks.integer("millis", millis) * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Return a duration in nanoseconds.

        :param nanos: nanoseconds
        :returns: the duration
        """
        return Duration(nanos)

    def to_millis(self) -> int:
        """Return the duration in whole milliseconds.

        :returns: milliseconds, rounded down
        """
        return self.nanos // _NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """Return the duration in nanoseconds.

        :returns: nanoseconds
        """
        return self.nanos


class Time:
    """A duration in milliseconds.

    :param milliseconds: the milliseconds
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = checks.integer("milliseconds", milliseconds)

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Return a duration in milliseconds.

        :param milliseconds: milliseconds
        :returns: the duration
        """
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Return a duration in seconds.

        :param seconds: seconds
        :returns: the duration
        """
        return Time(checks.integer("seconds", seconds) * 1_000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Return a duration in minutes.

        :param minutes: minutes
        :returns: the duration
        """
        return Time(checks.integer("minutes", minutes) * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """Return a duration in hours.

        :param hours: hours
        :returns: the duration
        """
        return Time(checks.integer("hours", hours) * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """Return a duration in days.

        :param days: days of 24 hours
        :returns: the duration
        """
        return Time(checks.integer("days", days) * 86_400_000)

    def to_milliseconds(self) -> int:
        """Return the duration in milliseconds.

        :returns: milliseconds
        """
        return self._milliseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash((Time, self._milliseconds))

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._milliseconds})"


@dataclass(frozen=True, order=True)
class Instant:
    """A point in time.

    :param seconds: seconds since 1970-01-01T00:00:00Z
    :param nanos: nanoseconds after that, 0 to 999,999,999

    >>> from airflow_pipelines.datastream.common import Instant
    >>> opened, closed = Instant.of_epoch_milli(1_700_000_000_500), Instant(1_700_003_600)
    >>> print(opened, opened < closed, closed.to_epoch_milli())
    2023-11-14T22:13:20.500Z True 1700003600000
    """

    seconds: int
    nanos: int = 0

    EPOCH: ClassVar[Instant]
    is_immutable_value: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.integer("seconds", self.seconds)
        checks.integer("nanos", self.nanos, 0, _NANOS_PER_SECOND - 1)

    @staticmethod
    def now() -> Instant:
        """Return the current time.

        :returns: the instant
        """
        return Instant(*divmod(time_ns(), _NANOS_PER_SECOND))

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Return the instant at a number of milliseconds after the epoch.

        :param epoch_milli: milliseconds since 1970-01-01T00:00:00Z
        :returns: the instant
        """
        seconds, millis = divmod(checks.integer("epoch_milli", epoch_milli), 1_000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    @staticmethod
    def of_datetime(value: datetime) -> Instant:
        """Return the instant of a datetime.

        :param value: the datetime; one without a time zone is taken as UTC
        :returns: the instant
        """
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        return Instant(since.days * 86_400 + since.seconds, since.microseconds * 1_000)

    def to_epoch_milli(self) -> int:
        """Return the milliseconds since the epoch.

        :returns: milliseconds, rounded down
        """
        return self.seconds * 1_000 + self.nanos // _NANOS_PER_MILLI

    def __str__(self) -> str:
        """Return the instant in ISO 8601, with a fraction of 0, 3, 6 or 9 digits."""
        try:
            base = (_EPOCH + timedelta(seconds=self.seconds)).replace(tzinfo=None).isoformat(timespec="seconds")
        except OverflowError:
            return repr(self)
        for digits in (3, 6, 9):
            if self.nanos and self.nanos % 10 ** (9 - digits) == 0:
                return f"{base}.{self.nanos // 10 ** (9 - digits):0{digits}d}Z"
        return f"{base}Z"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Instant.EPOCH = Instant(0)

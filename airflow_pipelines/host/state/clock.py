"""The clock of one incarnation: the value of NOW(), and the times at which it moves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_pipelines.contract.runtime_config import RuntimeConfig, zone_offset_us

MICROSECONDS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClockOptions:
    """The options of a pipeline's clock.

    :param resolution_us: the microseconds between ticks
    :param offset_us: the microseconds added to the time in UTC
    :param http_driven: True if the clock moves only by requests
    :param starts_at_us: the time in UTC at which the clock starts, in microseconds since the epoch; None for that of the machine
    """

    resolution_us: int = MICROSECONDS
    offset_us: int = 0
    http_driven: bool = False
    starts_at_us: int | None = None

    @classmethod
    def of(cls, config: RuntimeConfig) -> ClockOptions:
        """Return the clock options of a runtime configuration.

        :param config: the configuration of a pipeline
        """
        zone, shift = zone_offset_us(config.clock_timezone_offset), config.dev_tweaks.now_offset or 0
        starts_at = shift if isinstance(shift, datetime) else None
        milliseconds = 0 if isinstance(shift, datetime) else shift
        return cls(
            resolution_us=config.clock_resolution_usecs or MICROSECONDS,
            offset_us=zone + round(milliseconds * 1000),
            http_driven=bool(config.dev_tweaks.now_http_driven),
            starts_at_us=None if starts_at is None else (starts_at - _EPOCH) // timedelta(microseconds=1),
        )


class RunClock:
    """The clock that gives the time of the next step. Thread-safe."""

    def __init__(self, options: ClockOptions, wall: Callable[[], float] = time.time) -> None:
        """Start the clock.

        :param wall: returns the time in seconds since the epoch
        """
        self.options = options
        self._wall = wall
        self._lock = threading.Lock()
        self._shift = options.offset_us
        self._frozen: int | None = None
        if options.starts_at_us is not None:
            self._shift += options.starts_at_us - self._read_wall()
            if options.http_driven:
                self._frozen = options.starts_at_us + options.offset_us
        self._next_tick = 0.0

    def now(self) -> int:
        """Return the time for a step, in microseconds since the epoch, as NOW() shows it."""
        with self._lock:
            if self.options.http_driven:
                if self._frozen is None:
                    self._frozen = self._read_shown()
                return self._frozen
        return self._read_shown()

    def resume(self, reached: int | None) -> None:
        """Go on from the time of the last step, if the clock is driven by requests or starts at a time of its own."""
        if reached is None:
            return
        with self._lock:
            if self.options.http_driven:
                self._frozen = reached if self._frozen is None else max(reached, self._frozen)
            elif self.options.starts_at_us is not None:
                self._shift += max(0, reached - self._read_shown())

    def advance(self, delta_us: int | None) -> int:
        """Move a clock that is driven by requests, by one tick if ``delta_us`` is None.

        :returns: the new time
        """
        at = self.now()
        with self._lock:
            self._frozen = at + (self.options.resolution_us if delta_us is None else delta_us)
            return self._frozen

    def moved_to(self, at: int) -> int:
        """Move a clock that is driven by requests to a time, unless it is further already.

        :returns: the new time
        """
        now = self.now()
        with self._lock:
            self._frozen = max(now, at)
            return self._frozen

    def until_tick(self, wake: int | None) -> float | None:
        """Return the seconds until the next tick is due, or None if there is none.

        :param wake: the instant at which a tick may change something, in microseconds since the epoch; None for never. Between two
            ticks there is at least the clock's resolution. A clock that requests drive does not tick by itself
        """
        if wake is None or self.options.http_driven:
            return None
        return max(0.0, self._next_tick - time.monotonic(), (wake - self._read_shown()) / MICROSECONDS)

    def tick(self, wake: int | None) -> int | None:
        """Return the time for the next step if a tick is due, else None.

        :param wake: see :meth:`until_tick`
        """
        wait = self.until_tick(wake)
        if wait is None or wait > 0:
            return None
        # Counted from now, not from the due time: missed ticks are not made up for.
        self._next_tick = time.monotonic() + self.options.resolution_us / MICROSECONDS
        return self.now()

    def until(self, timer: int | None) -> float | None:
        """Return the seconds until the time of a timer, or None without a timer or if requests drive the clock.

        :param timer: the time in microseconds since the epoch
        """
        if timer is None or self.options.http_driven:
            return None
        return max(0.0, (timer - self._read_shown()) / MICROSECONDS)

    def check_timer(self, timer: int | None) -> int | None:
        """Return the current time if a timer is due, else None. Unlike ticks, timers are as precise as the clock.

        :param timer: see :meth:`until`
        """
        wait = self.until(timer)
        return self.now() if wait is not None and wait <= 0 else None

    def _read_shown(self) -> int:
        return self._read_wall() + self._shift

    def _read_wall(self) -> int:
        return round(self._wall() * MICROSECONDS)


def describe_time(at_us: int) -> dict[str, Any]:
    """Return a time in the form of the REST contract."""
    moment = _EPOCH + timedelta(microseconds=at_us)
    return {"now_ms": at_us // 1000, "now": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")}

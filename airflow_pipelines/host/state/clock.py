"""The clock of one incarnation: what NOW() is, and when it moves."""

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
    """How a pipeline's clock goes.

    :param resolution_us: microseconds between ticks
    :param offset_us: what is added to the time in UTC
    :param http_driven: the clock stands still but for requests that move it
    :param starts_at_us: the time in UTC at which the clock starts, in microseconds since the epoch; None for that of the machine
    """

    resolution_us: int = MICROSECONDS
    offset_us: int = 0
    http_driven: bool = False
    starts_at_us: int | None = None

    @classmethod
    def of(cls, config: RuntimeConfig) -> ClockOptions:
        """The clock that a runtime configuration asks for.

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


class Clock:
    """Says which time the next step is to have. Thread-safe."""

    def __init__(self, options: ClockOptions, wall: Callable[[], float] = time.time) -> None:
        """:param wall: gives the time in seconds since the epoch."""
        self.options = options
        self._wall = wall
        self._lock = threading.Lock()
        self._shift = options.offset_us
        self._frozen: int | None = None
        if options.starts_at_us is not None:
            self._shift += options.starts_at_us - self._walled()
            if options.http_driven:
                self._frozen = options.starts_at_us + options.offset_us
        self._next_tick = 0.0

    def now(self) -> int:
        """The time for a step, in microseconds since the epoch, as NOW() shows it."""
        with self._lock:
            if self.options.http_driven:
                if self._frozen is None:
                    self._frozen = self._shown()
                return self._frozen
        return self._shown()

    def resume(self, reached: int | None) -> None:
        """Go on from the time of the last step, which a clock keeps that is driven by requests or starts at a time of its own."""
        if reached is None:
            return
        with self._lock:
            if self.options.http_driven:
                self._frozen = reached if self._frozen is None else max(reached, self._frozen)
            elif self.options.starts_at_us is not None:
                self._shift += max(0, reached - self._shown())

    def advanced(self, delta_us: int | None) -> int:
        """Move a clock that is driven by requests, by one tick when ``delta_us`` is None.

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
        """Seconds until the next tick is due; None when there is none.

        :param wake: the instant at which a tick may change something, in microseconds since the epoch; None for never. Between two
            ticks there is at least the clock's resolution. A clock that requests drive does not tick by itself.
        """
        if wake is None or self.options.http_driven:
            return None
        return max(0.0, self._next_tick - time.monotonic(), (wake - self._shown()) / MICROSECONDS)

    def tick(self, wake: int | None) -> int | None:
        """The time for the next step when a tick is due, else None.

        :param wake: see :meth:`until_tick`
        """
        wait = self.until_tick(wake)
        if wait is None or wait > 0:
            return None
        # From now, not from when it was due: ticks that were missed are not made up for.
        self._next_tick = time.monotonic() + self.options.resolution_us / MICROSECONDS
        return self.now()

    def until(self, timer: int | None) -> float | None:
        """Seconds until the time of a timer; None without one, and when requests drive the clock.

        :param timer: microseconds since the epoch
        """
        if timer is None or self.options.http_driven:
            return None
        return max(0.0, (timer - self._shown()) / MICROSECONDS)

    def reached(self, timer: int | None) -> int | None:
        """The time now when a timer is due, else None. Unlike ticks, timers are as precise as the clock.

        :param timer: see :meth:`until`
        """
        wait = self.until(timer)
        return self.now() if wait is not None and wait <= 0 else None

    def _shown(self) -> int:
        return self._walled() + self._shift

    def _walled(self) -> int:
        return round(self._wall() * MICROSECONDS)


def described(at_us: int) -> dict[str, Any]:
    """A time as the REST contract shows it."""
    moment = _EPOCH + timedelta(microseconds=at_us)
    return {"now_ms": at_us // 1000, "now": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")}

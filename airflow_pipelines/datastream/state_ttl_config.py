"""The time to live of state."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.time import Time
from airflow_pipelines.streams.state.ttl import TimeToLive

_DEFAULT_CLEANUP_SIZE = 5
_DEFAULT_ENTRIES = 1000
_SWEPT = "expired values are removed whenever the page that holds them is written"


class StateTtlConfig:
    """The time to live of state. Use :meth:`new_builder` to make one.

    :param update_type: the operations that extend the life of a value
    :param state_visibility: the visibility of expired values
    :param ttl_time_characteristic: the notion of time
    :param ttl: the time to live
    :param cleanup_strategies: the strategies that remove expired values
    :raises ValueError: if the time is not more than 0
    """

    class UpdateType(Enum):
        """The operations that extend the life of a value.

        ``Disabled`` means that values never expire, ``OnCreateAndWrite`` that creation and writing extend their life, and
        ``OnReadAndWrite`` that reading does so too.
        """

        Disabled = 0
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """The visibility of a value that has expired and was not removed yet."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(Enum):
        """The notion of time: processing time, the only one."""

        ProcessingTime = 0

    class CleanupStrategies:
        """The strategies that remove expired values.

        :param strategies: the strategies by kind
        :param is_cleanup_in_background: True to remove expired values also while the program does other work
        """

        class Strategies(Enum):
            """The kinds of strategies."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class CleanupStrategy(ABC):  # noqa: B024 (the base of strategies has no method)
            """The base class of strategies."""

        class EmptyCleanupStrategy(CleanupStrategy):
            """A strategy without settings."""

        class IncrementalCleanupStrategy(CleanupStrategy):
            """A strategy that checks some keys whenever state is accessed.

            :param cleanup_size: the number of keys to check
            :param run_cleanup_for_every_record: True to check keys for each element too
            """

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: int) -> None:
                self._cleanup_size = checks.integer("cleanup_size", cleanup_size, 1)
                self._for_every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                """Return the number of keys to check.

                :returns: the number
                """
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> int:
                """Return True if keys are checked for each element too.

                :returns: the value that was set
                """
                return self._for_every_record

        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """A strategy that removes expired values when RocksDB compacts its files.

            :param query_time_after_num_entries: the number of entries after which the clock is read
            """

            def __init__(self, query_time_after_num_entries: int) -> None:
                self._entries = checks.integer("query_time_after_num_entries", query_time_after_num_entries, 0)

            def get_query_time_after_num_entries(self) -> int:
                """Return the number of entries after which the clock is read.

                :returns: the number
                """
                return self._entries

        EMPTY_STRATEGY: ClassVar[EmptyCleanupStrategy] = EmptyCleanupStrategy()

        def __init__(
            self,
            strategies: Mapping[StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy],
            is_cleanup_in_background: bool,
        ) -> None:
            self._strategies = dict(strategies)
            self._in_background = checks.boolean("is_cleanup_in_background", is_cleanup_in_background)

        def is_cleanup_in_background(self) -> bool:
            """Return True if expired values are removed while the program does other work.

            :returns: True by default
            """
            return self._in_background

        def in_full_snapshot(self) -> bool:
            """Return True if expired values are left out of checkpoints.

            :returns: True if that was requested
            """
            return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def in_rocksdb_compact_filter(self) -> bool:
            """Return True if expired values are removed when RocksDB compacts its files.

            :returns: True if that was requested, or is the default
            """
            return self.get_rocksdb_compact_filter_cleanup_strategy() is not None

        def get_incremental_cleanup_strategy(self) -> StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy | None:
            """Return the strategy that checks some keys whenever state is accessed.

            :returns: the strategy that was set; five keys by default; None if there is no clean-up in the background
            """
            strategies = StateTtlConfig.CleanupStrategies
            strategy = self._strategies.get(strategies.Strategies.INCREMENTAL_CLEANUP)
            if isinstance(strategy, strategies.IncrementalCleanupStrategy):
                return strategy
            return strategies.IncrementalCleanupStrategy(_DEFAULT_CLEANUP_SIZE, False) if self._in_background else None

        def get_rocksdb_compact_filter_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy | None:
            """Return the strategy that removes expired values when RocksDB compacts its files.

            :returns: the strategy that was set; 1000 entries by default; None if there is no clean-up in the background
            """
            strategies = StateTtlConfig.CleanupStrategies
            strategy = self._strategies.get(strategies.Strategies.ROCKSDB_COMPACTION_FILTER)
            if isinstance(strategy, strategies.RocksdbCompactFilterCleanupStrategy):
                return strategy
            return strategies.RocksdbCompactFilterCleanupStrategy(_DEFAULT_ENTRIES) if self._in_background else None

    class Builder:
        """A builder of configurations.

        :param ttl: the time to live
        """

        def __init__(self, ttl: Time) -> None:
            self._ttl = _check_positive(ttl)
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._in_background = True
            self._strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """Set the operations that extend the life of a value.

            :param update_type: the operations; creation and writing by default
            :returns: this object
            """
            self._update_type = checks.member("update_type", update_type, StateTtlConfig.UpdateType)
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Extend the life of a value on creation and writing.

            :returns: this object
            """
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Extend the life of a value also on reading.

            :returns: this object
            """
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateTtlConfig.StateVisibility) -> StateTtlConfig.Builder:
            """Set the visibility of a value that has expired and was not removed yet.

            :param state_visibility: the visibility; never by default
            :returns: this object
            """
            self._visibility = checks.member("state_visibility", state_visibility, StateTtlConfig.StateVisibility)
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Allow reads of a value that has expired until it is removed.

            :returns: this object
            """
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Forbid reads of a value that has expired.

            :returns: this object
            """
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """Set the notion of time.

            :param ttl_time_characteristic: processing time
            :returns: this object
            """
            characteristic = checks.member("ttl_time_characteristic", ttl_time_characteristic, StateTtlConfig.TtlTimeCharacteristic)
            self._characteristic = characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Set the notion of time to processing time.

            :returns: this object
            """
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        @no_effect(_SWEPT)
        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Leave expired values out of checkpoints.

            :returns: this object
            """
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = strategies.EMPTY_STRATEGY
            return self

        @no_effect(_SWEPT)
        def cleanup_incrementally(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> StateTtlConfig.Builder:
            """Check some keys whenever state is accessed, and remove expired values.

            :param cleanup_size: the number of keys to check
            :param run_cleanup_for_every_record: True to check keys for each element too
            :returns: this object
            """
            strategies = StateTtlConfig.CleanupStrategies
            strategy = strategies.IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            self._strategies[strategies.Strategies.INCREMENTAL_CLEANUP] = strategy
            return self

        @no_effect("state that has expired is removed when its time has come")
        def cleanup_in_rocksdb_compact_filter(self, query_time_after_num_entries: int) -> StateTtlConfig.Builder:
            """Remove expired values when RocksDB compacts its files.

            :param query_time_after_num_entries: the number of entries after which the clock is read
            :returns: this object
            """
            strategies = StateTtlConfig.CleanupStrategies
            strategy = strategies.RocksdbCompactFilterCleanupStrategy(query_time_after_num_entries)
            self._strategies[strategies.Strategies.ROCKSDB_COMPACTION_FILTER] = strategy
            return self

        @no_effect(_SWEPT)
        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Disable the removal of expired values while the program does other work.

            :returns: this object
            """
            self._in_background = False
            return self

        def set_ttl(self, ttl: Time) -> StateTtlConfig.Builder:
            """Set the time to live.

            :param ttl: the time, more than 0
            :returns: this object
            """
            self._ttl = _check_positive(ttl)
            return self

        def build(self) -> StateTtlConfig:
            """Make the configuration.

            :returns: the configuration
            """
            strategies = StateTtlConfig.CleanupStrategies(self._strategies, self._in_background)
            return StateTtlConfig(self._update_type, self._visibility, self._characteristic, self._ttl, strategies)

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Time,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        self._update_type = checks.member("update_type", update_type, self.UpdateType)
        self._visibility = checks.member("state_visibility", state_visibility, self.StateVisibility)
        self._characteristic = checks.member("ttl_time_characteristic", ttl_time_characteristic, self.TtlTimeCharacteristic)
        self._ttl = _check_positive(ttl)
        self._strategies = checks.instance("cleanup_strategies", cleanup_strategies, self.CleanupStrategies)

    @staticmethod
    def new_builder(ttl: Time) -> StateTtlConfig.Builder:
        """Return a builder for a configuration.

        :param ttl: the time to live
        :returns: the builder
        """
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """Return the operations that extend the life of a value.

        :returns: the value that was set
        """
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        """Return the visibility of a value that has expired and was not removed yet.

        :returns: the value that was set
        """
        return self._visibility

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Return the notion of time.

        :returns: processing time
        """
        return self._characteristic

    def get_ttl(self) -> Time:
        """Return the time to live.

        :returns: the time
        """
        return self._ttl

    def is_enabled(self) -> bool:
        """Return True if values expire.

        :returns: False for the update type ``Disabled``
        """
        return self._update_type is not self.UpdateType.Disabled

    def time_to_live(self) -> TimeToLive | None:
        """Return the time to live in the form that state needs.

        :returns: the time to live; None if values never expire
        """
        if not self.is_enabled():
            return None
        return TimeToLive(
            self._ttl.to_milliseconds(),
            refreshed_on_read=self._update_type is self.UpdateType.OnReadAndWrite,
            expired_is_visible=self._visibility is self.StateVisibility.ReturnExpiredIfNotCleanedUp,
        )

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """Return the strategies that remove expired values.

        :returns: the strategies
        """
        return self._strategies


def _check_positive(ttl: Time) -> Time:
    if checks.instance("ttl", ttl, Time, "use Time.seconds(...), Time.minutes(...) ...").to_milliseconds() <= 0:
        raise ValueError(
            f"The time to live must be more than 0 ms, not {ttl}; leave out enable_time_to_live for state that never expires"
        )
    return ttl

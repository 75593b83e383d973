from __future__ import annotations

import pytest

from airflow_pipelines.datastream.common.time import Time
from airflow_pipelines.datastream.state_ttl_config import StateTtlConfig
from airflow_pipelines.streams.state.ttl import TimeToLive

_Cleanup = StateTtlConfig.CleanupStrategies


def test_defaults() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(1)).build()
    assert config.get_ttl() == Time.seconds(1)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.is_enabled()
    cleanup = config.get_cleanup_strategies()
    incremental = cleanup.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (5, False)
    assert (cleanup.is_cleanup_in_background(), cleanup.in_full_snapshot(), cleanup.in_rocksdb_compact_filter()) == (
        True,
        False,
        True,
    )


def test_the_builder_sets_everything() -> None:
    config = (
        StateTtlConfig.Builder(Time.seconds(1))
        .set_ttl(Time.days(2))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(7, True)
        .cleanup_in_rocksdb_compact_filter(9)
        .disable_cleanup_in_background()
        .build()
    )
    assert config.get_ttl() == Time.days(2)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    cleanup = config.get_cleanup_strategies()
    incremental, compaction = cleanup.get_incremental_cleanup_strategy(), cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert incremental is not None
    assert compaction is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (7, True)
    assert (compaction.get_query_time_after_num_entries(), cleanup.in_full_snapshot(), cleanup.is_cleanup_in_background()) == (
        9,
        True,
        False,
    )


def test_without_background_there_is_only_what_was_asked_for() -> None:
    cleanup = StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background().build().get_cleanup_strategies()
    assert cleanup.get_incremental_cleanup_strategy() is None
    assert not cleanup.in_rocksdb_compact_filter()
    assert isinstance(_Cleanup.EMPTY_STRATEGY, _Cleanup.EmptyCleanupStrategy)


def test_disabled_state_never_expires() -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(1)).set_update_type(StateTtlConfig.UpdateType.Disabled)
    assert not builder.build().is_enabled()
    assert builder.build().time_to_live() is None


def test_state_gets_what_it_needs() -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(2))
    assert builder.build().time_to_live() == TimeToLive(2000)
    everything = builder.update_ttl_on_read_and_write().return_expired_if_not_cleaned_up().build()
    assert everything.time_to_live() == TimeToLive(2000, refreshed_on_read=True, expired_is_visible=True)


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match=r"must be more than 0 ms, not Time.milliseconds\(0\)"):
        StateTtlConfig.new_builder(Time.seconds(0))
    with pytest.raises(TypeError, match=r"use Time.seconds\(...\)"):
        StateTtlConfig.new_builder(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"UpdateType\.OnReadAndWrite"):
        StateTtlConfig.new_builder(Time.seconds(1)).set_update_type(2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cleanup_size must be at least 1"):
        StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(0, False)

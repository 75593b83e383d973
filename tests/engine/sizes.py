"""Sizes of work: limits by which a few rows make the engine work as it does with many."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.engine.limits import Limits, MergeLimits, PlanLimits

SIZES: Mapping[str, Limits] = {
    # Everything in memory, in one task, and shown to Spark whole.
    "small": Limits(),
    # The same without prepared queries, and with joins and groups by Spark.
    "planned anew": Limits(driver_rows=-1, plans=PlanLimits(queries=0)),
    # Everything in memory and in one task of Spark, but too much to be shown to it whole: rows that matter are looked up.
    "looked up": Limits(tiny=-1, driver_rows=-1, merges=MergeLimits(bundled_rows=2)),
    # All deltas stay in memory, everything else is streamed past them or looked up in.
    "narrow": Limits(small_input=-1, driver_rows=-1),
    # Whatever has a few rows goes to files, so that each operator meets all mixtures, and traces are merged all the time.
    "mixed": Limits(
        small_rows=3,
        held_bytes=500,
        small_input=6,
        tiny=2,
        fan_out=8,
        driver_rows=8,
        driver_bytes=1_000,
        few_losses=1,
        merges=MergeLimits(memory_batches=1, file_batches=2, hard_limit=4, bundled_rows=2, retention_rows=2),
    ),
    # Nothing counts as small, and yet everything is in memory, and the driver computes what it can.
    "held": Limits(small_rows=-1, small_input=-1, tiny=-1, fan_out=-1, merges=MergeLimits(memory_batches=1, file_batches=1)),
    # Everything goes to files, and the driver computes what it can.
    "files": Limits(
        small_rows=-1, held_bytes=-1, small_input=-1, tiny=-1, fan_out=-1, merges=MergeLimits(memory_batches=1, file_batches=1)
    ),
    # Everything goes to files, and jobs of Spark compute everything.
    "large": Limits(
        small_rows=-1,
        held_bytes=-1,
        small_input=-1,
        tiny=-1,
        fan_out=-1,
        driver_rows=-1,
        merges=MergeLimits(memory_batches=1, file_batches=1),
    ),
}
"""The limits of each size by its name."""

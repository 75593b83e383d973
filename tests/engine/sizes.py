"""Sizes of work: limits by which a few rows make the engine work as it does with many."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.engine.limits import Limits

SIZES: Mapping[str, Limits] = {
    # Everything in memory, in one task, and shown to Spark whole.
    "small": Limits(),
    # The same without prepared queries, and with joins by Spark, here and where it is said.
    "planned anew": Limits(prepared_queries=0, joined_rows=-1),
    # Everything in memory and in one task, but too much to be shown to Spark whole: rows that matter are looked up.
    "looked up": Limits(tiny=-1, bundled_rows=2, joined_rows=-1),
    # All deltas stay in memory, everything else is streamed past them or looked up in.
    "narrow": Limits(small_input=-1, joined_rows=-1),
    # Whatever has a few rows goes to files, so that each operator meets all mixtures, and traces are merged all the time.
    "mixed": Limits(
        small_rows=3,
        held_bytes=500,
        small_input=6,
        tiny=2,
        fan_out=8,
        joined_rows=8,
        grouped_rows=8,
        grouped_bytes=1_000,
        memory_batches=1,
        file_batches=2,
        hard_limit=4,
        bundled_rows=2,
        few_losses=1,
        parts=1,
        retention_rows=2,
    ),
    # Nothing counts as small, and yet everything is in memory.
    "held": Limits(small_rows=-1, small_input=-1, tiny=-1, fan_out=-1, memory_batches=1, file_batches=1),
    # Everything goes to files, and Spark finds groups out.
    "large": Limits(
        small_rows=-1, held_bytes=-1, small_input=-1, tiny=-1, fan_out=-1, grouped_rows=-1, memory_batches=1, file_batches=1
    ),
}
"""The limits of each size by its name."""

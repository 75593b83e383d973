"""The pages say the limits of size and time that the code has. What happens at a limit is tested where the limit is."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

DOCS = Path(__file__).parents[2] / "docs"
MIB = 1 << 20
FILES = "connectors.transports.files"
KAFKA = "connectors.transports.kafka"
LIMITS: dict[str, list[tuple[str, str, Any]]] = {
    "architecture.md": [
        ("| `tiny` | 5,000 rows |", "engine.limits:Limits.tiny", 5_000),
        ("| `small_rows`, `small_bytes` | 50,000 rows, 64 MiB |", "engine.limits:Limits.small_rows", 50_000),
        ("| `small_rows`, `small_bytes` | 50,000 rows, 64 MiB |", "engine.limits:Limits.small_bytes", 64 * MIB),
        ("| `held_bytes` | 64 MiB |", "engine.limits:Limits.held_bytes", 64 * MIB),
        ("| `small_input`, `fan_out` | 100,000 rows, 200,000 rows |", "engine.limits:Limits.small_input", 100_000),
        ("| `small_input`, `fan_out` | 100,000 rows, 200,000 rows |", "engine.limits:Limits.fan_out", 200_000),
        ("| `driver_rows`, `driver_bytes` | 2,000,000 rows, 256 MiB |", "engine.limits:Limits.driver_rows", 2_000_000),
        ("| `driver_rows`, `driver_bytes` | 2,000,000 rows, 256 MiB |", "engine.limits:Limits.driver_bytes", 256 * MIB),
        ("| `read_rows` | 5,000,000 rows |", "engine.limits:Limits.read_rows", 5_000_000),
        ("| `indexed_rows` | 500,000 rows |", "engine.limits:Limits.indexed_rows", 500_000),
        ("| `merged_on_read` | 1,000,000 rows |", "engine.limits:Limits.merged_on_read", 1_000_000),
        ("| `few_losses` | 1,000 rows |", "engine.limits:Limits.few_losses", 1_000),
        ("| `stream_elements` | 2,000,000 elements |", "engine.limits:Limits.stream_elements", 2_000_000),
    ],
    "reliability.md": [
        ("notices within 3 s and ends with", "host.state.fence_watch:LOOK_S", 3),
        ("waits up to 15 s until the one before has let go of the file", f"{FILES}.line_output:LOCK_S", 15),
        ("six times in all, and not after two minutes", "engine.storage.remote_calls:RETRIES.attempts", 6),
        ("six times in all, and not after two minutes", "engine.storage.remote_calls:RETRIES.limit_s", 120),
    ],
    "connectors.md": [
        ("Without either, a step takes up to 1,000,000 records", "host.inputs.connector_input:STEP_RECORDS", 1_000_000),
        ("(default 1,000,000) |", "connectors.common_options:ConnectorOptions.max_queued_records", 1_000_000),
        ("(default 1000 for each of `max_queued_records`)", "connectors.common_options:_BYTES_PER_RECORD", 1000),
        (
            "how many of them are kept (default 10,000,000)",
            "connectors.common_options:ConnectorOptions.max_output_buffer_size_records",
            10_000_000,
        ),
        (
            "how long the first of them is kept (default: no limit)",
            "connectors.common_options:ConnectorOptions.max_output_buffer_time_millis",
            None,
        ),
        ("with more than 50,000 changes or 64 MiB of them", "engine.limits:Limits.small_rows", 50_000),
        ("with more than 50,000 changes or 64 MiB of them", "engine.limits:Limits.small_bytes", 64 * MIB),
        ("(default: the rate, 10,000 at most)", "connectors.transports.datagen.plans:_LARGEST_CHUNK", 10_000),
        ("fell behind its rate by more than a second", "connectors.transports.datagen.transport:_CATCHES_UP_S", 1),
        ("from 4,096 texts of each kind", "connectors.transports.datagen.fake_texts:POOL", 4096),
        ("read and parsed at a time (default 4 MiB)", f"{FILES}.readers:BLOCK_BYTES", 4 * MIB),
        ("found by listing, every 2 seconds at most", f"{FILES}.file_set_input:_REMOTE_POLL_S", 2),
        ("in blocks of 8 MiB and up to 16 files at a time", "systems.files.remote:BLOCK_BYTES", 8 * MIB),
        ("in blocks of 8 MiB and up to 16 files at a time", f"{FILES}.store:_FILES_AHEAD", 16),
        ("but for the last 64 KiB of its text", "systems.files.compression:_AT_ONCE", 64 << 10),
        ("until it is closed, or 16 MiB later counts as a mistake", "rows.formats.csv:_LONGEST_RECORD", 16 * MIB),
        ("One record (or one JSON array) may have at most 256 MiB", f"{FILES}.readers:MAX_RECORD_BYTES", 256 * MIB),
        ("(up to 64 MiB, 10,000 steps and 10,000,000 rows", "host.outputs.change_log:MEMORY_BYTES", 64 * MIB),
        ("(up to 64 MiB, 10,000 steps and 10,000,000 rows", "host.outputs.change_log:STEPS", 10_000),
        ("(up to 64 MiB, 10,000 steps and 10,000,000 rows", "host.outputs.change_log:ROWS", 10_000_000),
        ("asked for in the last ten minutes)", "host.outputs.change_log:FORGET_S", 600),
        ("in seconds (default 60)", "connectors.transports.url_input:_LINGER_S", 60),
        ("A broken connection is tried four times", "connectors.transports.http_file:_RETRIES.attempts", 4),
        ("where each of the newest 10,000 steps ends", "connectors.transports.step_ends:KEPT_STEPS", 10_000),
        ("bytes are looked at every 10,000 changes", "connectors.changes:ROWS_AT_ONCE", 10_000),
        ("has at most (default and most 10,000)", "connectors.changes:ROWS_AT_ONCE", 10_000),
        ("part of a step that has more than 10,000 changes", "connectors.changes:ROWS_AT_ONCE", 10_000),
        ("Whenever 1,000 steps have a file each", f"{FILES}.manifest:STEPS_TOGETHER", 1000),
        ("a request has at most (default 1000)", "connectors.transports.http_output:HttpOutputOptions.max_batch_records", 1000),
        ("an answer may take (default 30)", "connectors.transports.http_output:HttpOutputOptions.timeout_secs", 30),
        ("says so (10 s at most)", "connectors.transports.http_output:_RETRIES.longest_wait_s", 10),
        ("half a second at first and after 30 seconds at most", "connectors.base:CONNECTOR_RETRIES.first_wait_s", 0.5),
        ("half a second at first and after 30 seconds at most", "connectors.base:CONNECTOR_RETRIES.longest_wait_s", 30),
        ("What is more than 64 MiB waits in files", "host.outputs.delivery_queue:MEMORY_BYTES", 64 * MIB),
        ("waits for up to 10 seconds for targets that work", "host.runs.checkpointer:DELIVER_S", 10),
        ("the newest 100 are kept, over restarts", "connectors.left_out:_MOST_LISTED", 100),
        ("A VARIANT may be nested 200 levels deep", "rows.formats.variant:MAX_DEPTH", 200),
    ],
    "kafka.md": [
        ("`fetch.queue.backoff.ms` is 10 unless", "systems.kafka.properties:CONSUMER_DEFAULTS.fetch.queue.backoff.ms", 10),
        ("are found within 10 seconds", f"{KAFKA}.input:_PARTITIONS_S", 10),
        ("with 4 cores or more", f"{KAFKA}.cluster:_CORES", 4),
        ("when more than 500,000 records of a topic wait", f"{KAFKA}.cluster:LARGE_BACKLOG", 500_000),
        ("at most a million records and about 128 MiB", f"{KAFKA}.cluster:_JOB_RECORDS", 1_000_000),
        ("at most a million records and about 128 MiB", f"{KAFKA}.cluster:_JOB_BYTES", 128 * MIB),
        ("takes longer than five minutes", f"{KAFKA}.cluster:_JOB_S", 300),
        ("that are read together, up to 20,000", f"{KAFKA}.input:_BLOCK_RECORDS", 20_000),
        ("`transaction.timeout.ms` (10 minutes unless it is given)", f"{KAFKA}.output:_TRANSACTION_MS", 600_000),
        ("a view that does not change again every hour", "systems.kafka.transactions:RENEWAL_S", 3600),
        ("how long an answer may take (default 15)", "rows.formats.registered.registry:_TIMEOUT_S", 15),
    ],
    "delta.md": [
        ("up to 64 MiB of them are compared first", "connectors.transports.delta_table.parts:NET_BYTES", 64 * MIB),
        ("about 500,000 rows at a time are put in order", "connectors.transports.delta_table.parts:SPAN_ROWS", 500_000),
    ],
    "iceberg.md": [("looks for snapshots once a second", "connectors.transports.iceberg.input:_POLL_S", 1)],
    "sql.md": [
        ("(At most 1,000 rows per relation and step are reported one by one", "engine.lateness:REPORTED", 1000),
        ("after 1,000 rounds", "engine.spark.sessions:SESSION_CONF.spark.sql.cteRecursionLevelLimit", "1000"),
        ("has more than 100,000,000 rows", "engine.spark.sessions:SESSION_CONF.spark.sql.cteRecursionRowLimit", "100000000"),
        ("or an hour fails its step", "engine.operators.recursive:MAX_SECONDS", 3600),
        ("within 10 s, as the body of a request", "serving.bounds:BODY_PATIENCE_S", 10),
    ],
    "hosts.md": [
        ("A host has 300 s to come up", "service.deployers.shared:START_LIMIT_S", 300),
        ("has not answered for two minutes", "host.runs.spark_health:SILENCE_S", 120),
        ("for 10 s in which it used no processor", "host.runs.spark_health:STANDSTILL_S", 10),
        ("when it has not reached its store for 90 s", "host.main:STORE_GRACE_S", 90),
        ("whose heartbeat is late by 5 s", "service.hang_watch:SUSPECT_S", 5),
        ("It is asked every 2 s and has 2 s for each answer", "service.hang_watch:ASK_S", 2),
        ("it left three questions in a row without an answer", "service.hang_watch:QUESTIONS", 3),
        ("was silent for 5 s in which", "service.hang_watch:SILENT_S", 5),
        ("or for five minutes in any case", "service.hang_watch:BUSY_S", 300),
        ("stands still for two minutes ends by itself", "host.main:STUCK_S", 120),
        ("functions have 10 s to close", "engine.streams.runtime:END_S", 10),
        ("may take 100 s of processor time", "host.runs.fleet:COMPILE_LIMIT_S", 100),
        ("is told after 110 s that", "service.compiling:COMPILE_TIMEOUT_S", 110),
        ("when it has more than 10 MiB, and two older files", "contract.log_files:LOG_BYTES", 10 * MIB),
        ("when it has more than 10 MiB, and two older files", "contract.log_files:LOG_FILES", 2),
        ("(256 of them; more are refused with 429)", "host.queries.queries:QueryLimits.waiting", 256),
        ("holds at most 8 MiB that its client has not taken", "host.queries.body_queue:QUEUED_BYTES", 8 * MIB),
        ("1,000 lines of text or JSON", "host.queries.rendering:LINES_AT_ONCE", 1000),
        ("a Parquet row group of 16 MiB", "host.queries.rendering:ROW_GROUP_BYTES", 16 * MIB),
        ("their first 4 MiB are held back", "host.queries.queries:HELD_BYTES", 4 * MIB),
        ("| `AIRFLOW_PIPELINES_HOST_IDLE_S` | 1800 |", "common.settings:Settings.host_idle_s", 1800),
        ("| `AIRFLOW_PIPELINES_QUERY_TIMEOUT_S` | 300 |", "common.settings:Settings.query_timeout_s", 300),
        ("| `AIRFLOW_PIPELINES_QUERY_RESULT_BYTES` | 536870912 |", "common.settings:Settings.query_result_bytes", 536870912),
        ("| `AIRFLOW_PIPELINES_QUERY_CONCURRENCY` | 4 |", "common.settings:Settings.query_concurrency", 4),
        ("| `AIRFLOW_PIPELINES_HEARTBEAT_TIMEOUT_S` | 15 |", "common.settings:Settings.heartbeat_timeout_s", 15),
    ],
}


def _value(name: str) -> Any:
    """The value of a constant or of its attribute, the default of a field, or an entry of a dictionary."""
    module, _, path = name.partition(":")
    first, _, rest = path.partition(".")
    found = getattr(importlib.import_module(f"airflow_pipelines.{module}"), first)
    if not rest:
        return found
    if isinstance(found, dict):
        return found[rest]
    if not isinstance(found, type):
        return getattr(found, rest)
    if issubclass(found, BaseModel):
        return found.model_fields[rest].default
    return {field.name: field.default for field in dataclasses.fields(found)}[rest]


@pytest.mark.parametrize(
    ("page", "sentence", "name", "value"),
    [pytest.param(page, *limit, id=limit[1]) for page, limits in LIMITS.items() for limit in limits],
)
def test_a_page_says_the_limit_that_the_code_has(page: str, sentence: str, name: str, value: Any) -> None:
    assert sentence in " ".join((DOCS / page).read_text().split())
    assert _value(name) == value

"""The saving of a pipeline's state: checkpoints, and recovery points in place of a journal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from airflow_pipelines.engine.storage.checkpoint import CheckpointContents, CheckpointInfo
from airflow_pipelines.engine.storage.connector_state import ConnectorState, OutputState
from airflow_pipelines.host.steps.live import LivePipeline


def save_checkpoint(live: LivePipeline) -> CheckpointInfo:
    """Write a listed checkpoint.

    :param live: the pipeline
    """
    started = time.monotonic()
    info = live.durability.save_checkpoint(_collect_contents(live))
    _note_saved(live)
    live.push_keys.note_saved()
    took = (time.monotonic() - started) * 1000
    live.log.info("checkpoint %s: step %d, %d bytes, %.0f ms", info.uuid, info.steps, info.size, took)
    return info


def save_recovery_point(live: LivePipeline) -> None:
    """Replace the journal by a recovery point.

    :param live: the pipeline
    """
    live.durability.save_recovery_point(_collect_contents(live))
    _note_saved(live)
    live.durability.collect_garbage()


def show_end_of_streams(live: LivePipeline) -> None:
    """Let sinks make their writes visible; with storage, once no kill can lose these.

    :param live: the pipeline
    """
    if live.durability.options.storage:
        save_recovery_point(live)
    else:
        live.circuit.save_streams()
        _note_saved(live)


def _collect_contents(live: LivePipeline) -> CheckpointContents:
    """Return the state after the last step, with all batches on disk and all output buffers written."""
    # Rows in the checkpoint are not evaluated again, so buffered changes would never be written. Queued ones are kept in it.
    live.endpoints.outputs.flush(live.program)
    live.complete()
    live.circuit.save_streams()
    snapshot = live.circuit.snapshot.flush(live.durability.batches)
    live.circuit.restore(snapshot)
    connectors = live.endpoints.states()
    return CheckpointContents(
        program=live.identity,
        step=snapshot.step,
        snapshot=snapshot.to_manifest(),
        files=tuple(sorted({*snapshot.files(), *_files_of(connectors)})),
        connectors=connectors,
        counters=live.metrics.counters(),
        initial_start_time=live.metrics.initial_start_time,
        push_keys=live.push_keys.collect_kept(),
    )


def _note_saved(live: LivePipeline) -> None:
    """Note that everything done so far is durable."""
    if live.circuit.streams is not None:
        live.circuit.streams.committed()
    live.endpoints.inputs.keep_positions()
    live.endpoints.inputs.count_durable()


def _files_of(connectors: Mapping[str, ConnectorState]) -> Iterator[str]:
    """Yield the batch files with changes that outputs have not delivered."""
    for state in connectors.values():
        for kept in state.undelivered if isinstance(state, OutputState) else ():
            yield from kept.files

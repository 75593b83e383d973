"""Reads from a saved state which operators a stream program had, and what they keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, replace
from typing import Any

from airflow_pipelines.engine.snapshot import states_of
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.streams.saved_state import PAGES, REST, operators_of, page_bytes, rest_of
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.host.streams.stream_changes import KeptOperator
from airflow_pipelines.program.streams import STREAM_PROGRAM, StreamOperator, StreamProgram, StreamState
from airflow_pipelines.streams.state.description import StateDescription
from airflow_pipelines.streams.worker.rest import read_header


def saved_operators(manifest: Mapping[str, Any], batches: BatchStore) -> tuple[KeptOperator, ...]:
    """The operators of a checkpoint.

    :param manifest: the snapshot in the checkpoint
    :param batches: has its files
    :raises StorageError: when a file is missing or damaged
    """
    saved = manifest["states"].get(STREAM_PROGRAM)
    return () if saved is None else kept_operators(states_of(saved, batches))


def running_operators(
    states: Mapping[str, Trace], program: StreamProgram | None, with_keys: Set[str] = frozenset()
) -> tuple[KeptOperator, ...]:
    """The operators of a program that runs, and what they kept at the newest checkpoint.

    Before the first one nothing is written down, and all of them go on: they keep what they have by then, and how much that is
    nobody knows.

    :param states: the states of the program, empty for none
    :param program: the program, None for none
    :param with_keys: uids of the operators that keep something by key now
    """
    kept = kept_operators(states) if states else ()
    if kept:
        return tuple(replace(each, has_keys=each.has_keys or each.operator.uid in with_keys) for each in kept)
    operators = () if program is None else program.operators
    return tuple(KeptOperator(each, _states(each, ()), None, has_keys=each.uid in with_keys) for each in operators)


def kept_operators(states: Mapping[str, Trace]) -> tuple[KeptOperator, ...]:
    """The operators of which something is kept.

    :param states: the states of the program
    """
    rest = rest_of(states[REST])
    header = {} if rest is None else read_header(rest).operators
    sizes = page_bytes(states[PAGES])
    return tuple(
        KeptOperator(
            operator,
            _states(operator, known.states if known is not None else ()),
            sizes.get(operator.uid, 0),
            known.broadcast_bytes if known is not None else 0,
            has_keys=sizes.get(operator.uid, 0) > 0,
        )
        for operator in operators_of(states[REST])
        for known in (header.get(operator.uid),)
    )


def _states(operator: StreamOperator, asked: Iterable[StateDescription]) -> tuple[StreamState, ...]:
    """What an operator keeps by itself, such as the contents of windows, and what its functions have asked for."""
    found = {state.name: state for state in operator.states or ()}
    found |= {state.name: StreamState(**asdict(state)) for state in asked}
    return tuple(found.values())

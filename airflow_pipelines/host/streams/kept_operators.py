"""The operators of a stream program, and their state, as a saved state has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, replace
from typing import Any

from airflow_pipelines.engine.snapshot import states_of
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.streams.saved_state import PAGES, REST, operators_of, page_bytes, rest_of
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.host.streams.stream_changes import SavedOperator
from airflow_pipelines.program.streams import STREAM_PROGRAM, StreamOperator, StreamProgram, StreamState
from airflow_pipelines.streams.state.description import StateDescription
from airflow_pipelines.streams.worker.rest import read_header


def saved_operators(manifest: Mapping[str, Any], batches: BatchStore) -> tuple[SavedOperator, ...]:
    """Return the operators of a checkpoint.

    :param manifest: the snapshot in the checkpoint
    :param batches: the store of its files
    :raises StorageError: if a file is missing or damaged
    """
    saved = manifest["states"].get(STREAM_PROGRAM)
    return () if saved is None else kept_operators(states_of(saved, batches))


def running_operators(
    states: Mapping[str, Trace], program: StreamProgram | None, with_keys: Set[str] = frozenset()
) -> tuple[SavedOperator, ...]:
    """Return the operators of a program that runs, and the state that they kept at the newest checkpoint.

    Before the first checkpoint nothing is saved, and all operators go on with the state that they have; its size is not known.

    :param states: the states of the program, empty for none
    :param program: the program, or None for none
    :param with_keys: the uids of the operators that have keyed state now
    """
    kept = kept_operators(states) if states else ()
    if kept:
        return tuple(replace(each, has_keys=each.has_keys or each.operator.uid in with_keys) for each in kept)
    operators = () if program is None else program.operators
    return tuple(SavedOperator(each, _states(each, ()), None, has_keys=each.uid in with_keys) for each in operators)


def kept_operators(states: Mapping[str, Trace]) -> tuple[SavedOperator, ...]:
    """Return the operators with saved state.

    :param states: the states of the program
    """
    rest = rest_of(states[REST])
    header = {} if rest is None else read_header(rest).operators
    in_pages = page_bytes(states[PAGES])
    sizes = {uid: in_pages.get(uid, 0) + each.keyed_bytes for uid, each in header.items()} | {
        uid: size for uid, size in in_pages.items() if uid not in header
    }
    return tuple(
        SavedOperator(
            operator,
            _states(operator, known.states if known is not None else ()),
            sizes.get(operator.uid, 0),
            known.broadcast_bytes if known is not None else 0,
            has_keys=sizes.get(operator.uid, 0) > 0,
            shares=known.shares if known is not None else {},
        )
        for operator in operators_of(states[REST])
        for known in (header.get(operator.uid),)
    )


def _states(operator: StreamOperator, asked: Iterable[StateDescription]) -> tuple[StreamState, ...]:
    """Return the states of an operator: those that it has by itself, such as window contents, and those of its functions."""
    states = {state.name: state for state in operator.states or ()}
    states |= {state.name: StreamState(**asdict(state)) for state in asked}
    return tuple(states.values())

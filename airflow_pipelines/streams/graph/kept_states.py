"""What operators keep by key, found out before they run: by opening their functions once."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from airflow_pipelines.streams.clock import StepClock, SystemClock
from airflow_pipelines.streams.functions import Function, own_copy
from airflow_pipelines.streams.graph.chains import Chain, Step
from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.state.description import StateDescription, describe_state
from airflow_pipelines.streams.state.descriptors import StateDescriptor
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.views import State

OPEN_SECONDS = 10.0
_log = logging.getLogger("airflow_pipelines.streams")


def kept_states(
    chain: Chain, step: Step, settings: TaskSettings, seconds: float = OPEN_SECONDS
) -> tuple[StateDescription, ...] | None:
    """The states of an operator: its own, and those that its functions ask for in ``open``.

    Functions are opened and closed once, in a thread of their own. States that they ask for later are not known.

    :param chain: has the operator
    :param step: the operator
    :param settings: what functions are told
    :param seconds: how long ``open`` may take
    :returns: the states by their names in order; None when a function could not be opened in time, which the log says
    """
    operator = step.node.operator
    if not operator.is_keyed:
        return ()
    found = {state.name: state for state in operator.own_states()}
    functions = [each for each in operator.user_objects().values() if isinstance(each, Function) and _opens(each)]
    if functions:
        context = _Recording(
            SubtaskInfo(step.name, 0, chain.parallelism),
            chain.max_parallelism,
            settings.job_parameters,
            MetricGroup(),
            StepClock(SystemClock().now()),
            KeyedStore(chain.max_parallelism),
        )
        if not _opened(functions, context, step.name, seconds):
            return None
        found |= {name: describe_state(descriptor) for name, descriptor in context.declared.items()}
    return tuple(found[name] for name in sorted(found))


class _Recording(RuntimeContext):
    """Notes which states functions ask for."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.declared: dict[str, StateDescriptor] = {}

    def _get(self, descriptor: StateDescriptor, expected: type[StateDescriptor]) -> State:
        state = super()._get(descriptor, expected)
        self.declared[descriptor.name] = descriptor
        return state


def _opens(function: Function) -> bool:
    return type(function).open is not Function.open


def _opened(functions: Sequence[Function], context: _Recording, name: str, seconds: float) -> bool:
    errors: list[BaseException] = []

    def open_all() -> None:
        try:
            for function in functions:
                own = own_copy(function)
                with _closing(own):
                    own.open(context)
        except BaseException as error:  # noqa: BLE001 (it is told in the log, and matters only when the program runs)
            errors.append(error)

    thread = threading.Thread(target=open_all, name=f"open() of {name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        errors.append(TimeoutError(f"it takes more than {seconds:g} s"))
    if errors:
        _log.warning(
            "The states of the operator %r are not known before it runs, because open() did not return: %s: %s",
            name,
            type(errors[0]).__name__,
            errors[0],
        )
    return not errors


@contextlib.contextmanager
def _closing(function: Function) -> Iterator[None]:
    try:
        yield
    finally:
        function.close()

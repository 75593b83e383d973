"""The keyed states of operators before they run. They are determined by opening the functions once."""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import FunctionType
from typing import Any, Final

from airflow_pipelines.streams.clock import StepClock, SystemClock
from airflow_pipelines.streams.functions import Function, own_copy
from airflow_pipelines.streams.graph.chains import Chain, Step
from airflow_pipelines.streams.nested_code import nested_code
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.state.description import StateDescription, describe_state
from airflow_pipelines.streams.state.descriptors import StateDescriptor
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.views import State
from airflow_pipelines.streams.window_functions import ProcessAllWindowFunction, ProcessWindowFunction

OPEN_SECONDS = 10.0
_STATES_OF_WINDOWS: Final = frozenset({"global_state", "window_state"})
_log = logging.getLogger("airflow_pipelines.streams")


def kept_states(
    chain: Chain, step: Step, settings: TaskSettings, seconds: float = OPEN_SECONDS
) -> tuple[StateDescription, ...] | None:
    """Return the states of an operator: its own, and those that its functions ask for in ``open``.

    Functions are opened and closed once, in a separate thread.

    :param chain: the chain of the operator
    :param step: the operator
    :param settings: the settings for the functions
    :param seconds: the maximum number of seconds for ``open``
    :returns: the states in the order of their names; None if they are not known before the operator runs, because a function cannot
        be opened in time, which is logged, or because it may ask for states later
    """
    operator = step.node.operator
    states = {state.name: state for state in operator.own_states()}
    functions = [each for each in operator.user_objects().values() if isinstance(each, Function)]
    if any(map(_asks_while_it_runs, functions)):
        return None
    opening = [each for each in functions if type(each).open is not Function.open]
    if opening and operator.is_keyed:
        subtask = SubtaskInfo(
            step.name,
            0,
            chain.parallelism,
            max_parallelism=chain.max_parallelism,
            job_parameters=settings.job_parameters,
        )
        try:
            asked = _record_states_in_thread(opening, lambda: _make_recording(subtask), seconds)
        except Exception as error:  # noqa: BLE001 (it matters only when the program runs)
            _log.warning(
                "The states of the operator %r are not known before it runs, because open() raised %s: %s. A change of the program"
                " drops none of them.",
                step.name,
                type(error).__name__,
                error,
            )
            return None
        if asked is None:
            return None
        states |= {name: describe_state(descriptor) for name, descriptor in asked.items()}
    return tuple(states[name] for name in sorted(states))


def _asks_while_it_runs(function: Function) -> bool:
    """Return True if the code of a window function uses the states of its context, which it asks for with each window."""
    if not isinstance(function, ProcessWindowFunction | ProcessAllWindowFunction):
        return False
    methods = [each for cls in type(function).__mro__ for each in vars(cls).values() if isinstance(each, FunctionType)]
    own = [each for each in methods if each.__module__ != ProcessWindowFunction.__module__]
    return any(not _STATES_OF_WINDOWS.isdisjoint(code.co_names) for each in own for code in nested_code(each.__code__))


def _make_recording(subtask: SubtaskInfo) -> _Recording:
    return _Recording(subtask, StepClock(SystemClock().now()), KeyedStore(subtask.max_parallelism))


class _Recording(RuntimeContext):
    """A runtime context that records the states that functions ask for."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.declared: dict[str, StateDescriptor] = {}

    def _get(self, descriptor: StateDescriptor, expected: type[StateDescriptor]) -> State:
        state = super()._get(descriptor, expected)
        self.declared[descriptor.name] = descriptor
        return state


def _record_states_in_thread(
    functions: Sequence[Function], make: Callable[[], _Recording], seconds: float
) -> Mapping[str, StateDescriptor] | None:
    """Return the states that functions ask for when they are opened.

    :returns: the states; None if a function keeps its context, so that it may ask for more later
    :raises Exception: if a function raises; the same error
    :raises TimeoutError: if it takes too long
    """
    future: Future[Mapping[str, StateDescriptor] | None] = Future()

    def open_all() -> None:
        try:
            future.set_result(_record_states(functions, make()))
        except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
            future.set_exception(error)

    # The thread is a daemon: if it never ends, the process can still end.
    threading.Thread(target=open_all, name="open() of functions", daemon=True).start()
    try:
        return future.result(seconds)
    except FutureTimeoutError:
        raise TimeoutError(f"it takes more than {seconds:g} s") from None


def _record_states(functions: Sequence[Function], context: _Recording) -> Mapping[str, StateDescriptor] | None:
    declared, remembered = context.declared, weakref.ref(context)
    with contextlib.ExitStack() as stack:
        for function in functions:
            own = own_copy(function)
            stack.callback(own.close)
            own.open(context)
        del context
        gc.collect()
        return declared if remembered() is None else None

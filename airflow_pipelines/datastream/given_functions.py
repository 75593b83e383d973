"""Checks of the functions that programs pass: callables, or objects of the classes of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from airflow_pipelines.streams.async_functions import AsyncFunction
from airflow_pipelines.streams.elements import OutputTag
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.functions import CallableFunction, Function, KeySelector

_CALLED = frozenset(
    [
        "map",
        "map1",
        "map2",
        "flat_map",
        "flat_map1",
        "flat_map2",
        "filter",
        "reduce",
        "get_key",
        "partition",
        "process",
        "process_element",
        "process_element1",
        "process_element2",
        "process_broadcast_element",
        "on_timer",
        "apply",
        "add",
        "get_result",
        "merge",
    ]
)
"""The methods of functions that operators call for elements."""


def key_selector_of(selector: Any) -> Callable[[Any], Any]:
    """Return the callable that computes the key of an element.

    :param selector: a callable or a :class:`KeySelector`
    :returns: the callable
    """
    get_key: Callable[[Any], Any] = as_function(selector, KeySelector, "key_by").get_key  # type: ignore[attr-defined]
    return get_key


def checked_function(func: Any, kind: type[Function], method: str, *others: type[Function]) -> Any:
    """Return a function object after checking its class.

    :param func: the function that the program passed
    :param kind: the expected class
    :param method: the method that was called
    :param others: other classes that are possible
    :returns: the object
    :raises StreamProgramError: if it is something else
    """
    _refuse_class(func, method)
    _refuse_coroutines(func, method)
    if not isinstance(func, (kind, *others)):
        raise StreamProgramError(f"{method}() needs {_with_article(kind.__name__)} here, and was given {func!r}.")
    return func


def as_function(func: Any, kind: type[Function], method: str) -> Function:
    """Return a function object for a callable or a function object.

    :param func: the function that the program passed
    :param kind: the expected class
    :param method: the method that was called
    :returns: the object itself, or one that calls the callable
    :raises StreamProgramError: if it is neither
    """
    _refuse_coroutines(func, method)
    if isinstance(func, kind):
        return func
    _refuse_class(func, method)
    if callable(func):
        return CallableFunction(func)
    raise StreamProgramError(f"{method}() needs a callable or a {kind.__name__}, and was given {func!r}.")


def checked_tag(tag: Any, method: str) -> OutputTag[Any]:
    """Return the tag of a side output after checking its class.

    :param tag: the tag that the program passed
    :param method: the method that was called
    :returns: the tag
    :raises StreamProgramError: if it is something else
    """
    if not isinstance(tag, OutputTag):
        raise StreamProgramError(f"{method}() needs an OutputTag such as OutputTag('late'), and was given {tag!r}.")
    return tag


def _refuse_class(func: Any, method: str) -> None:
    if isinstance(func, type) and issubclass(func, Function):
        raise StreamProgramError(f"{method}() was given the class {func.__name__}: give it an object, as in {func.__name__}().")


def _refuse_coroutines(func: Any, method: str) -> None:
    if isinstance(func, AsyncFunction):
        return
    called = [getattr(func, name) for name in dir(type(func)) if name in _CALLED] if isinstance(func, Function) else [func]
    if any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in called):
        raise StreamProgramError(
            f"{method}() was given {func!r}, which is asynchronous, and {method}() would not wait for it. Derive from"
            " AsyncFunction, and give the object to AsyncDataStream.unordered_wait() or ordered_wait()."
        )


def _with_article(name: str) -> str:
    return f"{'an' if name.startswith('A') else 'a'} {name}"

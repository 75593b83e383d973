"""Settings that are accepted without effect here: marked in the code, logged once, and listed in docs/datastream.md."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

_log = logging.getLogger("airflow_pipelines.datastream")
_F = TypeVar("_F", bound=Callable[..., Any])
_MARK = "__why_no_effect__"


def no_effect(why: str) -> Callable[[_F], _F]:
    """Mark a method whose value is accepted without effect. Its first call in a process is logged.

    :param why: the reason, a clause such as ``"classes of the JVM are not loaded"``
    :returns: the decorator
    """

    def mark(method: _F) -> _F:
        @functools.wraps(method)
        def call_method(self: Any, *args: Any, **kwargs: Any) -> Any:
            _say_once(f"{type(self).__qualname__}.{method.__name__}", why)
            return method(self, *args, **kwargs)

        setattr(call_method, _MARK, why)
        return cast(_F, call_method)

    return mark


def why_no_effect(method: Any) -> str | None:
    """Return the reason why a method has no effect, or None if it has one.

    :param method: the attribute of a class
    :returns: the reason given to :func:`no_effect`
    """
    reason = getattr(method, _MARK, None)
    return None if reason is None else str(reason)


@functools.cache
def _say_once(name: str, why: str) -> None:
    _log.warning("%s has no effect here: %s", name.removesuffix(".__init__"), why)

"""Code of Python within other code."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType


def nested_code(code: CodeType) -> Iterator[CodeType]:
    """Code, and that of the functions and classes that are defined within it.

    :param code: the code
    :returns: the outermost first
    """
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_code(constant)

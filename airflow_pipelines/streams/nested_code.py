"""Python code objects within other code objects."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType


def nested_code(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, and those of the functions and classes that are defined within it.

    :param code: the code object
    :returns: the code objects, the outermost first
    """
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_code(constant)

"""A script that imports a program's Python module and lists its functions as JSON.

The module is user code, which could stop or change the host if the host imported it. The text comes on standard input; the last
line of standard output is the answer. This file imports nothing of the package, so that it starts fast.
"""

from __future__ import annotations

import inspect
import json
import sys
import traceback
from typing import Any

NAME = "udf_python"


def probe(text: str) -> dict[str, Any]:
    """Return the ``functions`` of a module by name, or an ``error`` with its line if the module cannot be imported."""
    namespace: dict[str, Any] = {"__name__": NAME, "__file__": NAME}
    try:
        exec(compile(text, NAME, "exec"), namespace)  # noqa: S102 - to run the user's functions is what this is for
    except BaseException as error:  # noqa: BLE001 - it is reported, whatever it is
        # This includes SystemExit: whatever is raised, the module is not imported.
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]
        line = error.lineno if isinstance(error, SyntaxError) and error.filename == NAME else lines[-1] if lines else None
        column = error.offset if isinstance(error, SyntaxError) and error.filename == NAME else None
        message = (error.msg if isinstance(error, SyntaxError) else str(error)) or "no message"
        return {"error": {"type": type(error).__name__, "message": message, "line": line, "column": column}}
    callables = {name: describe(value) for name, value in namespace.items() if callable(value) and not isinstance(value, type)}
    return {"functions": {name: described for name, described in callables.items() if described is not None}}


def describe(function: Any) -> dict[str, Any] | None:
    """Return the range of a function's number of positional arguments, and True for ``vectorised`` if it takes pandas Series.

    ``most`` is None for any number. The result is None for a function that cannot be called with positional arguments alone.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    fewest = most = 0
    unbounded = False
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            most += 1
            fewest += parameter.default is parameter.empty
        elif parameter.kind is parameter.VAR_POSITIONAL:
            unbounded = True
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            return None
    hints = [parameter.annotation for parameter in signature.parameters.values()] + [signature.return_annotation]
    vectorised = any(str(getattr(hint, "__name__", hint)).rsplit(".", 1)[-1] == "Series" for hint in hints)
    return {"fewest": fewest, "most": None if unbounded else most, "vectorised": vectorised}


if __name__ == "__main__":
    answer = probe(sys.stdin.buffer.read().decode("utf-8"))
    # The module may have printed something; the answer is always the last line.
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()

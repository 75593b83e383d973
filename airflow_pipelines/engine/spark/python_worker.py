"""A program's Python functions in Spark's Python workers, with checks of their results.

The workers of a cluster need not have this package, so this module is sent to them as code and imports nothing of the package.
"""

from __future__ import annotations

import datetime
import decimal
import json
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

FAILURE = "python function failed: "
"""The prefix of every error's text. The rest is JSON with the function, the error and the arguments."""
_LONGEST = 200
_INTEGERS = {"byte": 2**7, "short": 2**15, "integer": 2**31, "long": 2**63}


def scalar(module: str, text: str, name: str, returns: Any) -> Callable[..., Any]:
    """Return a Python function of single values from the program's module, with its result checked.

    :param module: a name for the module, unique for each text
    :param text: the module's text
    :param name: the function's name in the module
    :param returns: the type of the result, in Spark's schema JSON
    """

    def call(*values: Any) -> Any:
        try:
            return convert_result(load_module(module, text)[name](*values), returns)
        except Exception as error:
            raise RuntimeError(FAILURE + failure(name, error, values)) from error

    return call


def vectorised(module: str, text: str, name: str) -> Callable[..., Any]:
    """Return a Python function of pandas Series from the program's module. It returns a Series of the same length.

    :param module: a name for the module, unique for each text
    :param text: the module's text
    :param name: the function's name in the module
    """

    def call(*columns: Any) -> Any:
        import pandas

        try:
            result = load_module(module, text)[name](*columns)
            if not isinstance(result, pandas.Series):
                raise TypeError(f"gave {type(result).__name__} and not a pandas Series")
            if columns and len(result) != len(columns[0]):
                raise ValueError(f"gave {len(result)} values for {len(columns[0])} rows")
            return result
        except Exception as error:
            sample = [column.iloc[0] if len(column) else None for column in columns]
            raise RuntimeError(FAILURE + failure(name, error, sample)) from error

    return call


def load_module(module: str, text: str) -> Mapping[str, Any]:
    """Return the global names of the program's module, which each worker imports once."""
    known = sys.modules.get(module)
    if known is None:
        known = types.ModuleType(module)
        exec(compile(text, "udf_python", "exec"), known.__dict__)  # noqa: S102 - the user's functions are what this runs
        sys.modules[module] = known
    return known.__dict__


def failure(name: str, error: BaseException, values: Any) -> str:
    """Return the error of a function, as JSON on one line.

    :param name: the function
    :param error: the error that it raised
    :param values: its arguments; long ones are shortened
    """
    place = error.__traceback__
    line = None
    while place is not None:
        if place.tb_frame.f_code.co_filename == "udf_python":
            line = place.tb_lineno
        place = place.tb_next
    shown = [text if len(text) <= _LONGEST else text[:_LONGEST] + "..." for text in map(repr, values)]
    return json.dumps({"function": name, "type": type(error).__name__, "message": str(error), "line": line, "arguments": shown})


def convert_result(value: Any, kind: Any) -> Any:
    """Check a result and convert it to its type. Spark itself would silently turn a value of another type into NULL.

    :param value: the result of a user's function
    :param kind: the type of the result, in Spark's schema JSON
    :raises TypeError: if the value is of another type
    :raises ValueError: if the type cannot hold the value
    """
    if value is None:
        return None
    if isinstance(kind, dict):
        return _convert_nested(value, kind)
    if kind in _INTEGERS:
        return _integer(value, _INTEGERS[kind])
    if kind in {"float", "double"} and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind.startswith("decimal") and isinstance(value, (int, decimal.Decimal)) and not isinstance(value, bool):
        return _decimal(decimal.Decimal(value), kind)
    if kind == "date" and isinstance(value, datetime.datetime):
        raise TypeError("gave a datetime and not a date")
    expected = _EXACT.get(kind.split("(")[0])
    if expected is None:
        return value
    if not isinstance(value, expected):
        raise TypeError(f"gave {type(value).__name__} {value!r:.{_LONGEST}} for a result of type {kind}")
    return bytes(value) if kind == "binary" else value


_EXACT: Mapping[str, Any] = {
    "boolean": bool,
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "decimal": decimal.Decimal,
    "string": str,
    "binary": (bytes, bytearray),
    "date": datetime.date,
    "time": datetime.time,
    "timestamp": datetime.datetime,
    "timestamp_ntz": datetime.datetime,
}


def _integer(value: Any, bound: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"gave {type(value).__name__} {value!r:.{_LONGEST}} for an integer")
    number = int(value)
    if not -bound <= number < bound:
        raise ValueError(f"gave {number}, which does not fit into the integer type of the result")
    return number


def _decimal(value: decimal.Decimal, kind: str) -> decimal.Decimal:
    precision, scale = (int(part) for part in kind[len("decimal(") : -1].split(","))
    with decimal.localcontext() as context:
        context.prec = 2 * 38
        rounded = value.quantize(decimal.Decimal(1).scaleb(-scale), rounding=decimal.ROUND_HALF_UP)
    if abs(rounded) >= decimal.Decimal(10) ** (precision - scale):
        raise ValueError(f"gave {value}, which does not fit into DECIMAL({precision},{scale})")
    return rounded


def _convert_nested(value: Any, kind: Mapping[str, Any]) -> Any:
    if kind["type"] == "array":
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise TypeError(f"gave {type(value).__name__} for an array")
        return [convert_result(item, kind["elementType"]) for item in value]
    if kind["type"] == "map":
        if not isinstance(value, Mapping):
            raise TypeError(f"gave {type(value).__name__} for a map")
        pairs = value.items()
        return {convert_result(key, kind["keyType"]): convert_result(item, kind["valueType"]) for key, item in pairs}
    names = [field["name"] for field in kind["fields"]]
    if isinstance(value, Mapping):
        unknown = sorted(str(name) for name in value if name not in names)
        if unknown:
            raise ValueError(f"gave the unknown fields {', '.join(unknown)}; the row has {', '.join(names)}")
        items = [value.get(name) for name in names]
    elif isinstance(value, (tuple, list)) and len(value) == len(names):
        items = list(value)
    else:
        raise TypeError(f"gave {type(value).__name__} for a row of {len(names)} fields: give a dict or a tuple")
    return tuple(convert_result(item, field["type"]) for item, field in zip(items, kind["fields"], strict=True))

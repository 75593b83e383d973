"""The JSON texts of values that are no collections, in each flavor."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from airflow_pipelines.rows.arrow import is_variant
from airflow_pipelines.rows.formats import jsontext, variant
from airflow_pipelines.rows.formats.flavors import DEFAULT_FORMS, BinaryForm, ValueForms
from airflow_pipelines.rows.interval_texts import microseconds_text
from airflow_pipelines.rows.python_values import python_values

Scalars: TypeAlias = tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[str | None]]], ...]
"""The functions that convert values to texts, each with a predicate on Arrow types; the first that matches is used."""
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


@cache
def scalars_of(forms: ValueForms) -> Scalars:
    """Return the functions that write values as texts.

    :param forms: the forms of the texts
    """
    return (
        (is_variant, _texts_of_variants if forms.variants_are_texts else _variants),
        (pat.is_integer, _numbers),
        (lambda kind: pat.is_string(kind) or pat.is_large_string(kind), _strings),
        (pat.is_decimal, _decimal_texts if forms.decimals_are_texts else _decimals),
        (pat.is_floating, _floats),
        (pat.is_boolean, _booleans),
        (pat.is_date, _dates if forms.date is None else partial(_units, unit=forms.date)),
        (pat.is_timestamp, _timestamps_of(forms)),
        (pat.is_time, _times if forms.time is None else partial(_units, unit=forms.time)),
        (pat.is_duration, _durations),
        (_is_binary, partial(_binaries, form=forms.binary)),
        (pat.is_null, _nulls),
        (_is_json, _as_they_are),
    )


def _is_json(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.JsonType)


def _as_they_are(array: pa.Array) -> list[str | None]:
    texts: list[str | None] = python_values(array.storage)
    return texts


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind))


def _timestamps_of(forms: ValueForms) -> Callable[[pa.Array], list[str | None]]:
    if forms.timestamp is not None:
        return partial(_units, unit=forms.timestamp)
    return _rfc3339_timestamps if forms.timestamps_are_rfc3339 else _timestamps


def _variants(array: pa.Array) -> list[str | None]:
    return [None if value is None else variant.to_json(value) for value in python_values(array)]


def _texts_of_variants(array: pa.Array) -> list[str | None]:
    return [None if text is None else jsontext.dumps(text) for text in _variants(array)]


def _units(array: pa.Array, unit: int) -> list[str | None]:
    """Return dates and times as numbers in units of ``unit`` microseconds."""
    if pat.is_time(array.type):
        array = array.cast(pa.time64("us"))
    else:
        array = pc.cast(array, pa.timestamp("us", tz=getattr(array.type, "tz", None)), safe=False)
    moments = python_values(array.cast(pa.int64()))
    return [None if moment is None else str(moment // unit) for moment in moments]


def _rfc3339_timestamps(array: pa.Array) -> list[str | None]:
    return [None if text is None else text[:-1].removesuffix("+00:00").replace(" ", "T") + 'Z"' for text in _timestamps(array)]


def _decimal_texts(array: pa.Array) -> list[str | None]:
    return [None if text is None else f'"{text}"' for text in _decimals(array)]


def _numbers(array: pa.Array) -> list[str | None]:
    texts: list[str | None] = python_values(array.cast(pa.string()))
    return texts


def _decimals(array: pa.Array) -> list[str | None]:
    # Arrow writes small numbers with exponents, so Python writes the digits.
    return [None if value is None else format(value, "f") for value in python_values(array)]


def _floats(array: pa.Array) -> list[str | None]:
    if pat.is_float64(array.type):
        return [None if value is None or not math.isfinite(value) else repr(value) for value in python_values(array)]
    # The shortest digits of a REAL are fewer than those of the same number as a DOUBLE.
    texts = python_values(array.cast(pa.string()))
    finite = python_values(pc.is_finite(array))
    return [text if ok else None for text, ok in zip(texts, finite, strict=True)]


def _named_floats(array: pa.Array) -> list[str | None]:
    return [
        text if value is None or math.isfinite(value) else _NOT_FINITE[str(value)]
        for text, value in zip(_floats(array), python_values(array), strict=True)
    ]


def _strings(array: pa.Array) -> list[str | None]:
    return [None if value is None else jsontext.dumps(value) for value in python_values(array)]


def _dates(array: pa.Array) -> list[str | None]:
    return _quote(array.cast(pa.string()))


def _timestamps(array: pa.Array) -> list[str | None]:
    zoned = array.type.tz is not None
    if array.type.unit == "ns":
        # Nanoseconds are dropped, because the engine stores microseconds.
        array = pc.cast(array, pa.timestamp("us", tz=array.type.tz), safe=False)
    texts = pc.cast(array.cast(pa.timestamp(array.type.unit)), pa.string())
    texts = pc.replace_substring_regex(texts, r"\.0+$", "")
    return _quote(pc.binary_join_element_wise(texts, "+00:00", "") if zoned else texts)


def _times(array: pa.Array) -> list[str | None]:
    # Arrow writes all digits of its unit, so a fraction may have trailing zeros that the value did not have.
    texts = pc.cast(array, pa.string())
    return _quote(pc.replace_substring_regex(texts, r"\.?0+$", "") if array.type.unit != "s" else texts)


def _durations(array: pa.Array) -> list[str | None]:
    lengths = python_values(array.cast(pa.duration("us")).cast(pa.int64()))
    return [None if length is None else f'"{microseconds_text(length)}"' for length in lengths]


def _binaries(array: pa.Array, form: BinaryForm) -> list[str | None]:
    return [None if value is None else form.write(value) for value in python_values(array)]


def _nulls(array: pa.Array) -> list[str | None]:
    return [None] * len(array)


def _booleans(array: pa.Array) -> list[str | None]:
    return [None if value is None else ("true" if value else "false") for value in python_values(array)]


def _quote(texts: pa.Array) -> list[str | None]:
    return [None if text is None else f'"{text}"' for text in python_values(texts)]


def _quoted_floats(array: pa.Array) -> list[str | None]:
    return [f'"{text}"' if text in _NOT_FINITE.values() else text for text in _named_floats(array)]


DEFAULT_SCALARS: Final = scalars_of(DEFAULT_FORMS)
READABLE_SCALARS: Final[Scalars] = ((pat.is_floating, _named_floats), *DEFAULT_SCALARS)
"""The texts for people, which need not be JSON: NaN and infinities have their names."""
WHOLE_SCALARS: Final[Scalars] = ((pat.is_floating, _quoted_floats), *DEFAULT_SCALARS)
"""The lossless texts: NaN and infinities are quoted texts, which columns of floating-point numbers accept."""

"""The choice of the maker of a column's values from its type and its settings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final, TypeVar

import pyarrow as pa

from airflow_pipelines.connectors.transports.datagen.draws import FloatingNumbers, WholeNumbers
from airflow_pipelines.connectors.transports.datagen.fake_texts import SEVERAL, FakeTexts
from airflow_pipelines.connectors.transports.datagen.makers import Maker, Nothing, Nulls, OneOf, PlanProblem
from airflow_pipelines.connectors.transports.datagen.nested import Arrays, Binaries, Maps, Structs, Variants
from airflow_pipelines.connectors.transports.datagen.options import FieldOptions, Strategy
from airflow_pipelines.connectors.transports.datagen.scalars import (
    Booleans,
    Decimals,
    Factor,
    Floats,
    Integers,
    RandomUuids,
    Temporals,
    UuidsOfNumbers,
)
from airflow_pipelines.connectors.transports.datagen.texts import FakedTexts, NumberTexts, RandomTexts
from airflow_pipelines.rows.formats.flavors import PANDAS_FORMS
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.values import json_converter
from airflow_pipelines.rows.schema import arrow_type
from airflow_pipelines.rows.types import INTEGER_BOUNDS, ColumnType

_Bound = TypeVar("_Bound", int, float)

_LENGTHS: Final = (0, 5)
"""The default range for the lengths of collections."""
_TEXT_LENGTHS: Final = (0, 25)
_HOW_MANY: Final = (1, 10)
"""The default range for the number of words, sentences or paragraphs."""
_DAY_MS: Final = 86_400_000
_DAYS: Final = (0, (dt.date(2100, 1, 1) - dt.date(1970, 1, 1)).days)
_GREATEST: Final = {"REAL": float.fromhex("0x1.fffffep+127"), "DOUBLE": float.fromhex("0x1.fffffffffffffp+1023")}


def maker_of(kind: ColumnType, options: FieldOptions, where: str, seed: int) -> Maker:
    """Return the maker of the values of a column, or of one part of them.

    :param kind: the type of the values
    :param options: the settings of the values
    :param where: the description of the column or part, for messages
    :param seed: the seed of the texts that look real
    :raises PlanProblem: when such values cannot be made
    """
    maker = _maker(kind, options, where, seed) if options.values is None else _one_of(kind, options, where)
    if not options.null_percentage:
        return maker
    if not kind.nullable:
        raise PlanProblem(f"{where} must not be NULL, but 'null_percentage' is {options.null_percentage:g}")
    return Nulls(maker, options.null_percentage / 100)


def _maker(kind: ColumnType, options: FieldOptions, where: str, seed: int) -> Maker:
    if options.strategy.is_for_strings and not (kind.is_text or kind.is_variant):
        raise PlanProblem(f"{where}: strategy {options.strategy.value!r} makes strings, but the type is {kind}")
    if kind.component is not None:
        elements = maker_of(kind.component, options.value or FieldOptions(), f"{where}, 'value'", seed)
        return Arrays(_lengths(options, _LENGTHS, None, where), elements, arrow_type(kind))
    if kind.key is not None and kind.value is not None:
        keys = maker_of(kind.key.with_nullable(False), options.key or FieldOptions(), f"{where}, 'key'", seed)
        items = maker_of(kind.value, options.value or FieldOptions(), f"{where}, 'value'", seed)
        return Maps(_lengths(options, _LENGTHS, None, where), keys, items, arrow_type(kind))
    if kind.fields is not None:
        given = settings_by_name(options.fields or {}, [field for field, _ in kind.fields], where)
        makers = (
            maker_of(each, given.get(field, FieldOptions()), f"{where}, field {field!r}", seed) for field, each in kind.fields
        )
        return Structs(tuple(makers), arrow_type(kind))
    if kind.is_text:
        return _texts(kind, options, where, seed)
    if kind.is_binary:
        return _binaries(kind, options, where, seed)
    if kind.is_variant:
        contents = ColumnType("VARCHAR" if options.strategy.is_for_strings else _variant_number(options))
        return Variants(_maker(contents, options, where, seed), arrow_type(kind))
    return _scalar(kind, options, where)


def _scalar(kind: ColumnType, options: FieldOptions, where: str) -> Maker:
    if kind.is_boolean:
        return Booleans(WholeNumbers(0, 2, options.strategy, exponent=options.e))
    if kind.is_uuid:
        if options.strategy is Strategy.UNIFORM:
            return RandomUuids()
        return UuidsOfNumbers(_numbers(options, (0, INTEGER_BOUNDS["BIGINT"][1] + 1), int, where))
    if kind.is_floating:
        return _floats(kind, options, where)
    if kind.is_decimal or kind.is_integer:
        return _exact(kind, options, where)
    if kind.is_null:
        return Nothing(arrow_type(kind))
    return _times(kind, options, where)


def settings_by_name(settings: Mapping[str, FieldOptions], names: Iterable[str], where: str) -> dict[str, FieldOptions]:
    """Return the settings by the columns (or fields) that they are for.

    Names match in any case where no other is spelt exactly so.

    :param settings: the settings as they were written
    :param names: the names of the columns
    :param where: the description of the table or struct, for messages
    :raises PlanProblem: when there is no such column
    """
    known = list(names)
    folded = {name.lower(): name for name in reversed(known)}
    by_name = {}
    for written, options in settings.items():
        name = written if written in known else folded.get(written.lower())
        if name is None:
            raise PlanProblem(f"{where} has no column or field {written!r}; there are: {', '.join(known)}")
        by_name[name] = options
    return by_name


def _one_of(kind: ColumnType, options: FieldOptions, where: str) -> Maker:
    if not options.values:
        raise PlanProblem(f"{where}: 'values' is empty")
    if options.strategy.is_for_strings:
        raise PlanProblem(f"{where}: strategy {options.strategy.value!r} cannot pick from 'values'; use increment, uniform or zipf")
    read = json_converter(kind)
    values = []
    for value in options.values:
        try:
            values.append(None if value is None else _moment(kind, value) if _is_number(value) else read(_to_decimals(value)))
        except RecordProblem as problem:
            raise PlanProblem(f"{where}: 'values': {problem}") from problem
        if value is None and not kind.nullable:
            raise PlanProblem(f"{where} must not be NULL, but 'values' has a null")
    places = WholeNumbers(0, len(values), options.strategy, exponent=options.e)
    return OneOf(pa.array(values, arrow_type(kind)), places)


def _moment(kind: ColumnType, value: Any) -> Any:
    """Return a value that is written as a number; dates, times and timestamps are days or milliseconds from zero."""
    if kind.is_temporal:
        return dt.date(1970, 1, 1) + dt.timedelta(days=value) if kind.is_date else json_converter(kind, PANDAS_FORMS)(value)
    return json_converter(kind)(_to_decimals(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _to_decimals(value: Any) -> Any:
    """Return JSON with its fractions as decimals, as the reader of records expects it."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, (list, tuple)):
        return [_to_decimals(item) for item in value]
    return {name: _to_decimals(item) for name, item in value.items()} if isinstance(value, dict) else value


def _texts(kind: ColumnType, options: FieldOptions, where: str, seed: int) -> Maker:
    longest = kind.precision
    strategy = options.strategy
    if strategy.is_for_strings:
        least, end = _bounds(options, _HOW_MANY, int, where) if strategy in SEVERAL else (1, 2)
        return FakedTexts(FakeTexts(strategy, seed, max(0, least), end - 1), longest)
    if strategy is Strategy.INCREMENT:
        least, end = _bounds(options, (0, 1 + (longest or 2**31 - 2)), int, where)
        return NumberTexts(options.scale, max(0, least), end - 1 if longest is None else min(end - 1, longest))
    return RandomTexts(_lengths(options, _TEXT_LENGTHS, longest, where))


def _binaries(kind: ColumnType, options: FieldOptions, where: str, seed: int) -> Maker:
    elements = maker_of(ColumnType("UTINYINT", False), options.value or FieldOptions(), f"{where}, 'value'", seed)
    lengths = _lengths(options, _LENGTHS, kind.precision, where)
    return Binaries(lengths, elements, (kind.precision or 0) if kind.is_padded else 0)


def _lengths(options: FieldOptions, default: tuple[int, int], longest: int | None, where: str) -> WholeNumbers:
    if longest is not None:
        default = (default[0], min(default[1], longest + 1))
    start, end = _bounds(options, default, int, where)
    if start < 0:
        raise PlanProblem(f"{where}: a length cannot be {start}; 'range' must begin with 0 or more")
    if longest is not None and end - 1 > longest:
        raise PlanProblem(f"{where}: 'range' allows lengths up to {end - 1}, but the type holds {longest} at most")
    return WholeNumbers(start, end, options.strategy, exponent=options.e)


def _exact(kind: ColumnType, options: FieldOptions, where: str) -> Maker:
    """Return the maker of integers or decimals."""
    stored = arrow_type(kind)
    if kind.is_integer:
        least, most = kind.bounds
        scale = 0
    else:
        scale = kind.scale or 0
        most = 10 ** (kind.precision or 38) - 1
        least = -most

    def digits(value: Any) -> int:
        return int(Decimal(str(value)).scaleb(scale).to_integral_value(ROUND_FLOOR))

    increments = options.strategy is Strategy.INCREMENT
    start, end = _bounds(options, (least if options.strategy is Strategy.UNIFORM else 0, most + 1), digits, where)
    if start < least or end - 1 > most:
        raise PlanProblem(f"{where}: 'range' {list(options.range or ())} goes beyond what {kind} can hold")
    step: int | float = options.scale * 10**scale
    factor: int | float = options.scale if options.strategy is Strategy.UNIFORM else 1
    if increments and options.range is None and step < 0:
        if least == 0:
            raise PlanProblem(f"{where}: 'scale' is {options.scale}, but {kind} cannot hold negative numbers")
        # Count down from zero, as numbers count up with a positive scale.
        step, factor = -step, -1
    numbers = WholeNumbers(start, end, options.strategy, int(step) if step == int(step) else step, options.e)
    scaled = Factor(factor, least, most)
    return Decimals(numbers, stored, scaled) if pa.types.is_decimal(stored) else Integers(numbers, stored, scaled)


def _floats(kind: ColumnType, options: FieldOptions, where: str) -> Maker:
    greatest = _GREATEST[kind.name]
    default = (-greatest if options.strategy is Strategy.UNIFORM else 0.0, greatest)
    start, end = _bounds(options, default, float, where)
    if max(abs(start), abs(end)) > greatest:
        raise PlanProblem(f"{where}: 'range' {list(options.range or ())} goes beyond what {kind} can hold")
    return Floats(FloatingNumbers(start, end, options.strategy, options.scale, options.e), arrow_type(kind))


def _times(kind: ColumnType, options: FieldOptions, where: str) -> Maker:
    """Return the maker of dates (in days), intervals of months (in months), or other times (in milliseconds)."""
    read = json_converter(kind)
    unit = 1000
    match kind.name:
        case "DATE":
            default, unit = _DAYS, 1
        case "TIME":
            default = (0, _DAY_MS)
        case "TIMESTAMP" | "TIMESTAMP_TZ":
            default = (_DAYS[0] * _DAY_MS, _DAYS[1] * _DAY_MS)
        case _ if pa.types.is_int32(arrow_type(kind)):
            default, unit = (0, 12_000), 1
        case _:
            default = (0, _DAYS[1] * _DAY_MS)

    def units(value: Any) -> int:
        if not isinstance(value, str):
            return int(value)
        stored = pa.scalar(read(value), arrow_type(kind))
        return int(stored.cast(pa.int32() if kind.is_date else pa.int64()).as_py()) // unit

    numbers = _numbers(options, default, units, where)
    if kind.is_time and (numbers.start < 0 or numbers.end > _DAY_MS):
        raise PlanProblem(f"{where}: 'range' {list(options.range or ())} goes beyond a day")
    return Temporals(numbers, arrow_type(kind), unit)


def _numbers(options: FieldOptions, default: tuple[int, int], read: Callable[[Any], int], where: str) -> WholeNumbers:
    start, end = _bounds(options, default, read, where)
    return WholeNumbers(start, end, options.strategy, options.scale, options.e)


def _bounds(
    options: FieldOptions, default: tuple[_Bound, _Bound], read: Callable[[Any], _Bound], where: str
) -> tuple[_Bound, _Bound]:
    if options.range is None:
        return default
    try:
        start, end = (read(bound) for bound in options.range)
    except (RecordProblem, ValueError, ArithmeticError, pa.ArrowInvalid) as problem:
        raise PlanProblem(f"{where}: 'range' {list(options.range)}: {problem}") from problem
    if not start < end:
        raise PlanProblem(f"{where}: 'range' {list(options.range)} has nothing in it; it ends before its second value")
    return start, end


def _variant_number(options: FieldOptions) -> str:
    fractions = any(isinstance(bound, float) for bound in options.range or ()) or isinstance(options.scale, float)
    return "DOUBLE" if fractions else "BIGINT"

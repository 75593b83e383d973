"""The rewriting of casts that Spark refuses: timestamps as numbers and as times of day, rows and maps as VARIANTs.

A timestamp without time zone is a number of milliseconds since 1970. Spark also reports a cast if a function of dates has another
name for a TIME.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from airflow_pipelines.engine.spark.analysis import QueryRefused
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.rewrite.truncation import of_times
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_CONDITION = "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"
_TYPES = re.compile(r'cannot cast "(?P<given>.+?)" to "(?P<wanted>[^"]+)"')
_NUMBER = re.compile(r"TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL\(.*\)")
_MOMENT = re.compile(r"TIMESTAMP_NTZ")
_Rewrite = Callable[[str, str, str], str]
"""A function that takes the function (CAST or TRY_CAST), the operand and the target type, and returns the replacement."""


def _number_as_moment(function: str, value: str, _wanted: str) -> str:
    return f"CAST(TIMESTAMP_MILLIS({function}({value} AS BIGINT)) AS TIMESTAMP_NTZ)"


def _moment_as_number(function: str, value: str, wanted: str) -> str:
    return f"{function}(UNIX_MILLIS(CAST({value} AS TIMESTAMP_LTZ)) AS {wanted})"


def _moment_as_time(function: str, value: str, wanted: str) -> str:
    return f"{function}(DATE_FORMAT({value}, 'HH:mm:ss.SSSSSS') AS {wanted})"


def _rows_as_variant(_function: str, value: str, _wanted: str) -> str:
    return f"TO_VARIANT_OBJECT({value})"


_REWRITES: Sequence[tuple[re.Pattern[str], re.Pattern[str], _Rewrite]] = (
    (_NUMBER, _MOMENT, _number_as_moment),
    (_MOMENT, _NUMBER, _moment_as_number),
    (re.compile(r"TIMESTAMP(_NTZ)?"), re.compile(r"TIME\(\d\)"), _moment_as_time),
    (re.compile(r"(ARRAY<)*(STRUCT|MAP)<.*", re.DOTALL), re.compile("VARIANT"), _rows_as_variant),
)
"""The rewrites by source type and target type."""

_TIME = re.compile(r"TIME\(\d\)")
_WITH_DATE = re.compile(r"DATE|TIMESTAMP(_NTZ)?")
_ADVICE: Sequence[tuple[re.Pattern[str], re.Pattern[str], str]] = (
    (_TIME, _WITH_DATE, "A TIME has no date: write MAKE_TIMESTAMP_NTZ(date, time) with the date that is meant"),
    (re.compile("DATE"), _TIME, "A DATE has no time of day: write TIME '00:00:00' if midnight is meant"),
    (_NUMBER, _TIME, "A number is no TIME: write TIME_FROM_SECONDS(n), TIME_FROM_MILLIS(n) or TIME_FROM_MICROS(n)"),
)
"""The casts without a meaning, by source type and target type, with advice for an alternative."""


def repaired_cast(query: Edited, refused: QueryRefused) -> Edited | None:
    """Rewrite the cast that Spark refuses; return None if it is none of these.

    :param query: the query that Spark refuses
    :param refused: its reason, with a place in ``query.text``
    :raises QueryRefused: if the cast has no meaning, with advice for an alternative; its place is that of the query as first
        written
    """
    match = _TYPES.search(refused.message)
    if refused.condition != _CONDITION or match is None:
        return None
    given, wanted = match["given"], match["wanted"]
    is_of_time = _TIME.fullmatch(given) and _WITH_DATE.fullmatch(wanted)
    other = of_times(query.text, refused.start, refused.end) if is_of_time else None
    if isinstance(other, Edit):
        return query.edit([other])
    advice = next((text for one, other, text in _ADVICE if one.fullmatch(given) and other.fullmatch(wanted)), None)
    if other is not None or advice is not None:
        place = query.origin(refused.start, refused.end)
        raise QueryRefused(*place, other or f"{advice}", refused.condition)
    rewrite = next((text for one, other, text in _REWRITES if one.fullmatch(given) and other.fullmatch(wanted)), None)
    written = _parse_cast(query.text[refused.start : refused.end])
    if rewrite is None or written is None:
        return None
    return query.edit([Edit(refused.start, refused.end, rewrite(*written, wanted))])


def _parse_cast(text: str) -> tuple[str, str] | None:
    """Return the function and the operand of a cast, or None if the text is not a cast."""
    walker = TokenWalker(text)
    first, last = walker.word(0), len(walker.tokens) - 1
    if first in {"cast", "try_cast"} and walker.closing(1) == last:
        depth = 0
        for at in range(2, last):
            word = walker.word(at)
            depth += (word in {"(", "["}) - (word in {")", "]"})
            if word == "as" and depth == 0:
                return first.upper(), text[walker.start(2) : walker.end(at - 1)]
        return None
    colons = [at for at in range(len(walker.tokens)) if walker.word(at) == "::"]
    return ("CAST", text[: walker.start(colons[-1])]) if colons else None

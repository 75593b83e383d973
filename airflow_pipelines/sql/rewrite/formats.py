"""The rewrite of FORMAT_DATE, PARSE_TIMESTAMP and the like from ``%`` specifiers to Spark's patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker

_PATTERNS: Mapping[str, str] = {
    "%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss", "%y": "yy", "%j": "DDD", "%B": "MMMM", "%b": "MMM",
    "%h": "MMM", "%A": "EEEE", "%a": "EEE", "%I": "hh", "%p": "a", "%F": "yyyy-MM-dd", "%T": "HH:mm:ss", "%X": "HH:mm:ss",
    "%R": "HH:mm", "%D": "MM/dd/yy", "%x": "MM/dd/yy", "%r": "hh:mm:ss a", "%6f": "SSSSSS", "%3f": "SSS",
    "%.6f": ".SSSSSS", "%.3f": ".SSS",
    "%-d": "d", "%-m": "M", "%-H": "H", "%-I": "h", "%-M": "m", "%-S": "s", "%-j": "D", "%q": "Q", "%%": "%",
}  # fmt: skip
"""The specifiers of a format text and Spark's pattern letters for them."""
_COMPUTED: Mapping[str, str] = {
    "%e": "LPAD(DAY({0}), 2, ' ')",
    "%k": "LPAD(HOUR({0}), 2, ' ')",
    "%P": "LOWER(DATE_FORMAT({0}, 'a'))",
    "%C": "LPAD(YEAR({0}) DIV 100, 2, '0')",
    "%G": "EXTRACT(YEAROFWEEK FROM {0})",
    "%V": "LPAD(WEEKOFYEAR({0}), 2, '0')",
    "%u": "EXTRACT(DAYOFWEEK_ISO FROM {0})",
    "%w": "(DAYOFWEEK({0}) - 1)",
    "%s": "UNIX_SECONDS(CAST({0} AS TIMESTAMP_LTZ))",
}
"""The specifiers for which Spark has no pattern letters, with an expression of the value."""
_SPECIFIER = re.compile(r"%(?:-[A-Za-z]|\.?\d?[A-Za-z]|%)")
FORMATTED: Mapping[str, str] = {
    "format_date": "{1}",
    "format_timestamp": "{1}",
    "format_time": "CAST(CONCAT('1970-01-01 ', CAST({1} AS STRING)) AS TIMESTAMP_NTZ)",
    "parse_date": "TRY_TO_DATE({1}, '{0}')",
    "parse_timestamp": "CAST(TRY_TO_TIMESTAMP({1}, '{0}') AS TIMESTAMP_NTZ)",
    "parse_time": "CAST(DATE_FORMAT(TRY_TO_TIMESTAMP({1}, '{0}'), 'HH:mm:ss.SSSSSS') AS TIME)",
}
"""The functions of a literal format and a value, with the value to format or Spark SQL to parse it."""


def translate_format(_scan: TokenWalker, call: CallTokens, arguments: Sequence[str]) -> str | None:
    """Return Spark SQL for a call of one of :data:`FORMATTED`.

    :param call: the call
    :param arguments: Spark SQL of its arguments
    :raises CallRefused: if the format is no literal, or has a specifier that Spark cannot write or read
    """
    if len(arguments) != 2:
        return None
    if not arguments[0].startswith("'"):
        raise CallRefused(*call.arguments[0], f"{call.name.upper()} needs its format as a literal text; for others use DATE_FORMAT")
    text, parsing = arguments[0][1:-1], call.name.startswith("parse")
    known = _PATTERNS if parsing else {**_PATTERNS, **_COMPUTED}
    for specifier in _SPECIFIER.finditer(text):
        if specifier[0] not in known:
            message = f"{call.name.upper()} does not know {specifier[0]}; it knows {' '.join(sorted(known))}"
            raise CallRefused(*call.arguments[0], message)
    if parsing:
        return FORMATTED[call.name].format(_pattern(text), arguments[1])
    return _write_value(text, FORMATTED[call.name].format("", arguments[1]))


def _write_value(text: str, value: str) -> str:
    """Return the text of a value: Spark's patterns between the parts that are computed."""
    parts, at = [], 0
    for specifier in _SPECIFIER.finditer(text):
        if specifier[0] in _COMPUTED:
            parts += [
                _formatted_part(text[at : specifier.start()], value),
                f"CAST({_COMPUTED[specifier[0]].format(value)} AS STRING)",
            ]
            at = specifier.end()
    parts.append(_formatted_part(text[at:], value))
    kept = [part for part in parts if part]
    return kept[0] if len(kept) == 1 else f"CONCAT({', '.join(kept)})"


def _formatted_part(text: str, value: str) -> str:
    return f"DATE_FORMAT({value}, '{_pattern(text)}')" if text else ""


def _pattern(text: str) -> str:
    """Return Spark's pattern for a format text."""
    parts, at = [], 0
    for specifier in _SPECIFIER.finditer(text):
        parts += [_verbatim(text[at : specifier.start()]), _PATTERNS[specifier[0]]]
        at = specifier.end()
    return "".join([*parts, _verbatim(text[at:])])


def _verbatim(text: str) -> str:
    # Letters between quotes stand for themselves; the quotes are doubled because the pattern is a SQL string.
    return re.sub(r"[A-Za-z]+", lambda letters: f"''{letters[0]}''", text)

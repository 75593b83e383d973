"""Rewrites casts between numbers and timestamps without time zone, as milliseconds since 1970; Spark refuses them."""

from __future__ import annotations

import re

from airflow_pipelines.engine.spark.analysis import QueryRefused
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_CONDITION = "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"
_TYPES = re.compile(r'cannot cast "(?P<given>[^"]+)" to "(?P<wanted>[^"]+)"')
_NUMBER = re.compile(r"TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL\(.*\)")
_MOMENT = "TIMESTAMP_NTZ"


def repaired_cast(query: Edited, refused: QueryRefused) -> Edited | None:
    """Rewrite the cast that Spark refuses; None when it is not between a number and a timestamp."""
    found = _TYPES.search(refused.message)
    if refused.condition != _CONDITION or found is None:
        return None
    given, wanted = found["given"], found["wanted"]
    if not ((given == _MOMENT and _NUMBER.fullmatch(wanted)) or (wanted == _MOMENT and _NUMBER.fullmatch(given))):
        return None
    written = _written(query.text[refused.start : refused.end])
    if written is None:
        return None
    function, value = written
    if wanted == _MOMENT:
        text = f"CAST(TIMESTAMP_MILLIS({function}({value} AS BIGINT)) AS TIMESTAMP_NTZ)"
    else:
        text = f"{function}(UNIX_MILLIS(CAST({value} AS TIMESTAMP_LTZ)) AS {wanted})"
    return query.edit([Edit(refused.start, refused.end, text)])


def _written(text: str) -> tuple[str, str] | None:
    """The function and the operand of a cast; None when the text is not a cast."""
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

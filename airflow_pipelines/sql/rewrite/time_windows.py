"""The rewrite of time windows, TUMBLE, HOP and SESSION, in FROM and in GROUP BY, to Spark's own functions."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.rewrite.clauses import SelectText, around, selects
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.syntax.window_tables import Place, WindowTablePlaces, window_table_places
from airflow_pipelines.sql.values.durations import duration

_GROUPINGS = ("tumble", "hop", "session")
_ENDS = {"start": ".`start`", "end": ".`end`"}
_NAMES = ("window", "session_window")
_BEFORE = frozenset({"select", ",", "(", "group by", "order by", "having", "and", "or", "not", "=", "<", ">", "<=", ">=", "<>"})
"""The tokens that may precede a window column without a qualifier."""


def time_windows(query: Edited) -> Edited:
    """Rewrite time windows to Spark's functions.

    * ``TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), size[, offset]))``, ``TABLE(HOP(TABLE t, DESCRIPTOR(c), slide, size[, offset]))`` and
      ``TABLE(SESSION(TABLE t [PARTITION BY k], DESCRIPTOR(c), gap))`` give the table's columns with ``window_start`` and
      ``window_end``. Rows without a time are in no window.
    * ``GROUP BY TUMBLE(c, size)`` with ``TUMBLE_START`` and ``TUMBLE_END``, and the same for ``HOP(c, slide, size)`` and
      ``SESSION(c, gap)``, become ``window`` and ``session_window``.
    * ``window.start`` under ``GROUP BY window(...)`` becomes ``window(...).start``, ``window_time(w)`` the last microsecond of w.

    :param query: folded text that parses
    :raises SyntaxFailure: if a length of time is no constant; offsets are those of the query as first written
    """
    if not mentions(query.text, "tumble", "hop", "session", "window"):
        return query
    while True:
        tables = [places for table in parse_query(query.text).find_all(exp.Table) if (places := window_table_places(table))]
        inner = [one for one in tables if not any(_is_within(other.whole, one.whole) for other in tables if other is not one)]
        if not inner:
            break
        query = query.edit([Edit(*places.whole, _table(query, places)) for places in inner])
    for translate in (_groupings, _named_windows, _window_times):
        query = query.edit(list(translate(query)))
    return query


def _is_within(inner: Place, outer: Place) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _table(query: Edited, places: WindowTablePlaces) -> str:
    """Return a derived table with the windows of a table's rows."""

    def piece(place: Place) -> str:
        return query.text[place[0] : place[1]]

    column, source = piece(places.pieces["timecol"]), piece(places.pieces["data"])
    lengths = {name: _length(query, place) for name, place in places.pieces.items() if name not in {"data", "timecol"}}
    if places.function == "SESSION":
        return _sessions(source, column, [piece(key) for key in places.keys], lengths["size"])
    arguments = [lengths["size"]]
    if "slide" in lengths or "offset" in lengths:
        arguments.append(lengths.get("slide", lengths["size"]))
    if "offset" in lengths:
        arguments.append(lengths["offset"])
    window = _window(column, arguments)
    return f"(SELECT *, {window}.`start` AS window_start, {window}.`end` AS window_end FROM {source})"


def _sessions(source: str, column: str, keys: list[str], gap: str) -> str:
    """Return a query for each row with its session: a row that is a gap or more after the row before it starts a new session."""
    length = f"INTERVAL '{gap}'"
    order = f"ORDER BY {column} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    previous = f"LAG({column}) OVER ({by}ORDER BY {column})"
    first = f"CASE WHEN {column} < {previous} + {length} THEN 0 ELSE 1 END"
    starts = f"SELECT *, {first} AS __starts FROM {source} WHERE {column} IS NOT NULL"
    numbered = f"SELECT *, SUM(__starts) OVER ({by}{order}) AS __session FROM ({starts})"
    one = f"(PARTITION BY {', '.join([*keys, '__session'])})"
    bounds = f"MIN({column}) OVER {one} AS window_start, MAX({column}) OVER {one} + {length} AS window_end"
    return f"(SELECT * EXCEPT (__starts, __session), {bounds} FROM ({numbered}))"


def _window(column: str, lengths: list[str]) -> str:
    return f"window({column}, {', '.join(repr(length) for length in lengths)})"


def _length(query: Edited, place: Place) -> str:
    try:
        return duration(query.text[place[0] : place[1]])
    except ValueError as error:
        raise SyntaxFailure(*query.origin(*place), str(error)) from error


def _groupings(query: Edited) -> Iterator[Edit]:
    """Yield the edits of TUMBLE, HOP, SESSION and their bounds outside of FROM."""
    for call in TokenWalker(query.text).calls():
        function, _, bound = call.name.partition("_")
        if function not in _GROUPINGS or bound not in {"", *_ENDS} or len(call.arguments) < 2:
            continue
        (start, end), *places = call.arguments
        lengths = [_length(query, place) for place in places]
        window = _grouping(query, call, function, query.text[start:end], lengths)
        yield Edit(call.start, call.end, window + _ENDS.get(bound, ""))


def _grouping(query: Edited, call: CallTokens, function: str, column: str, lengths: list[str]) -> str:
    size, *more = lengths
    if function == "session" and not more:
        return f"session_window({column}, '{size}')"
    if function == "tumble" and len(more) < 2:
        return _window(column, [size, *([size, *more] if more else [])])
    if function == "hop" and len(more) in {1, 2}:
        # Here the slide comes first, in Spark the size.
        return _window(column, [more[0], size, *more[1:]])
    wanted = {"session": "(time, gap)", "tumble": "(time, size[, offset])", "hop": "(time, slide, size[, offset])"}
    raise SyntaxFailure(*query.origin(call.start, call.end), f"{call.name.upper()} takes {wanted[function]}")


def _named_windows(query: Edited) -> Iterator[Edit]:
    """Yield edits that replace the columns ``window`` and ``session_window`` of GROUP BY by the calls that define them."""
    walker = TokenWalker(query.text)
    places = selects(walker)
    calls = [call for call in walker.calls() if call.name in _NAMES]
    for call in calls:
        select = around(places, call.at)
        if select is None or not _in_clause(select, "group by", call.at):
            continue
        written = walker.piece(call.start, call.end)
        for at in range(select.start, select.end):
            if walker.word(at) == call.name and _is_column(walker, at) and around(places, at) == select:
                last = at + 2 if walker.word(at + 1) == "." else at
                yield Edit(walker.start(at), walker.end(at), written)
                # The column keeps the name that it had.
                if _is_item(walker, select, at, last):
                    yield Edit(walker.end(last), walker.end(last), f" AS {quote(walker.name(last))}")


def _is_item(walker: TokenWalker, select: SelectText, first: int, last: int) -> bool:
    """Return True if some tokens are a whole entry of the SELECT list."""
    begins = walker.word(first - 1) in {"select", "distinct", ","}
    return begins and walker.word(last + 1) in {",", "from"} and _in_clause(select, "list", first)


def _in_clause(select: SelectText, name: str, at: int) -> bool:
    first, last = select.clauses.get(name, (0, 0))
    return first <= at < last


def _is_column(walker: TokenWalker, at: int) -> bool:
    if walker.word(at + 1) == "(" or walker.word(at - 1) in {".", "as"}:
        return False
    return walker.word(at + 1) == "." or walker.word(at - 1) in _BEFORE


def _window_times(query: Edited) -> Iterator[Edit]:
    for call in TokenWalker(query.text).calls():
        if call.name == "window_time" and len(call.arguments) == 1:
            start, end = call.arguments[0]
            yield Edit(call.start, call.end, f"(({query.text[start:end]}).`end` - INTERVAL '0.000001' SECOND)")

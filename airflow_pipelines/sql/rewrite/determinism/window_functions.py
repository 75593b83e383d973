"""The rewrite that makes window functions deterministic: all columns of the row break the ties of their ORDER BY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.clauses import SelectText, Tokens, around, level, selects, split, text
from airflow_pipelines.sql.rewrite.probe import input_columns
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker, mentions
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.values.total_order import ListKey, sorted_list

_POSITIONS = frozenset({"lag", "lead", "ntile", "row_number"})
_FIRST = frozenset({"any_value", "first", "first_value"})
_LAST = frozenset({"last", "last_value"})
_PICKS = _FIRST | _LAST | {"nth_value"}
_LISTS = frozenset({"array_agg", "collect_list"})
_ORDER_INSENSITIVE = frozenset({"array_max", "array_min", "array_size", "array_sort", "cardinality", "size", "sort_array"})
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_WHOLE = " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_DIRECTIONS = frozenset({"asc", "desc", "nulls", "first", "last"})
_SETS = frozenset({"rollup", "cube", "grouping sets", "grouping"})


@dataclass(frozen=True, slots=True)
class _Call:
    """A window function in the text: its name, its tokens, and the definition of its window."""

    name: str
    at: int
    close: int
    window: exp.Window
    definition: exp.Window
    over: Tokens
    """The tokens after OVER: a name, or a definition with its parentheses."""
    content: Tokens
    """The tokens of the definition, without parentheses."""


def deterministic_windows(query: Edited, analyzer: Analyzer) -> Edited:
    """Break the ties of window functions by all columns of the row.

    ``ROW_NUMBER``, ``NTILE``, ``LAG``, ``LEAD``, ``FIRST_VALUE``, ``LAST_VALUE``, ``NTH_VALUE``, lists, and all functions with a
    ROWS frame depend on the order of rows that are equal in ORDER BY, which Spark leaves open. All columns of the row are added to
    the ORDER BY (for groups, all keys). Functions that treat such rows as one (RANK, RANGE frames of sums) stay as they are.

    :param query: Spark SQL that Spark accepts
    :param analyzer: the analyzer, which knows the relations that the query reads
    :raises SyntaxFailure: if a function needs an order that nothing gives; offsets are those of the query as first written
    """
    tree = parse_query(query.text) if mentions(query.text, "over") else None
    if tree is None or tree.find(exp.Window) is None:
        return query
    walker = TokenWalker(query.text)
    places = selects(walker)
    known: dict[int, tuple[str, ...] | None] = {}
    edits: list[Edit] = []
    for window in tree.find_all(exp.Window):
        call = _call(window, walker, places)
        select = window.find_ancestor(exp.Select)
        if call is None or select is None:
            continue
        if id(select) not in known:
            known[id(select)] = _ties(select, around(places, call.at), walker, analyzer)
        ties = known[id(select)]
        if ties is None and _needs_all_columns(call):
            message = f"{call.name.upper()} without ORDER BY takes rows in the order of all their columns, which are not known here"
            raise SyntaxFailure(*query.origin(walker.start(call.at), walker.end(call.over[1] - 1)), f"{message}: write ORDER BY")
        edits += _edits(call, ties or (), walker)
    return query.edit(edits)


def _needs_all_columns(call: _Call) -> bool:
    """Return True if only the columns of the rows can give the order in which a function takes them."""
    order = call.definition.args.get("order")
    keys = order.expressions if order is not None else []
    return call.name in _POSITIONS | {"nth_value"} and bool(keys) and all(isinstance(key.this, exp.Null) for key in keys)


def _call(window: exp.Window, walker: TokenWalker, places: list[SelectText]) -> _Call | None:
    """Return the position of a window function, or None for the definitions of the WINDOW clause."""
    function = window.this
    while isinstance(function, _WRAPPERS):
        function = function.this
    if "start" not in function.meta:
        return None
    at = next((number for number, token in enumerate(walker.tokens) if token.start == function.meta["start"]), None)
    close = walker.closing(at + 1) if at is not None else None
    if at is None or close is None:
        return None
    over = close + 1
    while over < len(walker.tokens) and walker.word(over) != "over":
        closing = walker.closing(over) if walker.word(over) == "(" else over
        over = len(walker.tokens) if closing is None else closing + 1
    place = around(places, at)
    definition, content = window, (over + 2, (walker.closing(over + 1) or over + 1))
    tokens = (over + 1, content[1] + 1)
    if walker.word(over + 1) != "(":
        content, tokens = (over + 1, over + 2), (over + 1, over + 2)
    while place is not None and content[1] - content[0] == 1:
        named = _find_definition(walker.name(content[0]), walker, place)
        select = window.find_ancestor(exp.Select)
        definitions = [
            part for part in (select.args.get("windows") or [] if select else []) if part.name == walker.name(content[0])
        ]
        if named is None or not definitions:
            return None
        definition, content = definitions[0], named
    return _Call(walker.word(at), at, close, window, definition, tokens, content)


def _find_definition(name: str, walker: TokenWalker, place: SelectText) -> Tokens | None:
    """Return the tokens of a definition in the WINDOW clause."""
    for piece in split(walker, place.clauses.get("window", (0, 0))):
        if walker.name(piece[0]) == name and walker.word(piece[0] + 2) == "(":
            return piece[0] + 3, piece[1] - 1
    return None


def _edits(call: _Call, ties: tuple[str, ...], walker: TokenWalker) -> list[Edit]:
    spec = call.definition.args.get("spec")
    rows = spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
    start, end = _bounds(spec)
    ordered = call.definition.args.get("order") is not None
    whole = (start, end) == ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING") or (spec is None and not ordered)
    given = _find_given_ties(call, ties)
    added = tuple(tie for tie in ties if tie not in given)
    if call.name in _POSITIONS or (rows and not whole):
        return _append_keys(call, added, walker, ordered, "")
    if call.name not in _PICKS | _LISTS or (call.name in _LISTS and _is_order_insensitive(call.window)):
        return []
    if whole:
        return _append_keys(call, added, walker, ordered, "" if ordered or spec is not None else _WHOLE)
    # A RANGE frame includes all rows that are equal in ORDER BY at its bounds, so that more columns would change it.
    ignoring = isinstance(call.window.this, exp.IgnoreNulls) or len(list(split(walker, (call.at + 2, call.close)))) > 1
    if call.name in _FIRST and start == "UNBOUNDED PRECEDING" and end in {"CURRENT ROW", "UNBOUNDED FOLLOWING"} and not ignoring:
        return _append_keys(call, added, walker, ordered, "")
    if call.name in _LAST and (start, end) == ("CURRENT ROW", "UNBOUNDED FOLLOWING") and not ignoring:
        return _append_keys(call, added, walker, ordered, "")
    return _rewrite_by_value(call, added, walker)


def _bounds(spec: exp.Expr | None) -> tuple[str, str]:
    if spec is None:
        return "UNBOUNDED PRECEDING", "CURRENT ROW"

    def print_bound(value: object, side: object) -> str:
        shown = value.sql() if isinstance(value, exp.Expr) else str(value or "CURRENT ROW")
        return f"{shown} {side or ''}".strip().upper()

    return print_bound(spec.args.get("start"), spec.args.get("start_side")), print_bound(
        spec.args.get("end"), spec.args.get("end_side")
    )


def _find_given_ties(call: _Call, ties: tuple[str, ...]) -> set[str]:
    """Return the tie breakers that the definition already partitions or sorts by."""
    order = call.definition.args.get("order")
    keys = [*(call.definition.args.get("partition_by") or []), *(part.this for part in (order.expressions if order else []))]
    given = set()
    for key in keys:
        if isinstance(key, exp.Column):
            name = f".{quote(key.name)}"
            own = {f"{quote(key.table)}{name}", quote(key.name)}
            same = [tie for tie in ties if tie in own or (not key.table and tie.endswith(name))]
            given |= set(same if len(same) == 1 else [])
    return given


def _append_keys(call: _Call, ties: tuple[str, ...], walker: TokenWalker, ordered: bool, frame: str) -> list[Edit]:
    """Return edits that add sort columns to a window definition; a named definition is inlined."""
    if not ties:
        return []
    first, last = call.content
    marks = [at for at in level(walker, call.content) if walker.word(at) in {"rows", "range"} and _is_frame(walker, at)]
    behind = walker.end(marks[0] - 1) if marks else (walker.end(last - 1) if last > first else walker.end(first - 1))
    more = (", " if ordered else " ORDER BY ") + ", ".join(ties) + frame
    if call.over[0] + 1 == first:
        return [Edit(behind, behind, more)]
    begin, end = walker.start(first), walker.end(last - 1)
    written = walker.piece(begin, behind) + more + walker.piece(behind, end)
    return [Edit(walker.start(call.over[0]), walker.end(call.over[1] - 1), f"({written})")]


def _is_frame(walker: TokenWalker, at: int) -> bool:
    return walker.word(at + 1) in {"between", "unbounded", "current"} or walker.word(at + 2) in {"preceding", "following"}


def _rewrite_by_value(call: _Call, ties: tuple[str, ...], walker: TokenWalker) -> list[Edit]:
    """Rewrite FIRST and LAST to MIN_BY and MAX_BY over the frame, and other functions to the sorted list of its rows."""
    order = call.definition.args.get("order")
    parts = order.expressions if order is not None else []
    descending = {bool(part.args.get("desc")) for part in parts}
    plain = all(bool(part.args.get("nulls_first")) is not bool(part.args.get("desc")) for part in parts)
    arguments = split(walker, (call.at + 2, call.close))
    keys = _order_keys(call, walker)
    value = text(walker, arguments[0])
    if call.name not in _FIRST | _LAST or len(descending) != 1 or not plain or len(arguments) != 1:
        return _rewrite_from_list(call, value, [text(walker, argument) for argument in arguments[1:]], (keys, parts, ties), walker)
    place_in_frame = f"STRUCT({', '.join([*keys, *ties])})"
    if isinstance(call.window.this, exp.IgnoreNulls):
        place_in_frame = f"CASE WHEN ({value}) IS NOT NULL THEN {place_in_frame} END"
    name = "MIN_BY" if (call.name in _FIRST) is not descending.pop() else "MAX_BY"
    over = call.over[0] - 1
    condition = _condition(call, walker)
    return [Edit(walker.start(call.at), walker.start(over), f"{name}({value}, {place_in_frame}){condition} ")]


def _order_keys(call: _Call, walker: TokenWalker) -> list[str]:
    """Return the expressions of a definition's ORDER BY."""
    listed = next((at for at in level(walker, call.content) if walker.word(at) == "order by"), None)
    if listed is None:
        return []
    frames = [at for at in level(walker, call.content) if walker.word(at) in {"rows", "range"} and _is_frame(walker, at)]
    return [text(walker, _without_direction(walker, key)) for key in split(walker, (listed + 1, (frames or [call.content[1]])[0]))]


def _rewrite_from_list(
    call: _Call,
    value: str,
    more: list[str],
    order: tuple[Sequence[str], Sequence[exp.Expr], Sequence[str]],
    walker: TokenWalker,
) -> list[Edit]:
    """Return the edits that pick a function's value from the list of the frame's rows, sorted by ORDER BY and then by all columns.

    :param more: the arguments after the value
    :param order: the keys of ORDER BY, the same with their directions, and the columns after them
    """
    keys, parts, ties = order
    lists = call.name in _LISTS
    fields = [f"{key} AS k{at}" for at, key in enumerate(keys)] + [f"{tie} AS t{at}" for at, tie in enumerate(ties)]
    element = f"STRUCT({', '.join(fields)}, {value} AS v)"
    if lists or _ignores_nulls(call, more):
        element = f"CASE WHEN ({value}) IS NOT NULL THEN {element} END"
    directions = [
        ListKey(f"k{at}", bool(part.args.get("desc")), bool(part.args.get("nulls_first"))) for at, part in enumerate(parts)
    ]
    head, _, tail = sorted_list("\0", [*directions, *(ListKey(f"t{at}") for at in range(len(ties)))]).partition("\0")
    if lists:
        before, after = "TRANSFORM(", ", __e -> __e.v)"
    elif call.name in _LAST:
        before, after = "TRY_ELEMENT_AT(", ", -1).v"
    else:
        place = f"({more[0]}) - 1" if call.name == "nth_value" else "0"
        before, after = "GET(", f", {place}).v"
    condition = _condition(call, walker)
    end = walker.end(call.over[1] - 1)
    return [
        Edit(walker.start(call.at), walker.start(call.over[0] - 1), f"{before}{head}COLLECT_LIST({element}){condition} "),
        Edit(end, end, f"{tail}{after}"),
    ]


def _ignores_nulls(call: _Call, more: Sequence[str]) -> bool:
    in_words = isinstance(call.window.this, exp.IgnoreNulls) or isinstance(call.window.this.this, exp.IgnoreNulls)
    return in_words or (call.name in _FIRST | _LAST and [argument.strip().lower() for argument in more] == ["true"])


def _condition(call: _Call, walker: TokenWalker) -> str:
    """Return the FILTER clause between a call and OVER."""
    at = call.close + 1
    close = walker.closing(at + 1) if walker.word(at) == "filter" else None
    return "" if close is None else f" {walker.piece(walker.start(at), walker.end(close))}"


def _without_direction(walker: TokenWalker, key: Tokens) -> Tokens:
    last = key[1]
    while last > key[0] + 1 and walker.word(last - 1) in _DIRECTIONS:
        last -= 1
    return key[0], last


def _is_order_insensitive(window: exp.Window) -> bool:
    above = window.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.Func) and bool({above.sql_name().lower(), above.name.lower()} & _ORDER_INSENSITIVE)


def _ties(select: exp.Select, place: SelectText | None, walker: TokenWalker, analyzer: Analyzer) -> tuple[str, ...] | None:
    """Return the tie breakers of a SELECT's window functions: expressions that differ between all of their rows.

    :returns: None if Spark cannot determine the columns; empty if there is one row
    """
    if place is not None and "group by" in place.clauses:
        return _group_keys(select, place, walker)
    if select.args.get("having") is not None or any(True for item in select.expressions for _ in aggregate_calls(item)):
        return ()
    columns = input_columns(select, analyzer)
    return None if columns is None else tuple(column.sortable for column in columns)


def _group_keys(select: exp.Select, place: SelectText, walker: TokenWalker) -> tuple[str, ...]:
    clause = place.clauses["group by"]
    items = split(walker, place.clauses["list"])
    texts = [_without_alias(walker, item, tree) for item, tree in zip(items, select.expressions, strict=False)]
    if clause[1] - clause[0] == 1 and walker.word(clause[0]) == "all":
        plain = [not any(True for _ in aggregate_calls(item)) and not item.find(exp.Window) for item in select.expressions]
        return tuple(text for text, is_key in zip(texts, plain, strict=False) if is_key)
    aliases: Mapping[str, str] = {tree.alias: item for item, tree in zip(texts, select.expressions, strict=False) if tree.alias}
    sets = any(walker.word(at) in _SETS for at in range(*clause))
    if walker.word(clause[1] - 2) == "with" and sets:
        clause = clause[0], clause[1] - 2
    keys: dict[str, None] = {}
    for piece in _flatten(walker, clause):
        written = text(walker, piece)
        if piece[1] - piece[0] == 1 and written.isdigit() and int(written) <= len(texts):
            written = texts[int(written) - 1]
        elif piece[1] - piece[0] == 1 and walker.name(piece[0]) in aliases:
            written = aliases[walker.name(piece[0])]
        keys[written] = None
    return tuple([*keys, *(["GROUPING_ID()"] if sets else [])])


def _flatten(walker: TokenWalker, clause: Tokens) -> list[Tokens]:
    """Return the expressions of a GROUP BY, including those in grouping sets."""
    expressions = []
    for piece in split(walker, clause):
        opening = next((at for at in range(*piece) if walker.word(at) == "("), None)
        within = opening is not None and (opening == piece[0] or walker.word(piece[0]) in _SETS)
        if within and opening is not None and walker.closing(opening) == piece[1] - 1:
            expressions += _flatten(walker, (opening + 1, piece[1] - 1))
        else:
            expressions.append(piece)
    return expressions


def _without_alias(walker: TokenWalker, item: Tokens, tree: exp.Expr) -> str:
    last = item[1]
    if isinstance(tree, exp.Alias):
        last -= 2 if walker.word(last - 2) == "as" else 1
    return text(walker, (item[0], last))

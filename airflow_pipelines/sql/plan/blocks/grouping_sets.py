"""Plans of GROUP BY lists: GROUPING SETS, CUBE and ROLLUP become one grouping over rows repeated once per set."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from sqlglot import exp

from airflow_pipelines.sql.plan.expressions import NotIncremental, distinct, function_name, require_only, require_scalar
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls, is_aggregate

_PARTS = frozenset({"expressions", "all", "rollup", "cube", "grouping_sets"})

_T = TypeVar("_T")
Sets = list[list[exp.Expr]]
"""Sets of keys, in order."""


def is_session(key: exp.Expr) -> bool:
    """Return True if a key is a session window, which depends on more than the row itself."""
    return any(function_name(node) == "session_window" for node in key.walk())


def grouping_sets(group: exp.Group | None, outputs: Sequence[exp.Expr]) -> tuple[list[exp.Expr], tuple[frozenset[int], ...]]:
    """Return the keys of a GROUP BY and, if it has several grouping sets, the sets as positions of keys.

    :param group: the clause, None for a query without it
    :param outputs: the SELECT list, to which numbers refer
    """
    if group is None:
        return [], ()
    require_only(group, _PARTS)
    if group.args.get("all"):
        if group.expressions:
            raise NotIncremental("GROUP BY ALL with expressions has no incremental rule", group)
        return distinct(item.unnest() for item in outputs if not any(True for _ in aggregate_calls(item))), ()
    parts = [_sets(part, outputs) for part in group.expressions]
    whole = [key for sets in parts for key in sets[0]] if parts else []
    for name, sets in (("rollup", _prefixes(whole)), ("cube", _subsets(whole))):
        if any(not clause.expressions for clause in group.args.get(name) or []):
            # GROUP BY a, b WITH ROLLUP
            parts = [sets]
        else:
            parts += [_sets(clause, outputs) for clause in group.args.get(name) or []]
    if group.args.get("grouping_sets"):
        # GROUP BY a, b GROUPING SETS (...): the list before it only names the keys.
        parts = [_sets(clause, outputs) for clause in group.args["grouping_sets"]]
    combinations = [distinct(key for keys in chosen for key in keys) for chosen in itertools.product(*parts)]
    keys = distinct([*whole, *(key for keys in combinations for key in keys)])
    for key in keys:
        require_scalar(key)
    if len(combinations) < 2 and len(combinations[0] if combinations else []) == len(keys):
        return keys, ()
    return keys, tuple(frozenset(keys.index(key) for key in chosen) for chosen in combinations)


def _sets(part: exp.Expr, outputs: Sequence[exp.Expr]) -> Sets:
    """Return the grouping sets of one entry of GROUP BY."""
    inner = part.unnest()
    if isinstance(inner, exp.Rollup):
        return _products(_prefixes([_keys(item, outputs) for item in inner.expressions]))
    if isinstance(inner, exp.Cube):
        return _products(_subsets([_keys(item, outputs) for item in inner.expressions]))
    if isinstance(inner, exp.GroupingSets):
        return [one for item in inner.expressions for one in _sets(item, outputs)]
    return [_keys(inner, outputs)]


def _keys(item: exp.Expr, outputs: Sequence[exp.Expr]) -> list[exp.Expr]:
    inner = item.unnest()
    if isinstance(inner, exp.Tuple):
        return [key for part in inner.expressions for key in _keys(part, outputs)]
    if isinstance(inner, exp.Literal) and inner.is_int:
        inner = outputs[int(inner.name) - 1].unnest()
    return [inner]


def _products(choices: Iterable[Sequence[list[exp.Expr]]]) -> Sets:
    return [[key for keys in chosen for key in keys] for chosen in choices]


def _prefixes(items: Sequence[_T]) -> list[list[_T]]:
    return [list(items[:end]) for end in range(len(items), -1, -1)]


def _subsets(items: Sequence[_T]) -> list[list[_T]]:
    return [list(chosen) for size in range(len(items), -1, -1) for chosen in itertools.combinations(items, size)]


def in_sets(keys: Sequence[exp.Expr], sets: Sequence[frozenset[int]], number: exp.Expr) -> list[exp.Expr]:
    """Return the keys of a row that is repeated for each set: a key is NULL in the sets that lack it.

    :param keys: all keys
    :param sets: the sets, as positions of keys
    :param number: the expression that gives the number of the row's set
    """
    row_keys = []
    for at, key in enumerate(keys):
        members = [place for place, chosen in enumerate(sets) if at in chosen]
        whole = len(members) == len(sets)
        row_keys.append(key if whole else exp.Case(ifs=[exp.If(this=_is_one_of(number, members), true=key.copy())]))
    return row_keys


def over_sets(tree: exp.Expr, keys: Sequence[exp.Expr], sets: Sequence[frozenset[int]], number: exp.Expr) -> exp.Expr:
    """Rewrite an expression over groups for repeated rows: GROUPING and GROUPING_ID become numbers.

    The arguments of aggregate functions read the rows, whose columns stay as they are.

    :param tree: the expression
    :param keys: all keys
    :param sets: the sets, as positions of keys
    :param number: the expression that gives the number of the row's set
    """
    return _rewrite_tree(tree, dict(zip(keys, in_sets(keys, sets, number), strict=True)), keys, sets, number, called=False)


def _rewrite_tree(
    tree: exp.Expr,
    named: Mapping[exp.Expr, exp.Expr],
    keys: Sequence[exp.Expr],
    sets: Sequence[frozenset[int]],
    number: exp.Expr,
    called: bool,
) -> exp.Expr:
    if tree in named:
        return named[tree].copy()
    if isinstance(tree, exp.Grouping):
        return exp.cast(_bits(tree.expressions, keys, sets, number), "TINYINT")
    if isinstance(tree, exp.GroupingId):
        return exp.cast(_bits(tree.expressions or keys, keys, sets, number), "BIGINT")
    if is_aggregate(tree) and not called:
        return tree.copy()
    copy = tree.copy()
    for child in list(copy.iter_expressions()):
        over = isinstance(tree, exp.Window) and child.arg_key == "this"
        child.replace(_rewrite_tree(child, named, keys, sets, number, called=over))
    return copy


def _bits(wanted: Sequence[exp.Expr], keys: Sequence[exp.Expr], sets: Sequence[frozenset[int]], number: exp.Expr) -> exp.Expr:
    """Return a number with one bit per wanted key, the first key highest; a bit is 1 if the key is not in the row's set."""
    places = [keys.index(key.unnest()) if key.unnest() in keys else -1 for key in wanted]
    if -1 in places:
        raise NotIncremental("GROUPING of something that is not grouped by")
    cases = []
    for at, chosen in enumerate(sets):
        value = sum(1 << shift for shift, place in enumerate(reversed(places)) if place not in chosen)
        cases.append(exp.If(this=_is_one_of(number, [at]), true=exp.Literal.number(value)))
    return exp.Case(ifs=cases)


def _is_one_of(number: exp.Expr, values: Sequence[int]) -> exp.Expr:
    if not values:
        return exp.false()
    return exp.In(this=number.copy(), expressions=[exp.Literal.number(value) for value in values])

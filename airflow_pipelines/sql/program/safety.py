"""Constructs that queries must not contain: nondeterministic functions, arbitrary choices, and access outside of the engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.program.allowed_functions import NOT_ALLOWED
from airflow_pipelines.sql.syntax.dialect import tokenise

_SESSION = frozenset({"current_catalog", "current_database", "current_schema", "current_user", "session_user", "user"})
_RANDOM = frozenset(
    {"monotonically_increasing_id", "rand", "randn", "random", "randstr", "shuffle", "spark_partition_id", "uniform", "uuid"}
)
_FILES = frozenset({"input_file_block_length", "input_file_block_start", "input_file_name"})
REFUSED_FUNCTIONS = NOT_ALLOWED.keys() | _SESSION | _RANDOM | _FILES
"""The functions that no view may call, in any spelling."""
_UNORDERED = frozenset({"group_concat", "listagg", "string_agg"})
_ORDER_BLIND = frozenset(
    {
        "array_contains",
        "array_length",
        "array_max",
        "array_min",
        "array_size",
        "array_sort",
        "cardinality",
        "size",
        "sort_array",
    }
)
_SPELLINGS = {
    "group_concat": frozenset({"listagg", "string_agg", "group_concat"}),
    "current_timestamp": frozenset({"current_timestamp", "unix_timestamp"}),
}
"""Functions for which the parser has its own name, with the names that a query may use."""


@dataclass(frozen=True, slots=True)
class RefusedPart:
    """A piece of a query that is not allowed; offsets are those of the parsed text, ``end`` exclusive."""

    start: int
    end: int
    message: str


def unsafe_part(tree: exp.Expr, text: str) -> RefusedPart | None:
    """Return the first piece of a query or expression that would run something outside of SQL, or None.

    :param tree: its tree
    :param text: the text that was parsed
    """
    tokens = tokenise(text)
    for token, following in itertools.pairwise(tokens):
        # IDENTIFIER('name') names a relation at run time, past everything that was resolved here.
        if token.text.lower() == "identifier" and token.token_type != TokenType.IDENTIFIER and following.text == "(":
            return RefusedPart(token.start, token.end + 1, "IDENTIFIER(...) is not allowed: write the name itself")
    for node in tree.walk():
        if isinstance(node, exp.QueryTransform):
            return _refuse(text, node, "transform", "SELECT TRANSFORM runs a program of the operating system and is not allowed")
        name = _function_name(node)
        if name is not None and name in NOT_ALLOWED:
            return _refuse(text, node, name, f"{name}() {NOT_ALLOWED[name]} and is not allowed")
    return None


def nondeterministic_parts(tree: exp.Expr, text: str) -> Iterator[RefusedPart]:
    """Yield the nondeterministic pieces of a view's query, each with the reason.

    :param tree: the query's tree
    :param text: the text that was parsed
    """
    for node in tree.walk():
        if isinstance(node, exp.TableSample):
            yield _refuse(
                text, node, "tablesample", "TABLESAMPLE picks rows at random, so the view would not follow from its inputs"
            )
            continue
        name = _function_name(node)
        if name is None:
            continue
        reason = _reason(node, name, _find_spelling(node, text) or name)
        if reason is not None:
            yield _refuse(text, node, name, reason)


def _reason(node: exp.Expr, name: str, written: str) -> str | None:
    if name in _RANDOM:
        return f"{written}() gives another value each time, so the view would not follow from its inputs"
    if name in _SESSION:
        return f"{written}() depends on who runs the query, so the view would not follow from its inputs"
    if name in _FILES:
        return f"{written}() depends on where rows are stored, so the view would not follow from its inputs"
    if _has_order(node):
        return None
    if name in _UNORDERED and not _inside_order_blind(node):
        return "text is joined here in any order: write listagg(...) WITHIN GROUP (ORDER BY ...)"
    return None


def _function_name(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if isinstance(node, exp.Func):
        return node.sql_name().lower()
    return None


def _has_order(node: exp.Expr) -> bool:
    if isinstance(node, exp.GroupConcat) and node.find(exp.Order) is not None:
        return True
    above = node.parent
    while isinstance(above, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.WithinGroup)):
        if isinstance(above, exp.WithinGroup):
            return True
        above = above.parent
    return False


def _inside_order_blind(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, (exp.Filter, exp.Paren, exp.IgnoreNulls, exp.RespectNulls)):
        above = above.parent
    return above is not None and _function_name(above) in _ORDER_BLIND


def _find_spelling(node: exp.Expr, text: str) -> str | None:
    """Return a function's name as the query spells it, or None if the parser did not keep its position."""
    return text[node.meta["start"] : node.meta["end"] + 1] if "start" in node.meta else None


def _refuse(text: str, node: exp.Expr, name: str, message: str) -> RefusedPart:
    if "start" in node.meta:
        return RefusedPart(node.meta["start"], node.meta["end"] + 1, message)
    # Words such as CURRENT_DATE are functions without parentheses, whose position the parser does not keep.
    spellings = _SPELLINGS.get(name, frozenset({name}))
    for token in tokenise(text):
        if token.text.lower() in spellings:
            return RefusedPart(token.start, token.end + 1, message)
    return RefusedPart(0, len(text), message)

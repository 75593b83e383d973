"""Long chains of AND and OR as balanced trees.

A parser makes a chain of ``n`` conditions ``n`` levels deep. Whatever goes up from a column to its query then takes time that
grows with the square of ``n``, and what goes down by recursion goes too deep. AND and OR are associative, and their text has no
parentheses within a chain, so that a balanced tree of the same conditions means and prints the same.
"""

from __future__ import annotations

from sqlglot import exp

LONG = 16
"""Chains of fewer conditions stay as they are parsed."""


def balanced(tree: exp.Expr) -> exp.Expr:
    """The tree with its long chains balanced, in place but for the root.

    :param tree: a tree as parsed
    """
    for top in [node for node in tree.find_all(exp.And, exp.Or) if type(node.parent) is not type(node)]:
        conditions = _conditions(top)
        if len(conditions) < LONG:
            continue
        chain = _halved(type(top), conditions)
        if top is tree:
            tree = chain
        else:
            top.replace(chain)
    return tree


def _conditions(top: exp.Expr) -> list[exp.Expr]:
    """The conditions of a chain in the order of their text."""
    found, waiting = [], [top]
    while waiting:
        node = waiting.pop()
        if type(node) is type(top):
            waiting += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _halved(kind: type[exp.Expr], conditions: list[exp.Expr]) -> exp.Expr:
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return kind(this=_halved(kind, conditions[:half]), expression=_halved(kind, conditions[half:]))

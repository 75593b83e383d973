"""Long chains of AND and OR as balanced trees.

A parser makes a chain of ``n`` conditions ``n`` levels deep. Then a walk from each column up to its query takes time that grows
with the square of ``n``, and recursion downwards goes too deep. AND and OR are associative, and their text has no parentheses
within a chain, so that a balanced tree of the same conditions means and prints the same.
"""

from __future__ import annotations

from sqlglot import exp

LONG = 16
"""The number of conditions from which a chain is balanced."""


def balance_chains(tree: exp.Expr) -> exp.Expr:
    """Return the tree with its long chains balanced; only the root may be a new node.

    :param tree: a tree as parsed
    """
    for top in [node for node in tree.find_all(exp.And, exp.Or) if type(node.parent) is not type(node)]:
        conditions = _conditions(top)
        if len(conditions) < LONG:
            continue
        chain = _halve(type(top), conditions)
        if top is tree:
            tree = chain
        else:
            top.replace(chain)
    return tree


def _conditions(top: exp.Expr) -> list[exp.Expr]:
    """Return the conditions of a chain in the order of their text."""
    conditions, waiting = [], [top]
    while waiting:
        node = waiting.pop()
        if type(node) is type(top):
            waiting += [node.expression, node.this]
        else:
            conditions.append(node)
    return conditions


def _halve(kind: type[exp.Expr], conditions: list[exp.Expr]) -> exp.Expr:
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return kind(this=_halve(kind, conditions[:half]), expression=_halve(kind, conditions[half:]))

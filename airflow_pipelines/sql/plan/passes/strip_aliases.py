"""A pass that removes aliases that only repeat a column's name.

With such aliases Spark plans ORDER BY and window functions differently.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import substitute


def strip_aliases(tree: exp.Expr, _builder: Builder) -> exp.Expr:
    """Remove aliases that only repeat a column's name, and restore those that QUALIFY reads.

    :param tree: a query with qualified columns; it is changed
    :returns: the tree
    """
    for select in tree.find_all(exp.Select):
        # All at once: for a single item sqlglot's time grows with the number of items.
        select.set("expressions", [item.this if _is_repeated_name(item) else item for item in select.expressions])
        if select.args.get("qualify") is not None:
            named = {item.this: exp.column(item.alias, quoted=True) for item in select.expressions if isinstance(item, exp.Alias)}
            select.set("qualify", substitute(select.args["qualify"], named))
    return tree


def _is_repeated_name(item: exp.Expr) -> bool:
    """Return True if an item of a SELECT list is a column with its own name as an alias."""
    return isinstance(item, exp.Alias) and isinstance(item.this, exp.Column) and bool(item.this.name == item.alias)

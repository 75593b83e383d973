"""The relations that a query names, and their positions."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class RelationReference:
    """A relation named in a FROM clause, canonical; offsets are those of the text that was parsed, ``end`` exclusive."""

    name: str
    start: int
    end: int
    qualified: bool = False


def references(tree: exp.Expr) -> list[RelationReference]:
    """Return the relations that a query reads, in the order of the text, without common table expressions."""
    relations = [_reference(table) for table in tree.find_all(exp.Table) if _is_relation(table)]
    return sorted(relations, key=lambda reference: reference.start)


def _reference(table: exp.Table) -> RelationReference:
    parts = table.parts
    first, last = parts[0].meta, parts[-1].meta
    name = ".".join(part.name for part in parts)
    return RelationReference(name, first.get("start", 0), last.get("end", first.get("end", 0)) + 1, len(parts) > 1)


def _is_relation(table: exp.Table) -> bool:
    if not isinstance(table.this, exp.Identifier):
        # A table function such as range(10).
        return False
    return len(table.parts) > 1 or not _is_common_table(table)


def _is_common_table(table: exp.Table) -> bool:
    name = table.name
    inner: exp.Expr = table
    outer: exp.Expr | None = table.parent
    while outer is not None:
        if isinstance(outer, exp.With) and isinstance(inner, exp.CTE):
            # Inside a WITH list a common table sees those before it, and itself when the list is recursive.
            before = outer.expressions[: inner.index or 0]
            visible = outer.expressions if outer.recursive else before
            if any(cte.alias == name for cte in visible):
                return True
            # The query that the list belongs to is skipped: it would make the later ones visible.
            inner = outer
            outer = outer.parent
        else:
            with_list = outer.args.get("with_")
            if with_list is not None and with_list is not inner and any(cte.alias == name for cte in with_list.expressions):
                return True
        if outer is not None:
            inner, outer = outer, outer.parent
    return False

"""``CASE`` with one condition that only compares whole numbers with literals, evaluated in the driver."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.operators.comparisons import COMPARE
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.sql.plan.ir.join_graph import Operator

_TERM = r"\w+ (?:<|<=|>|>=|=) -?\d{1,18}"
_CASE = re.compile(rf"\(?CASE WHEN (?P<open>\()?(?P<terms>{_TERM}(?: AND {_TERM})*)(?(open)\)) THEN \(?(?P<value>\w+)\)? END\)?")
_WHOLE = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class PlainCase:
    """A value where some comparisons hold, and NULL elsewhere.

    :param terms: a column, how it is compared, and with what
    :param value: a column, or a literal
    """

    terms: tuple[tuple[str, str, int], ...]
    value: str | int | bool

    @classmethod
    def of(cls, text: str) -> PlainCase | None:
        """A case as the planner writes it; None for anything else.

        :param text: SQL
        """
        case = _CASE.fullmatch(text)
        if case is None:
            return None
        terms = tuple(
            (column, sign, int(number)) for column, sign, number in (term.split() for term in case["terms"].split(" AND "))
        )
        value = case["value"]
        if value == "TRUE":
            return cls(terms, True)
        return cls(terms, int(value) if _WHOLE.fullmatch(value) else value)

    @property
    def columns(self) -> set[str]:
        """The columns that it reads."""
        return {column for column, _, _ in self.terms} | ({self.value} if isinstance(self.value, str) else set())

    def values(self, column: Callable[[str], ArrowColumn]) -> ArrowColumn | None:
        """The value for each row.

        :param column: gives the values of a column
        :return: None where something is compared that is no whole number
        """
        compared = {name: column(name) for name, _, _ in self.terms}
        if not all(pa.types.is_signed_integer(values.type) for values in compared.values()):
            return None
        found = [COMPARE[Operator(sign)](compared[name].cast(pa.int64()), pa.scalar(number)) for name, sign, number in self.terms]
        # NULL is not true.
        holds = pc.fill_null(functools.reduce(pc.and_, found), False)
        value = column(self.value) if isinstance(self.value, str) else _literal(self.value)
        return pc.if_else(holds, value, pa.scalar(None, value.type))


def _literal(value: int | bool) -> pa.Scalar:
    return pa.scalar(value, pa.bool_() if isinstance(value, bool) else pa.int32())

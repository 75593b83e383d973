"""The syntax of ASOF joins: ``[LEFT | INNER] ASOF JOIN table MATCH_CONDITION (comparison) ON condition``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

_PLACES = "asof_places"


@dataclass(frozen=True, slots=True)
class AsofPlaces:
    """The positions of an ASOF join's pieces in the text that was parsed; ends are exclusive.

    ``table`` includes its alias; ``match`` and ``on`` are the conditions without their keywords and outer brackets.
    """

    join: tuple[int, int]
    table: tuple[int, int]
    match: tuple[int, int]
    on: tuple[int, int]


def asof_places(join: exp.Join) -> AsofPlaces | None:
    """Return the positions of an ASOF join's pieces, or None for any other join."""
    places = join.meta.get(_PLACES)
    return places if isinstance(places, AsofPlaces) else None


class AsofParser(SparkParser):
    """Spark's parser with ASOF joins, which become joins with the method ``ASOF``."""

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        return self._parse_asof_join() or super()._parse_join(*args, **kwargs)

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> Any:
        # Otherwise the word would be parsed as the joined table's alias, and the condition as its list of columns.
        if self._match_text_seq("MATCH_CONDITION", "(", advance=False):
            return None
        return super()._parse_table_alias(*args, **kwargs)

    def _parse_asof_join(self) -> exp.Join | None:
        first = self._curr
        side = "LEFT" if self._match_text_seq("LEFT", "ASOF", "JOIN") else ""
        if first is None or not (side or self._match_text_seq("INNER", "ASOF", "JOIN") or self._match_text_seq("ASOF", "JOIN")):
            return None
        table, table_place = self._parse_with_place(self._parse_table)
        if not self._match_text_seq("MATCH_CONDITION"):
            self.raise_error("Expected MATCH_CONDITION of an ASOF JOIN")
        if not self._match(TokenType.L_PAREN):
            self.raise_error("Expected ( before the condition of MATCH_CONDITION")
        match, match_place = self._parse_with_place(self._parse_disjunction)
        self._match_r_paren()
        if self._match(TokenType.USING):
            self.raise_error("Expected ON: an ASOF JOIN has no USING")
        if not self._match(TokenType.ON):
            self.raise_error("Expected ON with the equalities of an ASOF JOIN")
        on, on_place = self._parse_with_place(self._parse_disjunction)
        join = self.expression(exp.Join(this=table, method="ASOF", side=side, match_condition=match, on=on))
        join.meta[_PLACES] = AsofPlaces((first.start, on_place[1]), table_place, match_place, on_place)
        return join

    def _parse_with_place(self, parse: Any) -> tuple[Any, tuple[int, int]]:
        start = self._curr
        tree = parse()
        end = self._prev
        if tree is None or start is None or end is None:
            self.raise_error("An ASOF JOIN is not complete")
        return tree, (start.start, end.end + 1)

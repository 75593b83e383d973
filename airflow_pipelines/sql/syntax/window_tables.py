"""The syntax of tables with time windows: ``TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL '1' MINUTE))``, HOP and SESSION."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.syntax.asof import AsofParser

_PLACES = "window_table_places"
_ARGUMENTS = {
    "TUMBLE": ("data", "timecol", "size", "offset"),
    "HOP": ("data", "timecol", "slide", "size", "offset"),
    "SESSION": ("data", "timecol", "size"),
}
"""The names of the arguments, in order."""
_NAMES = {"gap": "size", "key": "keys", "keys": "keys", "keycol": "keys"}
"""Other names for an argument."""

Place = tuple[int, int]
"""The offsets of a piece of the text; the end is exclusive."""


@dataclass(frozen=True, slots=True)
class WindowTablePlaces:
    """The positions of the pieces of a table with time windows in the text that was parsed.

    :param whole: the table without its alias
    :param pieces: the table or query, the time column, and the lengths, by the arguments' names
    :param keys: the columns by which sessions are partitioned
    """

    function: str
    whole: Place
    pieces: Mapping[str, Place]
    keys: tuple[Place, ...]


def window_table_places(table: exp.Expr) -> WindowTablePlaces | None:
    """Return the positions of a window table's pieces, or None for any other entry of FROM."""
    places = table.meta.get(_PLACES)
    return places if isinstance(places, WindowTablePlaces) else None


class WindowTableParser(AsofParser):
    """A Spark parser that also reads tables with time windows, which become tables named by a call."""

    def _parse_unnest(self, *args: Any, **kwargs: Any) -> Any:
        return self._parse_window_table() or super()._parse_unnest(*args, **kwargs)

    def _parse_window_table(self) -> exp.Table | None:
        first = self._curr
        for function in _ARGUMENTS:
            if self._match_text_seq("TABLE", "(", function, "("):
                return self._parse_windows_of(function, first, closing=2)
            if self._match_text_seq(function, "(", "TABLE", advance=False) or self._has_named_table(function):
                self._match_text_seq(function, "(")
                return self._parse_windows_of(function, first, closing=1)
        return None

    def _has_named_table(self, function: str) -> bool:
        index = self._index
        is_named = bool(self._match_text_seq(function, "(")) and self._take_name() is not None
        self._retreat(index)
        return is_named

    def _take_name(self) -> str | None:
        """Return the name before an arrow, and skip both."""
        if self._curr and self._next and self._next.token_type is TokenType.FARROW:
            name = str(self._curr.text).lower()
            self._advance(2)
            return name
        return None

    def _parse_windows_of(self, function: str, first: Any, closing: int) -> exp.Table:
        pieces: dict[str, Place] = {}
        keys: list[Place] = []
        trees: list[exp.Expr] = []
        while True:
            name = self._take_name()
            name = _NAMES.get(name, name) if name else None
            if self._match_text_seq("TABLE"):
                tree, place = self._parse_with_place(self._parse_windowed)
                pieces["data"] = place
                if self._match(TokenType.PARTITION_BY):
                    keys += self._parse_key_places()
            elif self._match_text_seq("DESCRIPTOR", "("):
                descriptors = self._parse_key_places()
                tree = exp.Null()
                self._match_r_paren()
                if "timecol" in pieces or name == "keys":
                    keys += descriptors
                else:
                    pieces["timecol"] = descriptors[0]
            else:
                tree, place = self._parse_with_place(self._parse_disjunction)
                free = [each for each in _ARGUMENTS[function] if each not in pieces and each not in {"data", "timecol"}]
                if name is None and not free:
                    self.raise_error(f"{function} has too many arguments")
                if name in pieces:
                    self.raise_error(f"{function} has two arguments {name.upper()}")
                pieces[name or free[0]] = place
            trees.append(tree)
            if not self._match(TokenType.COMMA):
                break
        for _ in range(closing):
            self._match_r_paren()
        wanted = [name for name in _ARGUMENTS[function] if name not in pieces and name != "offset"]
        if wanted or set(pieces) - set(_ARGUMENTS[function]):
            self.raise_error(f"{function} takes {', '.join(name.upper() for name in _ARGUMENTS[function])}")
        end = self._prev
        call = exp.Anonymous(this=function.lower(), expressions=trees)
        table = self.expression(exp.Table(this=call, alias=self._parse_table_alias()))
        table.meta[_PLACES] = WindowTablePlaces(function, (first.start, end.end + 1), pieces, tuple(keys))
        return table

    def _parse_windowed(self) -> exp.Expr | None:
        """Parse a table's name or a query in parentheses."""
        if not self._match(TokenType.L_PAREN):
            return self._parse_table_parts()
        tree: Any = self._parse_select() or self._parse_table_parts()
        self._match_r_paren()
        return tree if isinstance(tree, exp.Table) else exp.Subquery(this=tree)

    def _parse_key_places(self) -> list[Place]:
        places = []
        while True:
            _, place = self._parse_with_place(self._parse_column)
            places.append(place)
            if not self._match(TokenType.COMMA, advance=False) or self._argument_follows():
                return places
            self._match(TokenType.COMMA)

    def _argument_follows(self) -> bool:
        """Return True if the next comma ends a list of columns, because another argument is behind it."""
        following = self._tokens[self._index + 1 : self._index + 3]
        word = following[0].text.upper() if following else ""
        named = len(following) > 1 and following[1].token_type is TokenType.FARROW
        return named or word in {"DESCRIPTOR", "INTERVAL", "TABLE"}
